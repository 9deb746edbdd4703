"""The grammar of bilingual texts: bound figures, source references and declared names; no other number.

``[[figure.key]]`` a bound figure · ``[@R1]`` a source · ``{{name:E2F}}`` a name · ``{{date:2026-10-01}}`` a day ·
``{{code:docs/plan.md}}`` a path or identifier · ``{{formula:M−B}}``. Whatever else a text holds is prose. What each
declared piece may hold: ``evidence.binding.declared``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from evidence.binding.declared import CODE, DATE, DECLARED, FORMULA, NAME, check_declared
from evidence.binding.glyphs import mixed_words
from evidence.binding.numbers import bare_numbers

__all__ = [
    "CODE", "DATE", "FIGURE", "FORMULA", "KEY", "NAME", "SOURCE", "TEXT", "Piece", "Trouble", "check_declared",
    "check_pieces", "check_text", "figure_keys", "parse_text", "source_references",
]  # fmt: skip
TEXT, FIGURE, SOURCE = "text", "figure", "source"
KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
REFERENCE = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,31}")
_TOKEN = re.compile(
    rf"\[\[(?P<figure>{KEY.pattern})\]\]|\[@(?P<source>{REFERENCE.pattern})\]"
    r"|\{\{(?P<kind>name|date|code|formula):(?P<declared>[^{}\n]{1,200})\}\}"
)
_BROKEN = re.compile(r"\[\[|\]\]|\{\{|\}\}|\[@")


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
    for start, stop in mixed_words(piece.raw):
        word = piece.raw[start:stop]
        message = f"text: got {word!r}, whose letters come from more than one alphabet; expected a word of one alphabet"
        found.append(Trouble("mixed_script", message, piece.start + start, piece.start + stop, word))
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
        elif piece.kind in DECLARED:
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
