"""JSON as a page shows it: a line a value, numbers as written, each with its pointer as anchor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from evidence.binding.selectors import SelectorError, decode
from evidence.models import Excerpt

VALUES_MOST, TEXT_MOST, DEEPEST = 1_500, 2_000, 60


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
        text, kind = _scalar(value) if not isinstance(value, dict | list) else (json.dumps(value)[:TEXT_MOST], "word")
        yield JsonLine(depth, key, text[:TEXT_MOST], kind, pointer, comma=comma, cut=max(0, len(text) - TEXT_MOST))
        return
    brackets = "{}" if isinstance(value, dict) else "[]"
    yield JsonLine(depth, key, "", "", pointer, opens=brackets[0])
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for place, (name, item) in enumerate(items, 1):
        shown = name if isinstance(value, dict) else None
        yield from _walk(item, depth + 1, shown, step(pointer, name), place < len(value))
    yield JsonLine(depth, None, "", "", pointer, closes=brackets[1], comma=comma)


def json_lines(data: bytes, excerpts: Sequence[Excerpt]) -> tuple[list[JsonLine], bool]:
    """(lines, whether some are left out); quotations by pointer are marked. Raises ``SelectorError``."""
    wanted: dict[str, list[int]] = {}
    for number, excerpt in enumerate(excerpts):
        if excerpt.form == Excerpt.POINTER:
            wanted.setdefault(excerpt.selector["pointer"], []).append(number)
    found: list[JsonLine] = []
    cut = False
    for line in _walk(parse(data), 0, None, "", False):
        marked = tuple(wanted.get(line.pointer, ())) if not line.closes else ()
        if len(found) >= VALUES_MOST and not marked:
            cut = True
            continue
        found.append(line if not marked else JsonLine(**{**line.__dict__, "quotes": marked}))
    return found, cut


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
