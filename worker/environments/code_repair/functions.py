"""Functions of a generated tree: where each stands, and the text that leads to one of its lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .templates import CODE_BASES, Template

_HEAD = re.compile(r"def (\w+)\(")


@dataclass(frozen=True)
class Function:
    """A function of a file. ``lines``: its line numbers from 1, the first with its name and comment."""

    template: Template
    path: str
    lines: tuple[int, ...]

    @property
    def first(self) -> int:
        """Line number of the name."""
        return self.lines[0]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of its parameters."""
        return tuple(item.strip() for item in self.template.parameters.split(","))


def functions_of(code_base: str, files: Mapping[str, str]) -> dict[str, Function]:
    """Functions of a sound tree by name."""
    templates = {template.name: template for template in CODE_BASES[code_base]}
    found = {}
    for path, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if (head := _HEAD.match(line)) is not None:
                template = templates[head[1]]
                lines = tuple(range(number, number + 1 + len(template.body)))
                found[template.name] = Function(template, path, lines)
    return found


def thought_before(text: str, number: int) -> str:
    """A file's lines as ``read`` shows them, from the name of the function that holds line ``number`` to that line.

    Where no function begins above it: that line alone.
    """
    lines = text.splitlines()
    first = next((at for at in range(number, 0, -1) if _HEAD.match(lines[at - 1])), None)
    if first is None:
        return f"{number} {lines[number - 1]}"
    shown = [lines[first - 1].removeprefix("def "), *(f"{at} {lines[at - 1]}" for at in range(first + 1, number + 1))]
    return "\n".join(shown)
