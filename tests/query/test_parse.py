"""Parsing of queries: terms, quotes, alternatives, refusals; values of numbers and times."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db.models import Q
from hypothesis import given
from hypothesis import strategies as st

from runs.query.parse import parse, quote, with_term
from runs.query.values import Unreadable, hash_prefix, moment, numeric, temporal, uid_prefix

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_terms() -> None:
    terms = parse('is:running -arm:E3,e4 "two words" task:"a, b" 10:30 plain').terms
    assert [(t.key, t.values, t.negated) for t in terms] == [
        ("is", ("running",), False),
        ("arm", ("E3", "e4"), True),
        ("", ("two words",), False),
        ("task", ("a, b",), False),
        ("", ("10:30",), False),
        ("", ("plain",), False),
    ]
    assert parse('"is:running"').terms[0].key == ""


@pytest.mark.parametrize("text", ['"open', "arm:", "arm:a,,b", '""', "a\x00b", "x " * 31, "y" * 501])
def test_refusals_name_what_was_wrong(text: str) -> None:
    assert parse(text).errors and all(error.message for error in parse(text).errors)


@given(st.text(max_size=600))
def test_no_text_breaks_the_parser(text: str) -> None:
    found = parse(text)
    assert len(found.terms) <= 30 and len(found.text) <= 500


@given(st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "), min_size=1, max_size=40))
def test_a_quoted_value_comes_back(value: str) -> None:
    assert parse(f"arm:{quote(value)}").terms[0].values == (value,)


def test_a_term_takes_the_place_of_its_key() -> None:
    assert with_term(parse("is:running created:2026 x"), "created", "2026-11") == "is:running x created:2026-11"


def test_numbers() -> None:
    assert numeric("r", ">0.5") == Q(r__gt=0.5)
    assert numeric("r", "0.2..0.6") == Q(r__gte=0.2) & Q(r__lte=0.6)
    assert numeric("r", "−1") == Q(r=-1.0)
    for text in ("high", "nan", "1e999", "..", ">", "1_0"):
        with pytest.raises(Unreadable):
            numeric("r", text)


def test_times() -> None:
    """November 2026 is [1 November, 1 December); 2 h ago from noon is 10:00."""
    assert moment("2026-11", NOW) == (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
    assert moment("2026-02-28", NOW)[1] == datetime(2026, 3, 1, tzinfo=UTC)
    assert moment("2h", NOW)[0] == datetime(2026, 11, 30, 10, tzinfo=UTC)
    assert temporal("t", ">2026-11-01", NOW) == Q(t__gte=datetime(2026, 11, 2, tzinfo=UTC))
    assert temporal("t", "2026..2027", NOW) == Q(t__gte=datetime(2026, 1, 1, tzinfo=UTC)) & Q(
        t__lt=datetime(2028, 1, 1, tzinfo=UTC)
    )
    for text in ("tomorrow", "2026-13", "2026-02-30", "0000", "9999", "99999d5"):
        with pytest.raises(Unreadable):
            temporal("t", text, NOW)


def test_prefixes() -> None:
    assert hash_prefix("h", "AB12") == Q(h__gte="ab12", h__lt="ab12g")
    assert str(uid_prefix("u", "3f2a-1").children[0][1]).startswith("3f2a1000-")  # type: ignore[index]
    for text in ("xyz", "a", "f" * 65):
        with pytest.raises(Unreadable):
            hash_prefix("h", text)
