"""Text of sources for people and selectors: lines with highlighted places, PDF text by page, windows of large files."""

from __future__ import annotations

import io
import re
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evidence.actions.sources import read_version
from evidence.binding.selectors import SelectorError, TextQuote, decode, find_quote
from evidence.models import Excerpt, SourceVersion
from runs.storage import blob_store
from workbench.contracts.canonical import sha256_hex

WHOLE_MOST = 4 * 1024 * 1024  # bytes of a text that is searched whole for a page; of a larger one only windows are read
LINE_MOST = 4_000  # code points of one line that are shown
PAGES_MOST, PDF_TEXT_MOST = 500, 5_000_000  # pages and code points of a PDF's text layer
TEXTS = ("text", "markdown", "latex", "json", "jsonl", "csv")


class Unreadable(SelectorError):
    """Bytes that give no text: a binary, a PDF without a text layer, or one that cannot be parsed."""


@dataclass(frozen=True)
class Text:
    """What selectors search. ``pages``: line from 1 on which each page of a PDF begins; empty for other forms."""

    text: str
    pages: tuple[int, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Lines without their ends; a last end of line begins no line."""
        found = self.text.split("\n")
        return found[:-1] if found[-1] == "" else found


@dataclass(frozen=True)
class Mark:
    """A highlighted place of one line: columns ``start`` to ``stop`` belong to quotation ``quote`` (from 0)."""

    start: int
    stop: int
    quote: int
    first: bool = True


@dataclass(frozen=True)
class Part:
    """A run of a line. ``quotes``: quotations that it belongs to; ``begins``: those that begin with it."""

    text: str
    quotes: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()


@dataclass(frozen=True)
class Line:
    """``skipped``: lines left out before it; ``cut``: code points left out at its end; ``page``: one that begins."""

    number: int
    parts: tuple[Part, ...]
    kind: str = ""
    skipped: int = 0
    cut: int = 0
    page: int | None = None


_pdf_texts: OrderedDict[str, Text] = OrderedDict()


def text_of_bytes(data: bytes, form: str) -> Text:
    """Text of bytes of a form. Raises ``Unreadable``, or ``SelectorError`` for bytes that are no UTF-8."""
    if form == "pdf":
        return _pdf_text(data)
    if form not in TEXTS:
        raise Unreadable(f"source: got form {form}, expected one that holds text: {', '.join(TEXTS)}, pdf")
    return Text(decode(data))


def text_of(version: SourceVersion) -> Text:
    """Text of a held version. Raises ``BytesUnavailable``, or as ``text_of_bytes``."""
    return text_of_bytes(read_version(version), version.source.form)


def _pdf_text(data: bytes) -> Text:
    """Text layer, a page after the other; the last few are kept, since bytes of one hash have one text."""
    name = sha256_hex(data)
    if name not in _pdf_texts:
        _pdf_texts[name] = _extracted(data)
        while len(_pdf_texts) > 4:
            _pdf_texts.popitem(last=False)
    return _pdf_texts[name]


def _extracted(data: bytes) -> Text:
    from pypdf import PdfReader  # only where a PDF is read

    texts: list[str] = []
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("source: got an encrypted PDF, expected one that opens without a password")
        for number, page in enumerate(reader.pages, 1):
            if number > PAGES_MOST or sum(map(len, texts)) > PDF_TEXT_MOST:
                raise Unreadable(f"source: got a PDF of more than {PAGES_MOST} pages or {PDF_TEXT_MOST} code points")
            texts.append(page.extract_text().replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").strip("\n"))
    except SelectorError:
        raise
    except Exception as error:  # a damaged file may raise anything
        raise Unreadable(f"source: got a PDF that cannot be read ({type(error).__name__}), expected one") from error
    if not any(text.strip() for text in texts):
        raise Unreadable("source: got a PDF without a text layer, expected text (a scan has to be read by a person)")
    pages, line = [], 1
    for text in texts:
        pages.append(line)
        line += text.count("\n") + 1
    return Text("\n".join(texts), tuple(pages))


def marks_of(text: str, spans: Iterable[tuple[int, int, int]], first_line: int = 1) -> dict[int, list[Mark]]:
    """Line -> marks of (start, stop, quotation) in ``text``, whose first line has the number ``first_line``."""
    found: dict[int, list[Mark]] = {}
    for start, stop, quote in spans:
        line = text.count("\n", 0, start) + first_line
        begin = text.rfind("\n", 0, start) + 1
        place, first = start, True
        while place < stop:
            end = text.find("\n", place)
            end = len(text) if end == -1 else end
            found.setdefault(line, []).append(Mark(place - begin, min(stop, end) - begin, quote, first))
            place, begin, line, first = end + 1, end + 1, line + 1, False
    return found


def parts_of(line: str, marks: Sequence[Mark]) -> tuple[Part, ...]:
    """A line cut at the edges of its marks; they may overlap."""
    edges = {0, len(line)}
    edges.update(min(edge, len(line)) for mark in marks for edge in (mark.start, mark.stop))
    found = []
    for start, stop in pairwise(sorted(edges)):
        over = [mark for mark in marks if mark.start <= start and stop <= mark.stop]
        begins = tuple(mark.quote for mark in over if mark.first and mark.start == start)
        found.append(Part(line[start:stop], tuple(mark.quote for mark in over), begins))
    return tuple(found) or (Part(""),)


def quotes_in(text: str, excerpts: Sequence[Excerpt]) -> list[tuple[int, int, int]]:
    """(start, stop, place among ``excerpts``) of each quotation that stands in the text exactly once."""
    found = []
    for place, excerpt in enumerate(excerpts):
        if excerpt.form != Excerpt.QUOTE:
            continue
        selector = excerpt.selector
        quote = TextQuote(selector["exact"], selector.get("prefix") or "", selector.get("suffix") or "")
        try:
            span = find_quote(text, quote)
        except SelectorError:
            continue
        found.append((span.start, span.stop, place))
    return found


def merged(ranges: Iterable[tuple[int, int]], last: int) -> list[tuple[int, int]]:
    """Ranges of lines, both ends included, sorted, cut to 1..last, without overlaps."""
    found: list[tuple[int, int]] = []
    for low, high in sorted((max(1, low), min(last, high)) for low, high in ranges):
        if low > high:
            continue
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def windows(version: SourceVersion, ranges: Sequence[tuple[int, int]]) -> tuple[dict[int, str], int]:
    """(lines of ``ranges`` by number, lines in all) of a text in the store, read once and never held whole.

    The bytes are not hashed here: the newest check says whether they are those of the version.
    """
    wanted, found, total, at = list(ranges), {}, 0, 0
    with blob_store().path(version.sha256).open("rb") as file:
        for total, raw in enumerate(file, 1):
            while at < len(wanted) and wanted[at][1] < total:
                at += 1
            if at < len(wanted) and wanted[at][0] <= total:
                found[total] = raw.decode("utf-8", "replace").rstrip("\n")
    return found, total


def shown_lines(
    lines: Mapping[int, str], marks: Mapping[int, Sequence[Mark]], *, form: str, pages: Collection[int] = ()
) -> list[Line]:
    """Lines by number as a page shows them: what each is, cut where too long, with what is left out between them."""
    starts = {line: number for number, line in enumerate(pages, 1)}
    kinds = structure(form, lines)
    found, before = [], 0
    for number in sorted(lines):
        text = lines[number].rstrip("\r")
        cut = max(0, len(text) - LINE_MOST)
        parts = parts_of(text[:LINE_MOST], marks.get(number, ()))
        skipped = number - before - 1
        found.append(Line(number, parts, kinds.get(number, ""), skipped, cut, starts.get(number)))
        before = number
    return found


_MARKDOWN = (
    ("heading", re.compile(r"#{1,6}\s")),
    ("comment", re.compile(r"\s*<!--")),
    ("quoted", re.compile(r"\s*>")),
    ("item", re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])\s")),
    ("table", re.compile(r"\s*\|.*\|\s*$")),
)
_LATEX = (
    ("heading", re.compile(r"\s*\\(?:part|chapter|(?:sub){0,2}section|paragraph|title)\b")),
    ("comment", re.compile(r"\s*%")),
    ("item", re.compile(r"\s*\\item\b")),
    ("command", re.compile(r"\s*\\(?:begin|end|usepackage|documentclass|input|include|bibliography|label)\b")),
)
_FENCE = re.compile(r"\s*(?:```|~~~)")


def structure(form: str, lines: Mapping[int, str]) -> dict[int, str]:
    """What each line of Markdown or LaTeX is: heading, comment, item, quoted, table, command, code. Nothing else."""
    rules = {"markdown": _MARKDOWN, "latex": _LATEX}.get(form, ())
    found, fenced = {}, False
    for number in sorted(lines) if rules else ():
        line = lines[number]
        if form == "markdown" and _FENCE.match(line):
            fenced = not fenced
            found[number] = "code"
        elif fenced:
            found[number] = "code"
        else:
            kind = next((name for name, rule in rules if rule.match(line)), "")
            if kind:
                found[number] = kind
    return found
