"""Figures: each way to bind one, each refusal beside it."""

from __future__ import annotations

import uuid
from fractions import Fraction
from typing import Any

import pytest

from evidence.actions.excerpts import add_excerpt
from evidence.actions.sources import add_source
from evidence.binding.figures import BindingError, recompute
from evidence.binding.values import read_exact
from evidence.models import Excerpt, Figure, FigureInput
from evidence.presenters.chips import chips_for
from runs.errors import DomainError
from runs.models import Receipt

from .desk import AT, Desk


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


@pytest.mark.parametrize(
    ("exact", "side"),
    [("44 usable rows", "begins"), ("Of 244 usable rows 9", "ends"), ("sable rows", "begins"), ("(37", "ends")],
)
def test_an_excerpt_that_cuts_a_number_or_word_is_refused(desk: Desk, exact: str, side: str) -> None:
    """44 of 244, 9 of 92, a part of a word, and 37 of 37.7 %; the whole one is taken."""
    with pytest.raises(DomainError, match=f"one that {side} within a word or number"):
        desk.quote("cut", exact)
    assert desk.quote("whole", "244 usable rows").text == "244 usable rows"


def test_a_number_of_an_excerpt_that_cuts_the_source_is_refused(desk: Desk) -> None:
    """An excerpt as older releases took it, "5 of 100" out of "95 of 100": its 5 is no number, its 100 is one."""
    data = b"It solved 95 of 100 tasks."
    version = add_source(desk.study, "cut.md", data, origin="upload", by=desk.by, at=AT)
    row = Excerpt.objects.create(
        uid=uuid.uuid4(), study=desk.study, actor=desk.by, at=AT, version=version, key="cut", form="quote",
        selector={"exact": "5 of 100"}, kind="matched", text="5 of 100",
    )  # fmt: skip
    with pytest.raises(DomainError, match="at an edge of the excerpt"):
        desk.number("cut", "5", row.key)
    assert desk.number("whole", "100", row.key).value == "100"


def test_a_number_at_the_edge_of_a_transcription_needs_what_stands_beside_it(desk: Desk) -> None:
    """Nobody can look whether "8 of 27" was "18 of 27": one more word, or a stated prefix, says so."""
    desk.transcribe("short", "8 of 27 finished")
    with pytest.raises(DomainError, match="edge of the transcription"):
        desk.number("n", "8", "short")
    desk.transcribe("longer", "With it 8 of 27 finished")
    assert desk.number("n", "8", "longer").value == "8"
    add_excerpt(
        desk.study, desk.sources["claimed.pdf"], "stated", "quote", {"prefix": "With it "}, by=desk.by, at=AT,
        text="8 of 27 finished",
    )  # fmt: skip
    assert desk.number("m", "8", "stated").value == "8"


@pytest.mark.parametrize("unit", ["rows^²", "rows^٢", "rows^-1", "rows^", "/rows", "rows**2"])
def test_a_unit_that_is_none_is_named(desk: Desk, unit: str) -> None:
    """Also powers in other digits than ours, which ``int`` reads in part only."""
    with pytest.raises(DomainError, match="unit: got"):
        desk.bind("a", {"type": "pointer", "source": "data.json", "pointer": "/counts/usable"}, unit=unit)


def test_a_derived_unit_fits_its_column(desk: Desk) -> None:
    """Two units of forty letters make one of 81: refused by length, before a database refuses it."""
    for key, letter, place in (("a", "x", "usable"), ("b", "y", "nonzero")):
        binding = {"type": "pointer", "source": "data.json", "pointer": f"/counts/{place}"}
        desk.bind(key, binding, unit=letter * 40)
    with pytest.raises(DomainError, match="unit: got 81 characters, expected at most 64"):
        desk.derive("product", "a * b", {"a": "a", "b": "b"})
    desk.derive("share", "a / a", {"a": "a"})


@pytest.mark.parametrize(
    ("binding", "field"),
    [
        ({"type": ["pointer"]}, "binding.type"),
        ({"type": {"a": 1}}, "binding.type"),
        ({"type": None}, "binding.type"),
        ({"type": "derivation", "expression": "a", "figures": {"a": "x\x00"}}, "binding.figures"),
        ({"type": "pending", "fills": {"words_en": "a count\x00"}}, "binding.fills"),
        ({"type": "endpoint", "endpoint": "e", "quantity": "low", "arms": ["a\x00"]}, "binding.arms"),
    ],
)
def test_a_binding_that_no_database_holds_is_named(desk: Desk, binding: dict[str, Any], field: str) -> None:
    """What cannot be hashed, and U+0000, wherever a text stands in a binding."""
    with pytest.raises(BindingError, match=rf"{field}: got"):
        desk.bind("a", binding)
