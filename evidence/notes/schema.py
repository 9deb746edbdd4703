"""Strict validation of a notes document: every fault with its place, what stands there and what is expected."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evidence.binding.declared import NAME, check_declared
from evidence.notes import shapes
from evidence.notes.shapes import Field
from runs.errors import DomainError

LANGUAGES = ("en", "zh")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,31}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Fault:
    """One thing that a document may not hold. ``path``: dotted, items from 0 (``sections.3.blocks.0.text.en``).

    ``structural``: an object, list or member that the tree itself lacks, rather than a value that is wrong.
    """

    path: str
    got: str
    expected: str
    structural: bool = False

    def __str__(self) -> str:
        return f"{self.path}: got {self.got}, expected {self.expected}"


class NotesInvalid(DomainError):
    """A document that cannot become a version; ``faults`` are all of them."""

    def __init__(self, faults: list[Fault]):
        self.faults = faults
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{faults[0]}{more}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _join(path: str, name: str | int) -> str:
    return f"{path}.{name}" if path else str(name)


def _text(value: Any, path: str, needed: bool) -> Iterator[Fault]:
    if not isinstance(value, Mapping) or set(value) != set(LANGUAGES):
        yield Fault(path, _shown(value), "an object with the texts en and zh", structural=True)
        return
    for language in LANGUAGES:
        text = value[language]
        if not isinstance(text, str) or "\x00" in text or len(text) > shapes.MOST_TEXT:
            wanted = f"text of at most {shapes.MOST_TEXT} characters"
            yield Fault(f"{path}.{language}", _shown(text), wanted, structural=not isinstance(text, str))
            return
    if needed and not any(value[language].strip() for language in LANGUAGES):
        yield Fault(f"{path}.en", "nothing", "text in at least one language")


def _is_day(value: Any) -> bool:
    try:
        return bool(isinstance(value, str) and _DAY.fullmatch(value) and datetime.date.fromisoformat(value))
    except ValueError:
        return False


def _simple(value: Any, field: Field, path: str) -> Iterator[Fault]:
    """Faults of a member that has no members of its own."""
    kind = field.kind
    if kind.endswith("?") and value is None:
        return
    match kind.rstrip("?"):
        case "word":
            if not isinstance(value, str) or not value.strip() or len(value) > 200 or "\x00" in value:
                yield Fault(path, _shown(value), "a name of 1 to 200 characters")
        case "choice":
            if value not in field.choices:
                yield Fault(path, _shown(value), f"one of {', '.join(field.choices)}")
        case "date":
            if not _is_day(value):
                yield Fault(path, _shown(value), "a day as YYYY-MM-DD" + (" or null" if kind.endswith("?") else ""))
        case "rank":
            if type(value) is not int or not shapes.HIGHEST_RANK <= value <= shapes.LOWEST_RANK:
                yield Fault(path, _shown(value), f"a whole number from {shapes.HIGHEST_RANK} to {shapes.LOWEST_RANK}")
        case "flag":
            if not isinstance(value, bool):
                yield Fault(path, _shown(value), "true or false")
        case "figure" | "claim" as what:
            if not isinstance(value, str) or not _KEY.fullmatch(value):
                yield Fault(path, _shown(value), f"the key of a {what}")


def _items(value: Any, field: Field, path: str) -> Iterator[Fault]:
    """Faults of a list itself: what it is and how long."""
    if not isinstance(value, list):
        yield Fault(path, _shown(value), "a list", structural=True)
    elif field.count and len(value) != field.count:
        yield Fault(path, f"{len(value)} items", f"{field.count}", structural=True)
    elif len(value) > shapes.MOST_ITEMS:
        yield Fault(path, f"{len(value)} items", f"at most {shapes.MOST_ITEMS}")


def _cell(value: Any, path: str) -> Iterator[Fault]:
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in shapes.CELLS:
        yield Fault(path, _shown(value), f"an object with one of {', '.join(shapes.CELLS)}", structural=True)
        return
    ((name, inner),) = value.items()
    yield from _member(inner, shapes.CELLS[name], f"{path}.{name}", 0)


def _names(value: list[Any], what: str, pattern: re.Pattern[str], path: str) -> Iterator[Fault]:
    for at, item in enumerate(value):
        if not isinstance(item, str) or not pattern.fullmatch(item):
            yield Fault(f"{path}.{at}", _shown(item), what)


def _member(value: Any, field: Field, path: str, depth: int) -> Iterator[Fault]:
    kind = field.kind
    if kind in ("text", "need"):
        yield from _text(value, path, kind == "need")
    elif kind in ("item", "item?"):
        if not (value is None and kind == "item?"):
            yield from _object(value, field.shape, path, depth)
    elif kind in ("list", "texts", "cells", "blocks", "refs", "keys", "claims"):
        wrong = list(_items(value, field, path))
        yield from wrong
        if not wrong:
            yield from _each(value, field, path, depth)
    else:
        yield from _simple(value, field, path)


def _each(value: list[Any], field: Field, path: str, depth: int) -> Iterator[Fault]:
    match field.kind:
        case "refs":
            yield from _names(value, "the label of a source, such as R1", _LABEL, path)
        case "keys":
            yield from _names(value, "the key of a figure", _KEY, path)
        case "claims":
            yield from _names(value, "the key of a claim", _KEY, path)
        case "cells":
            yield from _rows(value, path)
        case _:
            for at, item in enumerate(value):
                yield from _item(item, field, f"{path}.{at}", depth)


def _rows(value: list[Any], path: str) -> Iterator[Fault]:
    for at, row in enumerate(value):
        if not isinstance(row, list):
            yield Fault(f"{path}.{at}", _shown(row), "a list of cells", structural=True)
            continue
        for column, cell in enumerate(row):
            yield from _cell(cell, f"{path}.{at}.{column}")


def _item(item: Any, field: Field, path: str, depth: int) -> Iterator[Fault]:
    if field.kind == "texts":
        yield from _text(item, path, True)
    elif field.kind == "list":
        yield from _object(item, field.shape, path, depth)
    elif not isinstance(item, Mapping) or item.get("type") not in shapes.BLOCK_TYPES:
        got = item.get("type") if isinstance(item, Mapping) else item
        yield Fault(f"{path}.type", _shown(got), f"one of {', '.join(shapes.BLOCK_TYPES)}", structural=True)
    elif depth >= shapes.DEEPEST:
        yield Fault(path, "a block within details within details", f"at most {shapes.DEEPEST} levels")
    else:
        yield from _object(item, item["type"], path, depth + 1)


def _object(value: Any, shape: str, path: str, depth: int) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield Fault(path or "document", _shown(value), "an object", structural=True)
        return
    fields = shapes.SHAPES[shape]
    known = {field.name for field in fields} | ({"type"} if shape in shapes.BLOCK_TYPES else set())
    for name in value:
        if name not in known:
            wanted = f"no such member; {', '.join(sorted(known))}"
            yield Fault(_join(path, str(name)[:80]), _shown(value[name]), wanted, structural=True)
    for field in fields:
        if field.name in value:
            yield from _member(value[field.name], field, _join(path, field.name), depth)
        elif field.default is ...:
            yield Fault(_join(path, field.name), "nothing", _wanted(field), structural=True)
    if shape == "table":
        yield from _even(value, path)


def _wanted(field: Field) -> str:
    return {"text": "an object with the texts en and zh", "need": "an object with the texts en and zh"}.get(
        field.kind, f"a {field.kind.rstrip('?')}"
    )


def _even(table: Mapping[str, Any], path: str) -> Iterator[Fault]:
    columns, rows = table.get("columns"), table.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return
    for at, row in enumerate(rows):
        if isinstance(row, list) and len(row) != len(columns):
            yield Fault(_join(path, f"rows.{at}"), f"{len(row)} cells", f"{len(columns)}, one for each column")


def _in_order(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Sections and cards stand in the order of the page, each once; so do the frames of a storyboard."""
    for name, member, wanted in (("sections", "id", shapes.SECTIONS), ("cards", "role", shapes.CARD_ROLES)):
        got = tuple(item[member] for item in document[name])
        if got != wanted:
            yield Fault(name, ", ".join(got), f"in this order, each once: {', '.join(wanted)}")
    for path, block in blocks_of(document):
        if block["type"] == "storyboard":
            frames = tuple(item["id"] for item in block["frames"])
            if frames != shapes.FRAMES:
                yield Fault(f"{path}.frames", ", ".join(frames), f"in this order: {', '.join(shapes.FRAMES)}")


