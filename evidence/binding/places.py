"""Where an excerpt stands in bytes: in those that it was taken from, and in the newest ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evidence.binding.selectors import (
    SelectorError,
    Span,
    TextQuote,
    at_cell,
    at_pointer,
    decode,
    find_quote,
    parse_json,
    value_at,
)
from evidence.binding.values import CONTEXT, is_cut
from evidence.models import Excerpt, ExcerptHead, SourceVersion
from runs.storage import blob_store
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import ContractError

MOST_MATCHED, MOST_TRANSCRIBED = 4000, 200
_MEMBERS = {
    Excerpt.QUOTE: ({"exact"}, {"prefix", "suffix", "line"}),
    Excerpt.POINTER: ({"pointer"}, set()),
    Excerpt.CELL: ({"column", "key_column", "key"}, set()),
}


@dataclass(frozen=True)
class Place:
    """What a search found. ``state`` of ``ExcerptHead``; lines from 1 for a quotation, else None."""

    state: str
    first_line: int | None = None
    last_line: int | None = None
    trouble: str = ""


def check_selector(form: str, selector: Any) -> dict[str, Any]:
    """A selector with its members checked. Raises ``SelectorError`` naming the one that is wrong."""
    if form not in _MEMBERS:
        raise SelectorError(f"form: got {str(form)[:80]!r}, expected one of {', '.join(_MEMBERS)}")
    needed, free = _MEMBERS[form]
    if not isinstance(selector, dict):
        raise SelectorError(f"selector: got {type(selector).__name__}, expected an object")
    for name in sorted(needed - set(selector)):
        raise SelectorError(f"selector.{name}: got nothing, expected a text")
    for name, value in selector.items():
        if name not in needed | free:
            expected = ", ".join(sorted(needed | free))
            raise SelectorError(f"selector.{str(name)[:80]}: got an unknown member, expected one of {expected}")
        right = isinstance(value, int) and not isinstance(value, bool) and value > 0 if name == "line" else (
            isinstance(value, str) and len(value) <= 5000 and "\x00" not in value
        )  # fmt: skip
        if not right and not (name == "line" and value is None):
            expected = "a line from 1" if name == "line" else "a text of at most 5000 characters"
            raise SelectorError(f"selector.{name}: got {str(value)[:80]!r}, expected {expected}")
    return dict(selector)


def quote_of(selector: dict[str, Any]) -> TextQuote:
    """The quotation that a selector says."""
    return TextQuote(
        selector["exact"], selector.get("prefix") or "", selector.get("suffix") or "", selector.get("line")
    )


def scalar_text(value: Any) -> str:
    """A JSON value as an excerpt keeps it: scalars as written, others as compact JSON. Raises ``SelectorError``."""
    try:
        return _kept_text(str(value) if isinstance(value, str) else json.dumps(
            value, ensure_ascii=False, separators=(",", ":")
        ))  # fmt: skip
    except RecursionError as error:
        raise SelectorError("source: got a value nested too deep to write down, expected a smaller place") from error


def _kept_text(text: str) -> str:
    """A value as records can hold it. Raises ``SelectorError`` for U+0000 and half a character."""
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise SelectorError("source: got a value with U+0000 or half a character, expected text that can be recorded")
    return text


@dataclass(frozen=True)
class Held:
    """Bytes as they lie in the store. ``own``: whether they are still those of the recorded hash."""

    data: bytes
    own: bool
    form: str

    @cached_property
    def text(self) -> str:
        """Text that quotations are searched in; of a PDF its text layer. Raises ``ContractError``."""
        from evidence.reading import text_of_bytes

        return text_of_bytes(self.data, "pdf").text if self.form == "pdf" else decode(self.data)

    @cached_property
    def document(self) -> Any:
        """The parsed JSON. Raises ``SelectorError``."""
        return parse_json(self.data)


Around = tuple[str | None, str | None]  # what stands before and after an excerpt; None: nobody can tell
Kept = dict[int, Held | None]  # by primary key of a version: what one pass over many excerpts has read


def held(version: SourceVersion, kept: Kept | None = None) -> Held | None:
    """The bytes that lie under a version's hash now, whatever they hash to; None where there are none."""
    if kept is not None and version.pk in kept:
        return kept[version.pk]
    data = stored_bytes(version) if version.held else None
    form = version.source.form
    found = None if data is None else Held(data, sha256_hex(data) == version.sha256, form)
    if kept is not None:
        kept[version.pk] = found
    return found


