"""Hand-made repairs: real sessions of ``code_repair``, recorded as the runtime records them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worker.environments.base import FinishAction, Task, ToolAction
from worker.environments.code_repair.environment import CodeRepair
from worker.environments.code_repair.tasks import tree_of

ENVIRONMENT = CodeRepair({})
SUBMIT = FinishAction("done", ())
TEST = ToolAction("test", {})


def edit(**arguments: Any) -> ToolAction:
    """A call of edit."""
    return ToolAction("edit", arguments)


def write_all(files: Mapping[str, bytes]) -> ToolAction:
    """One call that writes every file."""
    return edit(edits=[{"path": path, "text": data.decode()} for path, data in files.items()])


def gold_edits(task: Task) -> list[ToolAction]:
    """One call of edit a line that differs from the sound tree: the reference under the policy's own tools."""
    found = []
    for path, text in sorted(task.hidden["gold"].items()):
        pairs = zip(task.initial_state["files"][path].split("\n"), text.split("\n"), strict=True)
        found += [
            edit(path=path, line=number, text=sound.strip())
            for number, (broken, sound) in enumerate(pairs, 1)
            if broken != sound
        ]
    return found


def broken_files(task: Task) -> list[str]:
    """Paths that the gold patch touches."""
    return sorted(task.hidden["gold"])


def gold(task: Task) -> dict[str, bytes]:
    """The sound tree."""
    return tree_of(task, "gold")
