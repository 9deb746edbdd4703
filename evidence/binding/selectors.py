"""Selectors: exact or orphan. A quotation is found exactly once in its source's text, or the excerpt is refused.

Text quotes follow the Web Annotation model (exact, prefix, suffix); positions count code points. Nothing is
matched approximately: an approximate match binds a sentence to what it does not say.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench.contracts.errors import ContractError

MOST_TEXT = 20_000_000  # code points of a source that is searched
CONTEXT = 64  # code points of prefix and suffix that ``quote_at`` stores


class SelectorError(ContractError):
    """A selector that finds nothing, or more than one place, or whose source cannot be read that way."""


@dataclass(frozen=True)
class TextQuote:
    """``exact`` with what stands directly before and after it; ``line`` is a hint from 1 that decides nothing."""

    exact: str
    prefix: str = ""
    suffix: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Span:
    """Where a quotation stands: code points ``start`` to ``stop`` and lines from 1, last one included."""

    start: int
    stop: int
    first_line: int
    last_line: int


def decode(data: bytes) -> str:
    """UTF-8 text of a source. Raises ``SelectorError`` for bytes that are none, or too many of them."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SelectorError(f"source: got a byte at {error.start} that is no UTF-8, expected text") from error
    if len(text) > MOST_TEXT:
        raise SelectorError(f"source: got {len(text)} code points, expected at most {MOST_TEXT}")
    return text


def _places(text: str, wanted: str) -> Iterator[int]:
    start = text.find(wanted)
    while start != -1:
        yield start
        start = text.find(wanted, start + 1)


def find_quote(text: str, quote: TextQuote) -> Span:
    """The one place of a quotation, its prefix and suffix included in the search.

    Raises ``SelectorError`` where there is none or more than one; the message says how many and on which lines.
    """
    if not quote.exact:
        raise SelectorError("quote.exact: got nothing, expected the quoted text")
    whole = quote.prefix + quote.exact + quote.suffix
    found = [place + len(quote.prefix) for place in _places(text, whole)]
    if len(found) == 1:
        start, stop = found[0], found[0] + len(quote.exact)
        first = text.count("\n", 0, start) + 1
        return Span(start, stop, first, first + text.count("\n", start, max(start, stop - 1)))
    if found:
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in found[:5])
        raise SelectorError(
            f"quote: got {len(found)} places (lines {lines}), expected exactly one: add text before or after it"
        )
    alone = sum(1 for _ in _places(text, quote.exact))
    if alone:
        raise SelectorError(f"quote: got {alone} places of the text alone, none with its prefix and suffix")
    raise SelectorError("quote: got no place, expected exactly one")


def quote_at(text: str, start: int, stop: int) -> TextQuote:
    """A selector for a span, with as little context as makes it unique, at most ``CONTEXT`` on either side.

    Raises ``SelectorError`` for an empty span or one that no such context makes unique.
    """
    if not 0 <= start < stop <= len(text):
        raise SelectorError(f"span: got {start}..{stop}, expected a part of 0..{len(text)}")
    exact, line = text[start:stop], text.count("\n", 0, start) + 1
    for width in (0, 8, 16, 32, CONTEXT):
        prefix, suffix = text[max(0, start - width) : start], text[stop : stop + width]
        if sum(1 for _ in _places(text, prefix + exact + suffix)) == 1:
            return TextQuote(exact, prefix, suffix, line)
    raise SelectorError(
        f"span: got text that {CONTEXT} code points of context do not make unique, expected a longer one"
    )


def _unmarked(data: bytes) -> str:
    """Text of a table or document without the byte order mark that some programs write first."""
    return decode(data).removeprefix("\ufeff")


def parse_json(data: bytes) -> Any:
    """A JSON document, numbers as written, so that 0.10 stays 0.10; a byte order mark before it is no part of it.

    Raises ``SelectorError``; a repeated key too.
    """
    try:
        return json.loads(_unmarked(data), parse_float=_Number, parse_int=_Number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise SelectorError(f"source: got text that is no JSON ({error}), expected JSON") from error


def value_at(value: Any, pointer: str) -> Any:
    """The value at a JSON Pointer (RFC 6901) of a parsed document. Raises ``SelectorError`` where it leads nowhere."""
    if pointer and not pointer.startswith("/"):
        raise SelectorError(f"pointer: got {pointer[:80]!r}, expected nothing or a text that begins with /")
    for place, part in enumerate(pointer.split("/")[1:]):
        key = part.replace("~1", "/").replace("~0", "~")
        value = _step(value, key, "/".join(pointer.split("/")[: place + 2]))
    return value


def at_pointer(data: bytes, pointer: str) -> Any:
    """The value at a JSON Pointer of a document. Raises ``SelectorError`` as ``parse_json`` and ``value_at``."""
    return value_at(parse_json(data), pointer)


class _Number(str):
    """A JSON number as it is written."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key that stands twice in one object")
    return found


def _step(value: Any, key: str, where: str) -> Any:
    if isinstance(value, dict) and key in value:
        return value[key]
    whole = key.isascii() and key.isdigit() and len(key) < 20 and (key == "0" or not key.startswith("0"))
    if isinstance(value, list) and whole and int(key) < len(value):
        return value[int(key)]
    raise SelectorError(f"pointer: got {where[:200]!r}, which leads to nothing, expected a place in the document")


def is_number(value: Any) -> bool:
    """Whether what a pointer or cell gave is a number as written."""
    return isinstance(value, _Number)


def _rows(data: bytes) -> list[list[str]]:
    reader = csv.reader(io.StringIO(_unmarked(data), newline=""), strict=True)
    try:
        return list(reader)
    except csv.Error as error:
        raise SelectorError(
            f"source: got a table that cannot be read at line {reader.line_num} ({error}), expected CSV with every "
            f"quotation mark closed and fields of at most {csv.field_size_limit()} characters"
        ) from error


def at_cell(data: bytes, column: str, key_column: str, key: str) -> str:
    """The text of a CSV cell: the one row whose ``key_column`` holds ``key``.

    Raises ``SelectorError`` for a column that is missing or repeated, for no or several such rows, and for a table
    that cannot be read, with the line.
    """
    rows = _rows(data)
    if not rows:
        raise SelectorError("source: got an empty table, expected a header")
    header, found = rows[0], []
    places = []
    for name in (column, key_column):
        if header.count(name) != 1:
            raise SelectorError(f"column: got {name[:80]!r} {header.count(name)} times in the header, expected once")
        places.append(header.index(name))
    for row in rows[1:]:
        if len(row) > max(places) and row[places[1]] == key:
            found.append(row[places[0]])
    if len(found) != 1:
        raise SelectorError(f"row: got {len(found)} rows with {key_column} = {key[:80]!r}, expected exactly one")
    return found[0]
