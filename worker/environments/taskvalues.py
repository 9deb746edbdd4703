"""Tasks as canonical JSON values: what a task set's bytes consist of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import Task

TASK_FIELDS = ("key", "split", "family", "prompt", "initial_state", "hidden", "tools")


def task_values(tasks: Sequence[Task], task_set: str) -> list[dict[str, Any]]:
    """Tasks as canonical JSON values, each with its uid under ``task_set`` (environment id/version)."""
    values = []
    for task in tasks:
        value = {name: getattr(task, name) for name in TASK_FIELDS}
        values.append({**value, "tools": list(task.tools), "uid": task.uid(task_set)})
    return values
