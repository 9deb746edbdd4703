"""The source of a review: its lines around each quotation, highlighted, with numbers, or why there are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from evidence.binding.places import find, stored_bytes
from evidence.models import Excerpt, Figure, Source, SourceVersion
from evidence.presenters.reviews import SOURCE_STATES
from evidence.reading import Part as TextPart
from evidence.reading import Text, marks_of, merged, shown_lines, text_of_bytes
from runs.presenters.states import StateView
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import ContractError

AROUND = 13  # lines shown on either side of a quotation
LINES_MOST = 4000  # lines of a whole source on one page
QUOTES_MOST = 40
BOUND = 1000  # number of the marks of bound numbers, beyond those of quotations


@dataclass(frozen=True)
class Part:
    """A run of text of one line. ``quote``: number of the quotation that it belongs to, 0 for none.

    ``bound``: the number that a figure is bound to. ``begins``: number of the quotation that begins here.
    ``also``: of another quotation than the one under review.
    """

    text: str
    quote: int = 0
    bound: bool = False
    begins: int = 0
    also: bool = False


@dataclass(frozen=True)
class SourceLine:
    """``skipped``: lines between the one before and this one that are not shown; ``cut``: code points at its end."""

    number: int
    parts: tuple[Part, ...]
    marked: bool
    skipped: int = 0
    cut: int = 0


@dataclass(frozen=True)
class Quote:
    """One excerpt of this version: where it was found, or the trouble that kept it from being found."""

    number: int
    excerpt: Excerpt
    first_line: int | None
    last_line: int | None
    trouble: str
    main: bool


@dataclass(frozen=True)
class SourcePane:
    """What the right half shows. ``version`` None: the evidence stands on receipts or figures, without lines."""

    source: Source | None
    version: SourceVersion | None
    state: StateView | None
    lines: tuple[SourceLine, ...]
    total: int
    quotes: tuple[Quote, ...]
    trouble: str
    whole: bool
    cut: bool
    same_bytes: bool

    @property
    def main(self) -> Quote | None:
        """The quotation under review."""
        return next((item for item in self.quotes if item.main), None)

    @property
    def first(self) -> int:
        """Number of the first line shown."""
        return self.lines[0].number if self.lines else 0

    @property
    def last(self) -> int:
        """Number of the last line shown."""
        return self.lines[-1].number if self.lines else 0


EMPTY = SourcePane(None, None, None, (), 0, (), "", False, False, False)


def _text_of(version: SourceVersion) -> tuple[bytes | None, Text | None, str]:
    """(bytes, text, trouble) of a version: what lies under its name now, whatever it hashes to."""
    if not version.held:
        return None, None, gettext("A hash was recorded elsewhere; the bytes are not held here.")
    data = stored_bytes(version)
    if data is None:
        return None, None, gettext("The bytes are gone; the store holds none of this hash.")
    try:
        return data, text_of_bytes(data, version.source.form), ""
    except ContractError as error:
        return data, None, str(error)


def _found(excerpt: Excerpt, data: bytes, text: str) -> tuple[int, int, int | None, int | None, str]:
    """(start, stop, first line, last line, trouble); start equals stop where nothing is to be marked."""
    try:
        said, span = find(excerpt.form, excerpt.selector, data, text)
    except ContractError as error:
        return 0, 0, None, None, str(error)
    if span is not None:
        return span.start, span.stop, span.first_line, span.last_line, ""
    places = [match.start() for match in re.finditer(re.escape(said), text)] if said else []
    if len(places) != 1:  # a value by pointer or cell that stands in many places of the text is named, not marked
        return 0, 0, None, None, ""
    line = text.count("\n", 0, places[0]) + 1
    return places[0], places[0] + len(said), line, line + said.count("\n"), ""


def _bound(excerpt: Excerpt, start: int, figures: Sequence[Figure]) -> list[tuple[int, int]]:
    """Spans of the numbers inside a quotation that figures are bound to."""
    found = []
    for figure in figures:
        binding: dict[str, Any] = figure.current.binding if figure.current is not None else {}
        if binding.get("type") != "excerpt" or binding.get("excerpt") != excerpt.key:
            continue
        number = str(binding.get("number", ""))
        places = list(re.finditer(rf"(?<![\d.,]){re.escape(number)}(?!\d)", excerpt.text)) if number else []
        nth = int(binding.get("occurrence") or 1) - 1
        if 0 <= nth < len(places):
            found.append((start + places[nth].start(), start + places[nth].end()))
    return found


def _lines(
    text: Text, form: str, spans: Sequence[tuple[int, int, int]], whole: bool, has_main: bool
) -> tuple[tuple[SourceLine, ...], int, bool]:
    """(lines shown, lines of the source, whether lines of a whole source are left out)."""
    raw = text.lines
    marks = marks_of(text.text, spans)
    marked = sorted({number for number, on in marks.items() if any(mark.quote < BOUND for mark in on)})
    ranges = [(number - AROUND, number + AROUND) for number in marked] or [(1, 2 * AROUND + 1)]
    wanted = [n for low, high in merged([(1, len(raw))] if whole else ranges, len(raw)) for n in range(low, high + 1)]
    lines = {number: raw[number - 1] for number in wanted[:LINES_MOST]}
    shown = shown_lines(lines, marks, form=form, pages=text.pages)
    found = [
        SourceLine(
            line.number,
            tuple(_part(part, has_main) for part in line.parts),
            line.number in marked,
            line.skipped,
            line.cut,
        )
        for line in shown
    ]
    return tuple(found), len(raw), len(wanted) > LINES_MOST


def _part(part: TextPart, has_main: bool) -> Part:
    quotes = [number for number in part.quotes if number < BOUND]
    begins = [number for number in part.begins if number < BOUND]
    quote = quotes[0] if quotes else 0
    return Part(part.text, quote, BOUND in part.quotes, begins[0] if begins else 0, has_main and quote > 1)


def source_pane(
    version: SourceVersion | None, main: Excerpt | None, excerpts: Sequence[Excerpt], figures: Sequence[Figure],
    *, whole: bool = False,
) -> SourcePane:  # fmt: skip
    """The pane of a version, at ``main``; ``excerpts``: others of this version that the claim stands on."""
    if version is None:
        return EMPTY
    source = version.source
    newest = source.current_id == version.pk
    state = SOURCE_STATES[source.state if newest else "superseded"]
    data, text, trouble = _text_of(version)
    every = {item.pk: item for item in ([main] if main is not None else []) + list(excerpts)}
    quotes, spans = [], []
    for number, excerpt in enumerate(list(every.values())[:QUOTES_MOST], 1):
        start, stop, first, last, why = (
            (0, 0, None, None, "") if text is None else _found(excerpt, data or b"", text.text)
        )
        quotes.append(Quote(number, excerpt, first, last, why, main is not None and excerpt.pk == main.pk))
        if stop > start:
            spans.append((start, stop, number))
            spans += [(low, high, BOUND) for low, high in _bound(excerpt, start, figures)]
    lines, total, cut = ((), 0, False) if text is None else _lines(text, source.form, spans, whole, main is not None)
    same = data is not None and sha256_hex(data) == version.sha256
    return SourcePane(source, version, state, lines, total, tuple(quotes), trouble, whole, cut, same)
