"""What the page of one version of a source shows: its lines with quotations, its values with pointers, or its table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evidence.actions.sources import BytesUnavailable, lying_bytes
from evidence.binding.selectors import SelectorError
from evidence.models import Excerpt, ExcerptHead, Source, SourceCheck, SourceVersion
from evidence.presenters.source_values import JsonLine, json_values
from evidence.presenters.sources import STATES
from evidence.reading import (
    TEXTS,
    WHOLE_MOST,
    Line,
    Mark,
    Text,
    marks_of,
    merged,
    quotes_in,
    shown_lines,
    text_of_bytes,
    windows,
)
from runs.presenters.states import TABLES, StateView

AROUND, TOP = 4, 40  # lines beside a quotation; lines shown where there is none
LINES_MOST, ROWS_MOST, CELL_MOST = 1_000, 500, 500
_NUMBER = re.compile(r"[-+]?[0-9][0-9_,.]*(?:[eE][-+]?[0-9]{1,4})?%?")
CONTEXT, WHOLE = "context", "whole"
LINES, VALUES, TABLE = "lines", "values", "table"
EXCERPT_STATES: dict[str, StateView] = {
    ExcerptHead.FOUND: StateView(_("found where it was"), "check", "verified"),
    ExcerptHead.MOVED: StateView(_("moved"), "arrow", "warned"),
    ExcerptHead.ORPHAN: StateView(_("not found any more"), "notequal", "drifted"),
    ExcerptHead.TRANSCRIBED: TABLES["evidence"]["claimed"],
    ExcerptHead.UNAVAILABLE: StateView(_("bytes are gone"), "warn", "failed"),
}


@dataclass(frozen=True)
class Quotation:
    """An excerpt of the version. ``anchor``: where on this page it stands; None where it is not shown here."""

    excerpt: Excerpt
    state: StateView
    place: str
    anchor: str | None


@dataclass(frozen=True)
class Cell:
    """A cell of a table. ``quotes``: quotations that are this cell; ``cut``: code points that are left out."""

    text: str
    quotes: tuple[int, ...] = ()
    cut: int = 0

    @property
    def kind(self) -> str:
        """How it is set: num to the right, long with line breaks."""
        if _NUMBER.fullmatch(self.text):
            return "num"
        return "long" if len(self.text) > 48 else ""


@dataclass(frozen=True)
class TableRow:
    """A row and the line of the source that it ends on."""

    line: int
    cells: list[Cell]


@dataclass
class Body:
    """What stands in the middle of the page, in one of three ways; ``trouble``: why nothing does."""

    way: str = LINES
    ways: list[str] = field(default_factory=lambda: [LINES])
    whole: bool = False
    lines: list[Line] = field(default_factory=list)
    values: list[JsonLine] = field(default_factory=list)
    at: str = ""
    parts: list[str] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)
    total: int = 0
    first: int = 1
    after: int = 0
    cut: bool = False
    large: bool = False
    trouble: str = ""
    marked: set[int] = field(default_factory=set)

    @property
    def last(self) -> int:
        """Number of the last line shown."""
        return self.lines[-1].number if self.lines else 0

    @property
    def previous(self) -> int | None:
        """First line of the page before, in the whole file."""
        return max(1, self.first - LINES_MOST) if self.whole and self.first > 1 else None

    @property
    def following(self) -> int | None:
        """First line of the page after, in the whole file."""
        return self.last + 1 if self.whole and self.last < self.total else None


def ways_of(source: Source, size: int | None) -> list[str]:
    """The ways in which a form can be looked at, the best first."""
    small = (size or 0) <= WHOLE_MOST
    return {"json": [VALUES, LINES], "csv": [TABLE, LINES]}.get(source.form, [LINES]) if small else [LINES]


def body_of(
    version: SourceVersion, excerpts: Sequence[Excerpt], *, way: str = "", show: str = "", first: int = 1, at: str = "",
) -> Body:  # fmt: skip
    """The middle of the page. ``first``: first line of the whole file to show; ``at``: pointer of the part to show."""
    source = version.source
    ways = ways_of(source, version.size)
    body = Body(way if way in ways else ways[0], ways)
    try:
        if not version.held:
            raise BytesUnavailable(
                gettext("A hash was recorded elsewhere and the bytes are not held here; quotations are transcriptions.")
            )
        if source.form in TEXTS and (version.size or 0) > WHOLE_MOST:
            _of_large(body, version, excerpts, show, first)
            return body
        data = lying_bytes(version)
        if data is None:
            raise BytesUnavailable(gettext("The bytes are gone; the store holds none of this hash."))
        text = text_of_bytes(data, source.form)
        if body.way == VALUES:
            values = json_values(data, excerpts, at)
            body.values, body.cut, body.at, body.parts = values.lines, values.cut, values.at, values.parts
            body.marked = {quote for line in body.values for quote in line.quotes}
        elif body.way == TABLE:
            _table(body, text, excerpts)
        else:
            _of_text(body, text, source.form, excerpts, show, first)
    except (BytesUnavailable, FileNotFoundError) as error:
        body.trouble = str(error)
    except SelectorError as error:
        if body.way != LINES:  # no JSON or no table after all: its lines can be read
            return body_of(version, excerpts, way=LINES, show=show, first=first)
        body.trouble = gettext("This form has no text to show. %(why)s") % {"why": error}
    return body


def _ranges(body: Body, places: Sequence[tuple[int, int]], total: int, show: str, first: int) -> list[tuple[int, int]]:
    """Which lines are shown: a page of the whole file, or those around each quotation."""
    short = total <= TOP
    body.whole = show == WHOLE or (show != CONTEXT and not places) or short
    if body.whole:
        body.first = max(1, min(first, max(1, total)))
        return merged([(body.first, body.first + LINES_MOST - 1)], total)
    near = [(low - AROUND, high + AROUND) for low, high in places] or [(1, TOP)]
    return merged(near, total)


def _of_text(body: Body, text: Text, form: str, excerpts: Sequence[Excerpt], show: str, first: int) -> None:
    spans = quotes_in(text.text, excerpts)
    marks = marks_of(text.text, spans)
    every = text.lines
    touched: dict[int, list[int]] = {}
    for line, found in marks.items():
        for mark in found:
            touched.setdefault(mark.quote, []).append(line)
    places = [(min(lines), max(lines)) for lines in touched.values()]
    ranges = _ranges(body, places, len(every), show, first)
    lines = {number: every[number - 1] for low, high in ranges for number in range(low, high + 1)}
    _finish(body, lines, marks, len(every), form, text.pages)


def _of_large(body: Body, version: SourceVersion, excerpts: Sequence[Excerpt], show: str, first: int) -> None:
    """Only the lines that are shown are read; a quotation is searched where it was last found."""
    body.large = True
    places = [
        (head.first_line, head.last_line)
        for excerpt in excerpts
        if (head := head_of(excerpt)) is not None and head.first_line and head.last_line
    ]
    ranges = _ranges(body, places, 2**31, show, first)
    lines, total = windows(version, ranges)
    marks: dict[int, list[Mark]] = {}
    for low, high in ranges:
        part = [lines[number] for number in range(low, min(high, total) + 1) if number in lines]
        text = "\n".join(part)
        for line, found in marks_of(text, quotes_in(text, excerpts), low).items():
            marks.setdefault(line, []).extend(found)
    _finish(body, lines, marks, total, version.source.form, ())


def _finish(
    body: Body, lines: dict[int, str], marks: dict[int, list[Mark]], total: int, form: str, pages: Sequence[int]
) -> None:
    shown = sorted(lines)[:LINES_MOST]
    body.cut = len(lines) > len(shown)
    body.total = total
    body.lines = shown_lines({number: lines[number] for number in shown}, marks, form=form, pages=pages)
    body.after = total - body.last
    body.marked = {mark.quote for number in shown for mark in marks.get(number, ())}


def _table(body: Body, text: Text, excerpts: Sequence[Excerpt]) -> None:
    """A CSV with its cells; a row that is longer or shorter than the header stays as it is."""
    reader = csv.reader(io.StringIO(text.text), strict=True)
    try:
        body.header = [name[:CELL_MOST] for name in next(reader, [])]
        wanted = _cells_of(body.header, excerpts)
        for row in reader:
            body.total += 1
            if len(body.rows) < ROWS_MOST or any(_holds(row, place, key) for place, key, _cell, _n in wanted):
                body.rows.append(TableRow(reader.line_num, _row(row, wanted)))
    except csv.Error as error:
        raise SelectorError(f"source: got no table ({error}), expected CSV") from error
    body.cut = body.total > len(body.rows)
    body.marked = {quote for row in body.rows for cell in row.cells for quote in cell.quotes}


def _cells_of(header: list[str], excerpts: Sequence[Excerpt]) -> list[tuple[int, str, int, int]]:
    """(place of the key column, key, place of the column, quotation) of each cell that an excerpt names."""
    found = []
    for number, excerpt in enumerate(excerpts):
        names = excerpt.selector
        if excerpt.form == Excerpt.CELL and header.count(names["key_column"]) == header.count(names["column"]) == 1:
            found.append((header.index(names["key_column"]), names["key"], header.index(names["column"]), number))
    return found


def _holds(row: list[str], place: int, key: str) -> bool:
    return place < len(row) and row[place] == key


def _row(row: list[str], wanted: Sequence[tuple[int, str, int, int]]) -> list[Cell]:
    cells = []
    for at, text in enumerate(row):
        quotes = tuple(number for place, key, column, number in wanted if column == at and _holds(row, place, key))
        cells.append(Cell(text[:CELL_MOST], quotes, max(0, len(text) - CELL_MOST)))
    return cells


def head_of(excerpt: Excerpt) -> ExcerptHead | None:
    """What the last check found; None where none was made."""
    return getattr(excerpt, "head", None)


def place_words(excerpt: Excerpt) -> str:
    """Where an excerpt stands, in words: lines, pointer or cell."""
    head, selector = head_of(excerpt), excerpt.selector
    if excerpt.form == Excerpt.POINTER:
        return str(selector["pointer"]) or gettext("the whole document")
    if excerpt.form == Excerpt.CELL:
        return f"{selector['key_column']} = {selector['key']}, {selector['column']}"
    first = head.first_line if head is not None and head.first_line else selector.get("line")
    last = head.last_line if head is not None and head.last_line else first
    if not first:
        return ""
    if first == last:
        return gettext("line %(n)s") % {"n": first}
    return gettext("lines %(first)s to %(last)s") % {"first": first, "last": last}


def quotations(excerpts: Sequence[Excerpt], body: Body) -> list[Quotation]:
    """The excerpts of the version as the page lists them."""
    found = []
    for number, excerpt in enumerate(excerpts):
        head = head_of(excerpt)
        default = ExcerptHead.FOUND if excerpt.kind == Excerpt.MATCHED else ExcerptHead.TRANSCRIBED
        state = EXCERPT_STATES[head.state if head is not None else default]
        anchor = f"q{number + 1}" if number in body.marked else None
        found.append(Quotation(excerpt, state, place_words(excerpt), anchor))
    return found


def excerpts_of(version: SourceVersion) -> list[Excerpt]:
    """Excerpts of a version in the order in which they were taken. One query."""
    return list(Excerpt.objects.filter(version=version).select_related("head").order_by("pk"))


def checks_of(version: SourceVersion) -> list[tuple[SourceCheck, StateView]]:
    """The newest checks of a version with what each found. One query."""
    rows = version.checks.select_related("actor").order_by("-pk")[:20]
    return [(check, STATES[check.state]) for check in rows]
