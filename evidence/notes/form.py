"""The editor's form of a notes document: fields out of the shapes, a document out of what was posted.

A field's name is ``f:`` and its path; ``n:`` and the path of a list says how many items were shown. Reading a form
never fails: what cannot be a value stays as it was typed, so that the author sees it again with the fault beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evidence.notes import shapes
from evidence.notes.schema import LANGUAGES, Fault
from evidence.notes.shapes import Field

WORDS = "words"  # kinds of one input: refs, keys, claims are words with commas between
LISTS = ("list", "blocks", "texts")


@dataclass
class Node:
    """One part of the form. ``kind``: as in the shapes, and cells' rows. ``faults``: what is wrong right here."""

    path: str
    name: str
    kind: str
    value: Any = None
    choices: Sequence[str] = ()
    children: list[Node] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    addable: Sequence[str] = ()
    type: str = ""
    fixed: bool = False  # a list of a fixed number of items

    @property
    def texts(self) -> list[tuple[str, str, list[Fault]]]:
        """(language, text, faults) of a bilingual text."""
        return [
            (language, self.value.get(language, ""), [f for f in self.faults if f.path == f"{self.path}.{language}"])
            for language in LANGUAGES
        ]

    @property
    def own_faults(self) -> list[Fault]:
        """Faults of the part itself and of what it shows in one field."""
        if self.kind in ("text", "need"):
            return [fault for fault in self.faults if fault.path == self.path]
        return self.faults

    @property
    def template(self) -> str:
        """What draws it."""
        return f"evidence/notes_editor/{_TEMPLATES.get(self.kind.rstrip('?'), 'input')}.html"


_TEMPLATES = {
    "text": "text", "need": "text", "choice": "choice", "flag": "flag", "list": "list", "blocks": "list",
    "texts": "list", "cells": "cells", "item": "item", "figure": "key", "claim": "input",
}  # fmt: skip


def blank(shape: str) -> dict[str, Any]:
    """An object of a shape with nothing in it; lists of a fixed length have their items."""
    return {spec.name: _blank(spec) for spec in shapes.SHAPES[shape]}


def _blank(spec: Field) -> Any:
    match spec.kind:
        case "text" | "need":
            return {"en": "", "zh": ""}
        case "list" if spec.count:
            names = {"frame": ("id", shapes.FRAMES), "card": ("role", shapes.CARD_ROLES)}.get(spec.shape)
            made = [blank(spec.shape) for _ in range(spec.count)]
            for item, value in zip(made, names[1] if names else (), strict=False):
                item[names[0] if names else ""] = value
            return made
        case "list" | "blocks" | "cells" | "refs" | "keys" | "claims" | "texts":
            return []
        case "choice":
            return spec.choices[0]
        case "rank":
            return shapes.HIGHEST_RANK
        case "flag":
            return False
        case "word" | "date" | "figure" | "claim":
            return ""
    return None


