"""The task set: proposals of the generator as tasks, and trees of a task by name.

Every split draws from the four code bases; no two splits share a task, nor a broken tree that differs in constants
alone. ``anchor`` is a fixed small set that is watched for regression.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

from worker.environments.base import Task

from .generator import Built, Funnel, generate

TOOLS = ("list", "read", "search", "edit", "test")
SPLIT_TASKS = {"train": 64, "validation": 32, "test": 32, "anchor": 8}
GOLD, EMPTY = "gold", "empty"


def patch(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """Files that are other or new."""
    return {path: text for path, text in sorted(after.items()) if before.get(path) != text}


def as_task(built: Built, split: str, key: str) -> Task:
    """A task of the generator's. ``hidden``: tests and their lists, gold patch, negative controls as patches."""
    files = dict(sorted(built.files.items()))
    hidden: dict[str, Any] = {
        "tests": [case.as_json() for case in built.hidden],
        "fail_to_pass": list(built.fail_to_pass),
        "pass_to_pass": list(built.pass_to_pass),
        "gold": patch(files, dict(built.gold)),
        "controls": {kind: patch(files, dict(tree)) for kind, tree in sorted(built.controls.items())},
    }
    broken = len(hidden["gold"])
    return Task(
        key=key,
        split=split,
        family=f"{built.code_base}_{broken}",
        prompt=f"Repair {built.code_base}: {' '.join(files)}",
        initial_state={"files": files, "visible": [case.as_json() for case in built.visible]},
        hidden=hidden,
        tools=TOOLS,
    )


@lru_cache(maxsize=4)
def generated(seed: int) -> tuple[tuple[Task, ...], Funnel, frozenset[str]]:
    """Every task, split by split; how many proposals came through each step; the shapes of all tasks.

    A shape says what is broken and how, whatever the constants: demonstrations keep away from them.
    """
    found, funnel = generate(str(seed), SPLIT_TASKS)
    tasks: list[Task] = []
    for split in SPLIT_TASKS:
        number = Counter[str]()
        for built in found[split]:
            number[built.code_base] += 1
            tasks.append(as_task(built, split, f"{split}.{built.code_base}.{number[built.code_base]}"))
    return tuple(tasks), funnel, frozenset(built.shape() for items in found.values() for built in items)


def tree_of(task: Task, kind: str) -> dict[str, bytes]:
    """A whole tree of a task: ``gold``, a control's kind, or ``empty`` (nothing done). Raises ``KeyError``."""
    changes = {} if kind == EMPTY else task.hidden[GOLD] if kind == GOLD else task.hidden["controls"][kind]
    return {path: text.encode() for path, text in sorted({**task.initial_state["files"], **changes}.items())}
