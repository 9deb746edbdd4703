"""Figures: each way to bind one, each refusal beside it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from evidence.binding.figures import BindingError, recompute
from evidence.binding.values import read_exact
from evidence.models import Figure, FigureInput
from evidence.presenters.chips import chips_for
from runs.models import Receipt

from .desk import Desk


def test_a_share_is_derived_from_two_numbers_of_an_excerpt(bound: Desk) -> None:
    """92 / 244 = 23/61, exactly; 37.7 % at one digit (92 / 244 = 0.37705)."""
    share = Figure.objects.get(key="pilot.share")
    assert share.current is not None and read_exact(share.current.value or "") == Fraction(92, 244)
    assert (share.current.numerator, share.current.denominator, share.current.unit) == ("92", "244", "")
    chips = chips_for(bound.study, ["pilot.share", "pilot.usable", "unknown"])
    assert {key: chip.shown for key, chip in chips.items()} == {"pilot.share": "37.7 %", "pilot.usable": "244"}
    assert recompute(share) == ("bound", "23/61", "")
    assert FigureInput.objects.filter(version=share.current).count() == 2


def test_a_version_is_told_by_a_receipt(bound: Desk) -> None:
    """One receipt a version, whose body is the version."""
    version = Figure.objects.get(key="pilot.usable").current
    assert version is not None
    receipt = Receipt.objects.get(subject_uid=version.uid)
    assert (receipt.kind, receipt.stream) == ("evidence.figure_version", f"evidence:{bound.study.uid}")


@pytest.mark.parametrize(
    "binding, value",
    [
        ({"type": "pointer", "source": "data.json", "pointer": "/counts/nonzero"}, "92"),
        ({"type": "pointer", "source": "data.json", "pointer": "/rate"}, "0.1"),
        ({"type": "cell", "source": "table.csv", "column": "n", "key_column": "arm", "key": "vanilla"}, "8"),
    ],
)
def test_places_of_sources(desk: Desk, binding: dict[str, Any], value: str) -> None:
    """A pointer and a cell give the number that stands there."""
    version = desk.bind("a", binding, digits=1)
    assert version.value == value and version.source_version is not None
    assert recompute(version.figure).state == "bound"


@pytest.mark.parametrize(
    "binding, message",
    [
        ({"type": "pointer", "source": "data.json", "pointer": "/name"}, "expected a number"),
        ({"type": "pointer", "source": "data.json", "pointer": "/absent"}, "leads to nothing"),
        ({"type": "pointer", "source": "absent.json", "pointer": ""}, "expected the path of a source"),
        ({"type": "pointer", "source": "claimed.pdf", "pointer": ""}, "not held here"),
        ({"type": "cell", "source": "table.csv", "column": "n", "key_column": "arm", "key": "x"}, "got 0 rows"),
        ({"type": "cell", "source": "table.csv", "column": "arm", "key_column": "n", "key": "8"}, "decimal number"),
        ({"type": "excerpt", "excerpt": "counts", "number": "44"}, "of which the excerpt holds 0"),
        ({"type": "excerpt", "excerpt": "counts", "number": "92", "occurrence": 2}, "of which the excerpt holds 1"),
        ({"type": "excerpt", "excerpt": "absent", "number": "92"}, "expected the key of an excerpt"),
        ({"type": "typed", "value": "5"}, "binding.type: got 'typed'"),
        ({"type": "pointer", "source": "data.json", "pointer": "/rate", "value": "5"}, "got an unknown member"),
        ({"type": "pointer", "source": "data.json"}, "binding.pointer: got nothing"),
        ({"type": "receipt", "sha256": "0" * 64, "pointer": "/seq"}, "expected a receipt of this study"),
        ({"type": "unavailable", "reason_en": " "}, "expected why there is no value"),
        ({"type": "pending", "fills": {}}, "expected a plan with its endpoint"),
    ],
)
def test_refused_bindings(bound: Desk, binding: dict[str, Any], message: str) -> None:
    """Each names the member that is wrong, and nothing is stored."""
    with pytest.raises(BindingError, match=message):
        bound.bind("a", binding)
    assert not Figure.objects.filter(key="a").exists()