class Form:
    """Builds nodes for a part of a document; ``faults`` by path."""

    def __init__(self, faults: Sequence[Fault] = ()):
        self.faults = list(faults)

    def at(self, path: str) -> list[Fault]:
        """Faults of a place and, for a text, of its languages."""
        return [f for f in self.faults if f.path == path or f.path in (f"{path}.en", f"{path}.zh")]

    def below(self, path: str) -> list[Fault]:
        """Faults of one field that stands for a whole list."""
        return [f for f in self.faults if f.path == path or f.path.startswith(f"{path}.")]

    def members(self, value: Mapping[str, Any], shape: str, path: str) -> list[Node]:
        """Nodes of an object's members."""
        return [
            self.node(value.get(spec.name, _blank(spec)), spec, f"{path}.{spec.name}" if path else spec.name)
            for spec in shapes.SHAPES[shape]
        ]

    def node(self, value: Any, spec: Field, path: str) -> Node:
        """The node of one member."""
        made = Node(path, spec.name, spec.kind, value, spec.choices, faults=self.at(path), fixed=bool(spec.count))
        match spec.kind:
            case "list":
                made.children = [
                    self._item(item, spec.shape, f"{path}.{at}", spec.shape) for at, item in enumerate(value)
                ]
                made.addable = () if spec.count else (spec.shape,)
            case "blocks":
                made.children = [
                    self._item(item, item["type"], f"{path}.{at}", item["type"]) for at, item in enumerate(value)
                ]
                made.addable = shapes.BLOCK_TYPES
            case "texts":
                made.children = [
                    self.node(item, Field(str(at + 1), "need"), f"{path}.{at}") for at, item in enumerate(value)
                ]
                made.addable = ("text",)
            case "cells":
                made.children = [self._row(row, f"{path}.{at}") for at, row in enumerate(value)]
                made.addable = ("row",)
            case "item" | "item?":
                made.children = self.members(value or blank(spec.shape), spec.shape, path)
            case "refs" | "keys" | "claims":
                made.value, made.faults = ", ".join(value), self.below(path)
        return made

    def _item(self, value: Mapping[str, Any], shape: str, path: str, kind: str) -> Node:
        return Node(path, kind, "object", children=self.members(value, shape, path), faults=self.at(path), type=kind)

    def _row(self, row: Sequence[Mapping[str, Any]], path: str) -> Node:
        cells = []
        for at, cell in enumerate(row):
            ((kind, inner),) = cell.items()
            place = f"{path}.{at}"
            node = Node(f"{place}.{kind}", kind, "cell", inner, shapes.CELL_STATES, faults=self.below(place), type=kind)
            node.children = [Node(place, "", "place")]
            cells.append(node)
        return Node(path, "row", "row", children=cells, faults=self.at(path))


class Reader:
    """Reads what was posted back into a document."""

    def __init__(self, posted: Mapping[str, str]):
        self.posted = posted

    def text(self, path: str) -> str:
        """One field as typed; line ends of every system become one."""
        return self.posted.get(f"f:{path}", "").replace("\r\n", "\n").replace("\x00", "")

    def count(self, path: str) -> int:
        """How many items a list was shown with."""
        given = self.posted.get(f"n:{path}", "0")
        return min(int(given), shapes.MOST_ITEMS) if given.isascii() and given.isdigit() and len(given) < 6 else 0

    def members(self, shape: str, path: str) -> dict[str, Any]:
        """An object of a shape."""
        return {
            spec.name: self.member(spec, f"{path}.{spec.name}" if path else spec.name) for spec in shapes.SHAPES[shape]
        }

    def member(self, spec: Field, path: str) -> Any:
        """One member."""
        match spec.kind:
            case "text" | "need":
                return {language: self.text(f"{path}.{language}") for language in LANGUAGES}
            case "list":
                return [self.members(spec.shape, f"{path}.{at}") for at in range(self.count(path))]
            case "blocks":
                return [self._block(f"{path}.{at}") for at in range(self.count(path))]
            case "texts":
                return [self.member(Field("", "need"), f"{path}.{at}") for at in range(self.count(path))]
            case "cells":
                return [self._row(f"{path}.{at}") for at in range(self.count(path))]
            case "item" | "item?":
                found = self.members(spec.shape, path)
                empty = all(not text for value in found.values() for text in value.values())
                return None if empty and spec.kind == "item?" else found
        return self._simple(spec, path)

    def _simple(self, spec: Field, path: str) -> Any:
        typed = self.text(path).strip()
        match spec.kind:
            case "refs" | "keys" | "claims":
                return [word for word in (part.strip() for part in typed.replace("，", ",").split(",")) if word]
            case "flag":
                return typed == "true"
            case "rank":
                return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 4 else typed
        return None if not typed and spec.kind.endswith("?") else typed

    def _block(self, path: str) -> dict[str, Any]:
        kind = self.text(f"{path}.type")
        if kind not in shapes.BLOCK_TYPES:
            kind = shapes.BLOCK_TYPES[0]
        return {"type": kind, **self.members(kind, path)}

    def _row(self, path: str) -> list[dict[str, Any]]:
        return [self._cell(f"{path}.{at}") for at in range(self.count(path))]

    def _cell(self, path: str) -> dict[str, Any]:
        kind = self.text(f"{path}.kind")
        if kind not in shapes.CELLS:
            kind = "text"
        return {kind: self.member(shapes.CELLS[kind], f"{path}.{kind}")}
