"""What decides."""

from book import balance
from money import cents, shown


def test_one_place():
    assert cents("0.5") == 50


def test_negative_below_one():
    assert cents("-0.05") == -5


def test_names_of_several_words():
    assert balance(["the rent -300.00", "wages 450.25"]) == "150.25"


def test_two_places():
    assert cents("12.50") == 1250


def test_shown():
    assert shown(-5) == "-0.05"


def test_not_a_number():
    try:
        cents("x")
    except ValueError as error:
        assert "x" in str(error)
    else:
        raise AssertionError("no error")
