"""The second table of addresses of docs/api.md, from the schema. ``python -m tests.docs.api_rows`` writes it anew."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "api.md"
BLOCK = re.compile(r"(<!-- from the schema -->\n).*?(<!-- end -->)", re.DOTALL)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PAGING = frozenset({"cursor", "limit", "order", "fields"})  # of every list; the document says so once


class Told(NamedTuple):
    """One row of the table that is written by hand."""

    needs: str
    answer: str


def schema() -> dict[str, Any]:
    """The schema as it is served."""
    from runs.api.schema import document

    found: dict[str, Any] = document()
    return found


def operations(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """(method, address below /api/v1) -> operation."""
    return {
        (method.upper(), path.removeprefix("/api/v1")): operation
        for path, item in found["paths"].items()
        for method, operation in item.items()
        if method.upper() in METHODS
    }


def filters(operation: dict[str, Any]) -> set[str]:
    """Query parameters of an operation but those of every list."""
    return {item["name"] for item in operation.get("parameters", []) if item["in"] == "query"} - PAGING


def addresses(cell: str) -> list[tuple[str, str]]:
    """What ``GET /tasks``, ``/tasks/{uid}`` or ``PUT``, ``PATCH /x`` or ``POST /x/pause``, ``/resume`` names."""
    parts = [part.partition("?")[0].split() for part in re.findall(r"`([^`]+)`", cell)]
    methods = [part[0] for part in parts if part[0] in METHODS]
    paths = [part[-1] for part in parts if part[-1].startswith("/")]
    first = paths[0]
    whole = [first] + [path if path.startswith(f"{first}/") else first.rpartition("/")[0] + path for path in paths[1:]]
    return [(method, path) for method in methods for path in whole]


def told(text: str) -> dict[tuple[str, str], Told]:
    """Rows of the first table by what they name; ``pause``, ``resume`` and ``cancel`` are one address ``{verb}``."""
    table = text.partition("| request | needs | body -> answer |")[2].partition("\n\n")[0]
    found = {}
    for line in table.splitlines()[2:]:
        _, cell, needs, answer = (part.strip() for part in line.split("|", 3))
        for method, path in addresses(cell):
            path = re.sub(r"/(pause|resume|cancel)$", "/{verb}", path)
            found[method, path] = Told(needs, answer)
    return found


def table(found: dict[str, Any], besides: set[tuple[str, str]]) -> str:
    """Every operation that the first table leaves out."""
    from runs.api.needs import needed

    lines = ["| request | needs | what it does |", "| --- | --- | --- |"]
    for (method, path), operation in operations(found).items():
        if (method, path) not in besides:
            names = ", ".join(f"`{name}`" for name in sorted(filters(operation)))
            says = operation["summary"] + (f"; parameters {names}" if names else "")
            lines.append(f"| `{method} {path}` | {needed(method, f'/v1{path}').removeprefix('study.')} | {says} |")
    return "\n".join(lines)


def rendered(text: str) -> str:
    """``text`` with the second table written anew."""
    block = table(schema(), set(told(text)))
    return BLOCK.sub(lambda match: f"{match[1]}{block}\n{match[2]}", text)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    import django

    django.setup()
    DOCUMENT.write_text(rendered(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
