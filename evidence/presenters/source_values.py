"""JSON as a page shows it: a line a value, numbers as written, each with its pointer as anchor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from evidence.binding.selectors import SelectorError, decode
from evidence.models import Excerpt

VALUES_MOST, TEXT_MOST, DEEPEST, PARTS_MOST = 500, 2_000, 60, 60


class _Number(str):
    """A number as it is written."""


@dataclass(frozen=True)
class JsonLine:
    """``opens`` and ``closes``: brackets; ``text``: a scalar. ``kind``: string, number, word (true, false, null)."""

    depth: int
    key: str | None
    text: str
    kind: str
    pointer: str
    opens: str = ""
    closes: str = ""
    comma: bool = False
    quotes: tuple[int, ...] = ()
    cut: int = 0

    @property
    def anchor(self) -> str:
        """Fragment of the value on the page: ``p`` and its pointer; a closing bracket has none."""
        return "" if self.closes and not self.opens else "p" + quote(self.pointer, safe="/~")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key that stands twice in one object")
    return found


def parse(data: bytes) -> Any:
    """The document with numbers as texts. Raises ``SelectorError``."""
    try:
        return json.loads(decode(data), parse_float=_Number, parse_int=_Number, object_pairs_hook=_pairs)
    except (ValueError, RecursionError) as error:
        raise SelectorError(f"source: got text that is no JSON ({error}), expected JSON") from error


def step(pointer: str, key: str | int) -> str:
    """The pointer one member deeper (RFC 6901)."""
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _scalar(value: Any) -> tuple[str, str]:
    if isinstance(value, _Number):
        return str(value), "number"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False), "string"
    return json.dumps(value), "word"


def _walk(value: Any, depth: int, key: str | None, pointer: str, comma: bool) -> Iterator[JsonLine]:
    if not isinstance(value, dict | list) or not value or depth >= DEEPEST:
        text, kind = _whole(value)
        yield JsonLine(depth, key, text[:TEXT_MOST], kind, pointer, comma=comma, cut=max(0, len(text) - TEXT_MOST))
        return
    brackets = "{}" if isinstance(value, dict) else "[]"
    yield JsonLine(depth, key, "", "", pointer, opens=brackets[0])
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for place, (name, item) in enumerate(items, 1):
        shown = name if isinstance(value, dict) else None
        yield from _walk(item, depth + 1, shown, step(pointer, name), place < len(value))
    yield JsonLine(depth, None, "", "", pointer, closes=brackets[1], comma=comma)


@dataclass(frozen=True)
class Values:
    """A document, or the part of it at ``at``. ``cut``: some lines are left out; ``parts``: pointers of its members."""

    lines: list[JsonLine]
    at: str
    cut: bool
    parts: list[str]


def _resolve(document: Any, pointer: str) -> Any:
    """The value at a pointer. Raises ``SelectorError`` where it leads nowhere."""
    value = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and len(key) < 10 and int(key) < len(value):
            value = value[int(key)]
        else:
            raise SelectorError(f"pointer: got {pointer[:200]!r}, which leads to nothing, expected a place in it")
    return value


def json_values(data: bytes, excerpts: Sequence[Excerpt], at: str = "") -> Values:
    """The first lines of the part at ``at``; quotations by pointer are marked, those further on stand at the end.

    No more is walked than is shown. Raises ``SelectorError`` for bytes that are no JSON.
    """
    wanted: dict[str, list[int]] = {}
    for number, excerpt in enumerate(excerpts):
        if excerpt.form == Excerpt.POINTER:
            wanted.setdefault(excerpt.selector["pointer"], []).append(number)
    document = parse(data)
    try:
        root = _resolve(document, at)
    except SelectorError:
        at, root = "", document
    found: list[JsonLine] = []
    cut = False
    for line in _walk(root, 0, None, at, False):
        if len(found) >= VALUES_MOST:
            cut = True
            break
        marked = () if line.closes else tuple(wanted.pop(line.pointer, ()))
        found.append(replace(line, quotes=marked) if marked else line)
    for pointer, quotes in wanted.items() if cut else ():
        try:
            text, kind = _whole(_resolve(document, pointer))
        except SelectorError:
            continue
        found.append(JsonLine(0, pointer, text[:TEXT_MOST], kind, pointer, quotes=tuple(quotes)))
    members: Any = root if isinstance(root, dict) else range(len(root)) if isinstance(root, list) else ()
    return Values(found, at, cut, [step(at, key) for key in list(members)[:PARTS_MOST]])


def _whole(value: Any) -> tuple[str, str]:
    return (
        (json.dumps(value, ensure_ascii=False)[:TEXT_MOST], "word")
        if isinstance(value, dict | list)
        else _scalar(value)
    )


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """(pointer, value as written) of every scalar and empty container."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, step(pointer, key))
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from leaves(item, step(pointer, place))
    else:
        yield pointer, _scalar(value)[0] if not isinstance(value, dict | list) else json.dumps(value)
