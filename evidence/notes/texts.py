"""Every text of a notes document by its place, and the sentences that it falls into."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from evidence.notes import shapes
from evidence.notes.schema import LANGUAGES

_WHOLE = re.compile(r"\[\[[^\[\]]*\]\]|\[@[^\[\]]*\]|\{\{[^{}]*\}\}")  # a token is never cut
_TOKEN, _CITED = "\x01", "\x02"
_END = re.compile(r"(?:[。！？]+[\"'”’）)]*|[.!?]+[\"'”’)]*(?=\s+[A-Z\x01“‘\"(]|\s*$|\s*\x02))(?:\s*\x02+)*\s*")


def _members(value: Any, spec: shapes.Field, path: str) -> Iterator[tuple[str, str, Any]]:
    """(path, kind, value) of every leaf below a member."""
    match spec.kind:
        case "item" | "item?":
            if value is not None:
                yield from leaves(value, spec.shape, path)
        case "list":
            for at, item in enumerate(value):
                yield from leaves(item, spec.shape, f"{path}.{at}")
        case "blocks":
            for at, item in enumerate(value):
                yield from leaves(item, item["type"], f"{path}.{at}")
        case "texts":
            for at, item in enumerate(value):
                yield f"{path}.{at}", "text", item
        case "cells":
            for at, row in enumerate(value):
                for column, cell in enumerate(row):
                    for name, inner in cell.items():
                        yield from _members(inner, shapes.CELLS[name], f"{path}.{at}.{column}.{name}")
        case "need":
            yield path, "text", value
        case _:
            yield path, spec.kind, value


def leaves(value: Mapping[str, Any], shape: str = "root", path: str = "") -> Iterator[tuple[str, str, Any]]:
    """(path, kind, value) of every leaf of a complete document."""
    for spec in shapes.SHAPES[shape]:
        yield from _members(value[spec.name], spec, f"{path}.{spec.name}" if path else spec.name)


def texts_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(path, language, text) of every text that is not empty."""
    for path, kind, value in leaves(document):
        if kind == "text":
            for language in LANGUAGES:
                if value[language]:
                    yield f"{path}.{language}", language, value[language]


def _masked(match: re.Match[str]) -> str:
    return (_CITED if match[0].startswith("[@") else _TOKEN) * len(match[0])


def sentences(text: str) -> list[str]:
    """A text cut into sentences; joined they are the text. A citation behind the full stop stays with its sentence."""
    stops = [0, *(match.end() for match in _END.finditer(_WHOLE.sub(_masked, text)))]
    if stops[-1] < len(text):
        stops.append(len(text))
    return [text[start:stop] for start, stop in itertools.pairwise(stops)]