def _declared(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Names that a document declares are held to the rule that they are used under."""
    for at, item in enumerate(document.get("names", [])):
        expected = check_declared(NAME, item["text"].strip())
        if expected is not None:
            yield Fault(f"names.{at}.text", _shown(item["text"]), expected)


def faults_of(document: Any) -> list[Fault]:
    """Everything that is wrong with a document's form; texts are looked at by ``evidence.notes.texts``."""
    found = list(_object(document, "root", "", 0))
    return found or [*_in_order(document), *_declared(document)]


def blocks_of(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, block) of every block, those within details after the details."""
    for at, section in enumerate(document["sections"]):
        yield from _walk(section.get("blocks", []), f"sections.{at}.blocks")


def _walk(blocks: list[dict[str, Any]], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, block in enumerate(blocks):
        yield f"{path}.{at}", block
        if block["type"] == "details":
            yield from _walk(block["blocks"], f"{path}.{at}.blocks")


def _filled(value: Any, field: Field) -> Any:
    match field.kind:
        case "text" | "need":
            return {language: value[language].strip() for language in LANGUAGES}
        case "item" | "item?":
            return None if value is None else _complete(value, field.shape)
        case "list":
            return [_complete(item, field.shape) for item in value]
        case "blocks":
            return [{"type": item["type"], **_complete(item, item["type"])} for item in value]
        case "texts":
            return [{language: item[language].strip() for language in LANGUAGES} for item in value]
        case "cells":
            return [
                [{name: _filled(inner, shapes.CELLS[name]) for name, inner in c.items()} for c in row] for row in value
            ]
        case "refs" | "keys" | "claims":
            return list(value)
    return value


def _filled_cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _filled(inner, shapes.CELLS[name]) for name, inner in cell.items()}


def _complete(value: Mapping[str, Any], shape: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in shapes.SHAPES[shape]:
        default = dict(field.default) if isinstance(field.default, dict) else field.default
        found[field.name] = _filled(value.get(field.name, default), field)
    return found


def normalise(document: Any) -> dict[str, Any]:
    """The document with every member that may be left out, texts without space around: equal pages, equal bytes.

    Raises ``NotesInvalid`` with every fault.
    """
    found = faults_of(document)
    if found:
        raise NotesInvalid(found)
    return _complete(document, "root")
