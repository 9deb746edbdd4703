"""What can be seen."""

from money import cents


def test_whole_amounts():
    assert cents("12") == 1200
