"""Refusals that actions write in place, read from their source: what a page in Chinese must be able to translate."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path


def _filled(node: ast.expr) -> str:
    """A message with a value in each hole, quoted where ``repr`` quotes."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else repr("value") if part.conversion == ord("r") else "value"
        for part in parts
        if isinstance(part, ast.Constant | ast.FormattedValue)
    )


def literal_refusals(paths: Iterable[Path], refusing: Collection[str], mark: str) -> Iterator[str]:
    """Messages with ``mark`` in them of the exceptions named ``refusing`` that these files raise."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            call = node.exc if isinstance(node, ast.Raise) else None
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in refusing and call.args:
                text = _filled(call.args[0])
                if mark in text:
                    yield text