def find(form: str, selector: dict[str, Any], data: bytes, text: str | None = None) -> tuple[str, Span | None]:
    """(text, span of a quotation) of a selector in bytes; ``text``: what a reader makes of them, where not UTF-8.

    Raises ``ContractError`` where nothing, or more than one place, is found.
    """
    if form == Excerpt.QUOTE:
        span = find_quote(decode(data) if text is None else text, quote_of(selector))
        return str(selector["exact"]), span
    if form == Excerpt.POINTER:
        return scalar_text(at_pointer(data, selector["pointer"])), None
    return _kept_text(at_cell(data, selector["column"], selector["key_column"], selector["key"])), None


def find_in(form: str, selector: dict[str, Any], place: Held) -> tuple[str, Span | None]:
    """``find`` in bytes whose text and document are made once."""
    if form == Excerpt.POINTER:
        return scalar_text(value_at(place.document, selector["pointer"])), None
    return find(form, selector, place.data, place.text if form == Excerpt.QUOTE else None)


def stored_bytes(version: SourceVersion) -> bytes | None:
    """The bytes that lie under a version's hash now, whatever they hash to; None where there are none."""
    try:
        return blob_store().path(version.sha256).read_bytes()
    except OSError:
        return None


def place_of(excerpt: Excerpt, kept: Kept | None = None) -> Place:
    """Where an excerpt stands now: in the newest held version of its source. Reads, changes nothing.

    Bytes that are not those of the recorded hash show nothing: what is found in them counts as moved.
    """
    if excerpt.kind == Excerpt.TRANSCRIBED:
        return Place(ExcerptHead.TRANSCRIBED)
    newest = excerpt.version.source.current
    version = newest if newest is not None and newest.held else excerpt.version
    version.source = excerpt.version.source
    found = held(version, kept)
    if found is None:
        return Place(ExcerptHead.UNAVAILABLE, trouble="the bytes of the source are gone")
    try:
        text, span = find_in(excerpt.form, excerpt.selector, found)
    except ContractError as error:
        return Place(ExcerptHead.ORPHAN, trouble=str(error))
    if text != excerpt.text:
        return Place(ExcerptHead.ORPHAN, trouble=f"the place reads {text[:80]!r}, expected {excerpt.text[:80]!r}")
    first, last = (None, None) if span is None else (span.first_line, span.last_line)
    if not found.own:
        return Place(ExcerptHead.MOVED, first, last, "the bytes differ from their recorded hash")
    same = version.pk == excerpt.version_id or span is None or span == _first_span(excerpt, kept)
    return Place(ExcerptHead.FOUND if same else ExcerptHead.MOVED, first, last)


def around(excerpt: Excerpt, kept: Kept | None = None) -> Around:
    """What stands before and after an excerpt in the bytes that it was taken from; nothing where they are gone."""
    if excerpt.form != Excerpt.QUOTE:
        return "", ""
    if excerpt.kind == Excerpt.TRANSCRIBED:
        return around_transcribed(excerpt.selector)
    found = held(excerpt.version, kept)
    try:
        span = None if found is None or not found.own else find_in(excerpt.form, excerpt.selector, found)[1]
    except ContractError:
        return "", ""
    return ("", "") if found is None or span is None else around_span(found.text, span)


def around_span(text: str, span: Span) -> Around:
    """What stands before and after a place of a text, as far as it can belong to one number with it."""
    return text[max(0, span.start - CONTEXT) : span.start], text[span.stop : span.stop + CONTEXT]


def around_transcribed(selector: dict[str, Any]) -> Around:
    """What a transcription states before and after itself; None where it states nothing."""
    return selector.get("prefix") or None, selector.get("suffix") or None


def check_edges(text: str, beside: Around) -> None:
    """Refuse an excerpt that begins or ends within a word or number. Raises ``SelectorError`` naming the edge."""
    before, after = beside[0] or "", beside[1] or ""
    whole = before + text + after
    for name, place in (("begins", len(before)), ("ends", len(before) + len(text))):
        if is_cut(whole, place):
            near = whole[max(0, place - 16) : place], whole[place : place + 16]
            raise SelectorError(
                f"excerpt: got one that {name} within a word or number ({near[0]!r} | {near[1]!r}), expected whole "
                "ones: move its edge to the next space"
            )


def _first_span(excerpt: Excerpt, kept: Kept | None) -> Span | None:
    """Where a quotation stood in the bytes that it was taken from; None where they are gone."""
    found = held(excerpt.version, kept)
    try:
        return None if found is None else find_in(excerpt.form, excerpt.selector, found)[1]
    except ContractError:
        return None
