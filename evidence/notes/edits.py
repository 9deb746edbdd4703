"""Structural edits of a notes document by path: add, remove, move; and the blank document of a study."""

from __future__ import annotations

import datetime
from typing import Any

from evidence.notes import shapes
from evidence.notes.form import blank

TITLES: dict[str, tuple[str, str]] = {
    "why": ("Why", "为什么做"),
    "idea": ("Core idea and contributions", "核心想法与贡献"),
    "verify": ("How it will be verified", "怎样验证"),
    "results": ("Results so far", "目前的结果"),
    "meaning": ("What they mean", "意味着什么"),
    "routes": ("Routes tried", "走过的路线"),
    "writing": ("Writing progress", "写作进度"),
    "problems": ("Open problems", "未决问题"),
    "next": ("Next decisions", "接下来"),
    "milestones": ("Milestones", "里程碑"),
    "sources": ("Sources", "来源"),
    "versions": ("Versions and corrections", "版本与更正"),
}


def _section(name: str) -> dict[str, Any]:
    english, chinese = TITLES[name]
    made = {**blank("section"), "id": name, "title": {"en": english, "zh": chinese}}
    if name in ("sources", "versions"):
        made["blocks"] = [{"type": name}]
    return made


def blank_document(study: Any, today: datetime.date) -> dict[str, Any]:
    """What the editor begins with where nothing has been written."""
    return {
        **blank("root"),
        "schema": shapes.SCHEMA,
        "study": study.slug,
        "page_date": today.isoformat(),
        "sections": [_section(name) for name in shapes.SECTIONS],
    }


def _place(document: dict[str, Any], path: str) -> tuple[Any, int | str]:
    """(container, last step) of a path. Raises ``KeyError`` or ``IndexError`` for one that leads nowhere."""
    *steps, last = path.split(".")
    found: Any = document
    for step in steps:
        found = found[int(step)] if isinstance(found, list) else found[step]
    key: int | str = int(last) if isinstance(found, list) else last
    return found, key


def _fresh(container: dict[str, Any], name: int | str, kind: str) -> Any:
    if kind == "text":
        return {"en": "", "zh": ""}
    if kind == "row":
        return [{"text": {"en": "", "zh": ""}} for _ in container.get("columns", ())]
    made = blank(kind)
    return {"type": kind, **made} if kind in shapes.BLOCK_TYPES and name == "blocks" else made


def add(document: dict[str, Any], path: str, kind: str) -> None:
    """Append a blank item of a kind to the list at a path; a new column gives every row a cell."""
    container, name = _place(document, path)
    wanted = container[name]
    if len(wanted) >= shapes.MOST_ITEMS:
        return
    wanted.append(_fresh(container, name, kind))
    if name == "columns":
        for row in container["rows"]:
            row.append({"text": {"en": "", "zh": ""}})


def remove(document: dict[str, Any], path: str) -> None:
    """Take an item out; a column takes its cells with it."""
    items, at = _place(document, path)
    assert isinstance(at, int)
    del items[at]
    *steps, name, _last = path.split(".")
    if name == "columns":
        table = document
        for step in steps:
            table = table[int(step)] if isinstance(table, list) else table[step]
        for row in table["rows"]:
            if at < len(row):
                del row[at]


def move(document: dict[str, Any], path: str, by: int) -> None:
    """Exchange an item with its neighbour; nothing happens at either end."""
    items, at = _place(document, path)
    assert isinstance(at, int)
    other = at + by
    if 0 <= other < len(items):
        items[at], items[other] = items[other], items[at]


def apply(document: dict[str, Any], action: str) -> str:
    """Do ``add:PATH:KIND``, ``remove:PATH``, ``up:PATH`` or ``down:PATH``; the path that changed.

    Raises ``ValueError`` for another action or a path that leads nowhere.
    """
    verb, _, rest = action.partition(":")
    path, _, kind = rest.partition(":")
    try:
        match verb:
            case "add" if kind in shapes.SHAPES or kind in ("text", "row"):
                add(document, path, kind)
            case "remove":
                remove(document, path)
            case "up":
                move(document, path, -1)
            case "down":
                move(document, path, 1)
            case _:
                raise KeyError(action)
    except (KeyError, IndexError, TypeError, AttributeError, AssertionError) as error:
        raise ValueError(f"do: got {action[:80]!r}, expected an edit of a place in the document") from error
    return path
