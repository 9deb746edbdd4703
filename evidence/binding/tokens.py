"""The grammar of bilingual texts: bound figures, source references and declared names; no other number.

``[[figure.key]]`` a bound figure · ``[@R1]`` a source · ``{{name:E2F}}`` a name · ``{{date:2026-10-01}}`` a day ·
``{{code:docs/plan.md}}`` a path or identifier · ``{{formula:M−B}}``. Whatever else a text holds is prose.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from evidence.binding.numbers import bare_numbers

TEXT, FIGURE, SOURCE, NAME, DATE, CODE, FORMULA = "text", "figure", "source", "name", "date", "code", "formula"
KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
REFERENCE = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,31}")
_TOKEN = re.compile(
    rf"\[\[(?P<figure>{KEY.pattern})\]\]|\[@(?P<source>{REFERENCE.pattern})\]"
    r"|\{\{(?P<kind>name|date|code|formula):(?P<declared>[^{}\n]{1,200})\}\}"
)
_BROKEN = re.compile(r"\[\[|\]\]|\{\{|\}\}|\[@")
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_DAY_OF_YEAR = re.compile(r"(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
_MEASURED = re.compile(r"[-+−~≈<>]?\d+(?:[.,]\d+)*[A-Za-z%]{0,2}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_GIVEN = re.compile(r"[=≈≃<>≤≥~]\s*[-+−]?(?!(?:[01](?![\d.,])))[\d.]")


@dataclass(frozen=True)
class Piece:
    """A part of a text: ``raw`` as it stands from ``start``, ``value`` what it names or says."""

    kind: str
    value: str
    raw: str
    start: int

    @property
    def stop(self) -> int:
        """Where it ends."""
        return self.start + len(self.raw)


@dataclass(frozen=True)
class Trouble:
    """What a text may not say: ``code`` for programs, ``message`` says what to do; code points of the text."""

    code: str
    message: str
    start: int = 0
    stop: int = 0
    text: str = ""

    def __str__(self) -> str:
        return self.message


def parse_text(text: str) -> list[Piece]:
    """Pieces in order; their ``raw`` joined is the text again. What is no whole token is prose."""
    pieces: list[Piece] = []
    place = 0
    for match in _TOKEN.finditer(text):
        if match.start() > place:
            between = text[place : match.start()]
            pieces.append(Piece(TEXT, between, between, place))
        kind = match["kind"] or (FIGURE if match["figure"] is not None else SOURCE)
        value = match["declared"] or match["figure"] or match["source"]
        pieces.append(Piece(kind, value, match.group(), match.start()))
        place = match.end()
    if place < len(text):
        pieces.append(Piece(TEXT, text[place:], text[place:], place))
    return pieces


def figure_keys(texts: Iterable[str]) -> list[str]:
    """Keys of the figures that the texts name, each once, in order."""
    found = (piece.value for text in texts for piece in parse_text(text) if piece.kind == FIGURE)
    return list(dict.fromkeys(found))


def source_references(texts: Iterable[str]) -> list[str]:
    """References of the sources that the texts name, each once, in order."""
    found = (piece.value for text in texts for piece in parse_text(text) if piece.kind == SOURCE)
    return list(dict.fromkeys(found))


def _has_letter(value: str) -> bool:
    return any(char.isalpha() for char in value)


def _is_all_number(value: str) -> bool:
    """Whether nothing is left of a value once its numbers are taken out."""
    left, place = "", 0
    for item in bare_numbers(value):
        left, place = left + value[place : item.start], item.stop
    return not _has_letter(left + value[place:])


def _name(value: str) -> str | None:
    if not _has_letter(value) or _is_all_number(value):
        return "a name that holds a letter and is no number; a number is bound as [[figure.key]]"
    if any(sign in value for sign in "%‰=≈<>±"):
        return "a name without per cent and comparison signs; a number is bound as [[figure.key]]"
    return None


def _date(value: str) -> str | None:
    for part in value.split("/", 1):
        if _MONTH.fullmatch(part) or _DAY_OF_YEAR.fullmatch(part):
            continue
        try:
            if len(part) != 10:
                raise ValueError(part)
            date.fromisoformat(part)
        except ValueError:
            return "a day as 2026-10-01, a month as 2026-10, a day of the year as 10-01, or two of them joined by /"
    return None


def _code(value: str) -> str | None:
    if any(char.isspace() for char in value):
        return "a path or identifier without spaces"
    if not _COMMIT.fullmatch(value) and (not _has_letter(value) or _MEASURED.fullmatch(value) or "%" in value):
        return "a path or identifier; a number is bound as [[figure.key]]"
    return None


def _formula(value: str) -> str | None:
    if not _has_letter(value) or _is_all_number(value):
        return "a formula that holds a variable; a number is bound as [[figure.key]]"
    if _GIVEN.search(value):
        return "a formula that gives no value (only = 0 or = 1 as a condition); a value is bound as [[figure.key]]"
    return None


_DECLARED = {NAME: _name, DATE: _date, CODE: _code, FORMULA: _formula}


def check_declared(kind: str, value: str) -> str | None:
    """What a declared piece should have been; None where it is right."""
    return _DECLARED[kind](value)


def _prose(piece: Piece, language: str) -> list[Trouble]:
    found = [
        Trouble(
            "token",
            f"text: got {match.group()!r}, which begins or ends no token; expected [[figure.key]], [@R1] or "
            "{{name:…}}, {{date:…}}, {{code:…}}, {{formula:…}}",
            piece.start + match.start(), piece.start + match.end(), match.group(),
        )
        for match in _BROKEN.finditer(piece.raw)
    ]  # fmt: skip
    for item in bare_numbers(piece.raw, language):
        found.append(
            Trouble(
                "bare_number",
                f"text: got {item.text!r} ({item.why}), expected a bound figure: bind the number on /figures/new/ and "
                "write [[figure.key]]; a name, day, path or formula is declared as {{name:…}}, {{date:…}}, "
                "{{code:…}}, {{formula:…}}",
                piece.start + item.start, piece.start + item.stop, item.text,
            )
        )  # fmt: skip
    return found


def check_pieces(
    text: str,
    language: str,
    *,
    figures: Collection[str],
    references: Collection[str],
    names: Collection[str] | None = None,
) -> list[Trouble]:
    """Everything that a text may not hold, in order. ``figures`` and ``references``: those that exist in the study.

    ``names``: the names that the document declares; None: any name of the right form.
    """
    found: list[Trouble] = []
    for piece in parse_text(text):
        at: dict[str, Any] = {"start": piece.start, "stop": piece.stop, "text": piece.raw}
        if piece.kind == TEXT:
            found.extend(_prose(piece, language))
        elif piece.kind == FIGURE and piece.value not in figures:
            message = f"figure: got {piece.value!r}, expected the key of a figure here; bind it on /figures/new/"
            found.append(Trouble("unknown_figure", message, **at))
        elif piece.kind == SOURCE and piece.value not in references:
            message = f"source: got {piece.value!r}, expected the reference of a source of this study"
            found.append(Trouble("unknown_source", message, **at))
        elif piece.kind in _DECLARED:
            expected = check_declared(piece.kind, piece.value)
            if expected is not None:
                found.append(Trouble(piece.kind, f"{piece.kind}: got {piece.value[:80]!r}, expected {expected}", **at))
            elif piece.kind == NAME and names is not None and piece.value not in names:
                message = f"name: got {piece.value[:80]!r}, expected a name that the document declares with its reason"
                found.append(Trouble("unknown_name", message, **at))
    return found


def check_text(study: Any, text: str, language: str, *, names: Collection[str] | None = None) -> list[Trouble]:
    """``check_pieces`` against what the study has: one query for its figures, one for its sources, where named."""
    from evidence.models import Figure, Source

    keys, references = figure_keys([text]), source_references([text])
    known = set(Figure.objects.filter(study=study, key__in=keys).values_list("key", flat=True)) if keys else set()
    named: set[str] = set()
    if references:
        named = set(Source.objects.filter(study=study, reference__in=references).values_list("reference", flat=True))
    return check_pieces(text, language, figures=known, references=named, names=names)
