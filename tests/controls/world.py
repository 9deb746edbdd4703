"""Two tasks of an environment ``own`` and what a worker says of their controls."""

from __future__ import annotations

from runs.storage import blob_store
from tests.controls.test_contract import slot
from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.controls import KINDS, ControlsResult, SlotTiming
from worker.environments.base import Task
from worker.environments.taskvalues import task_values

NAME = "own/1"


def task(key: str, split: str = "test") -> Task:
    """A task of one file."""
    return Task(key, split, "f", f"{key}?", {"files": {"a.py": key}}, {"gold": {"a.py": "x"}}, ("edit",))


TASKS = (task("one"), task("two", "train"))
GOOD = {"gold": "PP", "empty": "FF", "no_op": "PF", "step_removed": "FP", "surface_only": "FF", "other_form": "PP"}


def result(**changed: str) -> ControlsResult:
    """Controls as they should be; ``changed``: statuses of the first task by kind."""
    slots = []
    for number, item in enumerate(TASKS):
        said = {**GOOD, **changed} if number == 0 else GOOD
        slots += [slot(kind, said[kind], task_key=item.key, split=item.split, task=item.uid(NAME)) for kind in KINDS]
    tasks = blob_store().put(canonical_bytes(task_values(TASKS, NAME)))
    timings = tuple(SlotTiming(0.01, 0.2 + number / 100, 0.03, 0.5) for number in range(len(slots)))
    return ControlsResult("own", "1", "c" * 64, tasks, "hidden_calls/1", (), tuple(slots), timings)
