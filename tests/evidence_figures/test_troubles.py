"""Messages of bindings in the reader's language: each is read by one pattern, with its values."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from django.utils.translation import override

from evidence.binding.expressions import Quantity, check_measured, evaluate, parse_unit
from evidence.binding.figures import recompute
from evidence.binding.selectors import TextQuote, at_cell, at_pointer, find_quote
from evidence.binding.values import written
from evidence.presenters import troubles
from runs.presenters import patterns
from workbench.contracts.errors import ContractError

from .desk import Desk
from .test_change import of, overwrite
from .test_recompute import pointer

TWO = {"a": Quantity(Fraction(8), parse_unit("rows")), "b": Quantity(Fraction(0))}
TABLE = b"arm,n\nmasked,27\nmasked,27\n"


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A reader of Chinese; a translation is the message itself between brackets."""
    for module in (troubles, patterns):
        monkeypatch.setattr(module, "gettext", lambda message: f"「{message}」")
    with override("zh-hans"):
        yield


def message(call: object) -> str:
    """What a refused call says."""
    with pytest.raises(ContractError) as error:
        call()  # type: ignore[operator]
    return str(error.value)


REFUSED = [
    lambda: evaluate("a / b", TWO),
    lambda: evaluate("a + b", TWO),
    lambda: evaluate("a + c", TWO),
    lambda: evaluate("a ** 2", TWO),
    lambda: evaluate("a +", TWO),
    lambda: evaluate("ä + a", TWO),
    lambda: evaluate("a # b", TWO),
    lambda: evaluate("a + " + "1" * 2000, TWO),
    lambda: evaluate("-" * 60 + "a", TWO),
    lambda: check_measured("a * 2", TWO, {"a": "g", "b": "h"}),
    lambda: check_measured("a / a", TWO, {"a": "g", "b": "h"}),
    lambda: check_measured("count(a)", TWO, {"a": "g", "b": "h"}),
    lambda: parse_unit("*rows"),
    lambda: written("1/0"),
    lambda: written("1/2/3"),
    lambda: written("it's"),
    lambda: written("--1"),
    lambda: at_pointer(b"{", "/a"),
    lambda: at_pointer(b"{}", "a"),
    lambda: at_pointer(b"{}", "/it's"),
    lambda: at_cell(TABLE, "of", "arm", "masked"),
    lambda: at_cell(TABLE, "n", "arm", "masked"),
    lambda: at_cell(b"", "n", "arm", "masked"),
    lambda: find_quote("a b", TextQuote("c")),
    lambda: find_quote("a a", TextQuote("a")),
    lambda: find_quote("a b", TextQuote("a", "x")),
]


@pytest.mark.parametrize("call", REFUSED)
def test_a_message_is_translated_with_its_values(chinese: None, call: object) -> None:
    """The pattern filled with what it read is the message again, in either kind of quotation marks."""
    said = message(call)
    translated = troubles.told(said)
    assert translated.startswith("「") and translated.endswith("」"), said
    assert translated[1:-1].replace('"', "'") == said.replace('"', "'")


def test_every_trouble_of_a_chain_is_translated(chinese: None, desk: Desk) -> None:
    """A missing place, drifted bytes under two figures, and a value that differs."""
    desk.bind("a", pointer("/counts/usable"))
    desk.bind("b", pointer("/counts/nonzero"))
    desk.derive("d", "a - b", {"a": "a", "b": "b"})
    overwrite(desk.sources["data.json"], b'{"counts": {"usable": 244, "nonzero": 92}, "more": 1}')
    said = recompute(of("d")).trouble
    assert troubles.told(said) == (
        "a：「the bytes of the source differ from their hash」；b：「the bytes of the source differ from their hash」"
    )
    overwrite(desk.sources["data.json"], b'{"counts": {"usable": 200, "nonzero": 92}}')
    assert troubles.told(recompute(of("d")).trouble) == "「value: recomputes to 108, stored is 152」"
    overwrite(desk.sources["data.json"], b"{}")
    assert troubles.told(recompute(of("d")).trouble).startswith("「pointer: got '/counts'")


def test_english_and_what_nobody_knows_stay_as_they_are(chinese: None) -> None:
    unknown = "something else: got 1, expected 2 of nothing known"
    assert troubles.told(unknown) == unknown
    assert troubles.told(f"the source has drifted; {unknown}") == f"the source has drifted; {unknown}"
    assert troubles.told("") == ""
    with override("en"):
        assert troubles.told("the source has drifted") == "the source has drifted"


def test_no_pattern_is_read_by_one_before_it(chinese: None) -> None:
    """Each pattern, filled with plain values, is read by itself: none hides another."""
    for pattern in troubles.PATTERNS:
        filled = patterns.HOLE.sub("xyz", pattern)
        assert troubles.told(filled) == f"「{filled}」"
        first = next(source for source in troubles.MESSAGES if patterns.compiled(source).fullmatch(filled))
        assert first == pattern
