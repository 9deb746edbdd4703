# ruff: noqa: E501 - tables of texts
"""The grammar of texts: parsed and joined again, and every number outside it named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.binding.tokens import check_pieces, figure_keys, parse_text, source_references

PARTS = [
    "[[a.b]]",
    "[@R1]",
    "{{name:E2F}}",
    "{{date:2026-10-01}}",
    "{{code:a/b}}",
    "{{formula:M−B}}",
    "[[",
    "]]",
    "{{",
    "}}",
    "[@",
    "x",
    " ",
    "5",
    "]",
    "{{name:}}",
    "[[a b]]",
]


@given(st.lists(st.sampled_from(PARTS), max_size=20).map("".join) | st.text(max_size=80))
def test_pieces_join_to_the_text(text: str) -> None:
    """And each stands where it says."""
    pieces = parse_text(text)
    assert "".join(piece.raw for piece in pieces) == text
    assert all(text[piece.start : piece.stop] == piece.raw and piece.raw for piece in pieces)


def test_what_a_text_names() -> None:
    """Each key and reference once, in order."""
    texts = ["[[a]] and [[b.c]] [@R2]", "[[a]] [@R1] [@R2]"]
    assert figure_keys(texts) == ["a", "b.c"] and source_references(texts) == ["R2", "R1"]
    assert [piece.kind for piece in parse_text("[[a]]{{date:2026-10-01}} x")] == ["figure", "date", "text"]


@pytest.mark.parametrize(
    "text",
    [
        "A share of [[share]] in [@R1].", "{{name:E2F}} on {{date:2026-10-01}}", "{{date:2026-10}}, {{date:2026-09-28}}",
        "{{date:2026-10-01/2026-10-03}}", "{{code:docs/a1.md}}", "{{code:fdd83033}}", "{{code:123456a}}",
        "{{formula:M−B}}", "{{formula:s = min(1, c / |D|)}}", "{{formula:C = 0}}", "{{name:RTX-4060 Laptop}}",
        "{{name:二进制}}", "", "各臂一致。",
    ],
)  # fmt: skip
def test_what_a_text_may_say(text: str) -> None:
    """Nothing to complain of."""
    assert check_pieces(text, "en", figures=["share"], references=["R1"]) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("92 of them", "bare_number"), ("三成提高", "bare_number"), ("a third of [[share]]", "bare_number"),
        ("[[absent]]", "unknown_figure"), ("[@R9]", "unknown_source"), ("[[share]", "token"), ("{{name:}}", "token"),
        ("{{name:95}}", "name"), ("{{name:three}}", "name"), ("{{name:二十}}", "name"), ("{{name:n=95%}}", "name"),
        ("{{name:37 percent}}", "name"), ("{{date:yesterday}}", "date"), ("{{date:2026-13-01}}", "date"),
        ("{{date:2026-02-30}}", "date"), ("{{date:20261001}}", "date"), ("{{code:0.95}}", "code"),
        ("{{code:95}}", "code"), ("{{code:95%}}", "code"), ("{{code:a b}}", "code"), ("{{formula:95}}", "formula"),
        ("{{formula:x = 0.95}}", "formula"), ("{{formula:p < 0.05}}", "formula"), ("{{formula:three}}", "formula"),
    ],
)  # fmt: skip
def test_what_a_text_may_not_say(text: str, code: str) -> None:
    """Each trouble says what to do, and where it stands."""
    (first, *_rest) = check_pieces(text, "en", figures=["share"], references=["R1"])
    assert first.code == code and "expected" in str(first)
    assert text[first.start : first.stop] == first.text


def test_names_of_a_document_are_declared() -> None:
    """Where a document lists its names, no other is taken."""
    arguments: dict[str, Any] = {"figures": [], "references": []}
    assert not check_pieces("{{name:E2F}}", "en", names=["E2F"], **arguments)
    (trouble,) = check_pieces("{{name:E3}}", "en", names=["E2F"], **arguments)
    assert trouble.code == "unknown_name"
