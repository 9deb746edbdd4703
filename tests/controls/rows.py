"""A record of controls on a task set that a world has stored already."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from runs.actions.actors import service_actor
from runs.actions.record_controls import record_controls
from runs.models import ControlSet, Study, TaskSet
from tests.controls.test_contract import slot
from tests.controls.world import GOOD
from workbench.contracts.controls import KINDS, ControlsResult, SlotTiming

LEVEL = {
    "backend": "bubblewrap", "version": "0.11.0", "process_bound": "cgroup", "memory_bound": "cgroup",
    "unisolated": False,
}  # fmt: skip
WRONG = ({"gold": "PF"}, {"empty": ""}, {"surface_only": "PP", "gold": "P"})  # of the tasks after the first


@transaction.atomic
def controls_on(task_set: TaskSet, at: datetime, *, most: int = 6, study: Study | None = None) -> ControlSet:
    """Controls of its first tasks: the first as it should be, then a mismatch, an unknown, both, and good ones."""
    slots = []
    for number, task in enumerate(task_set.all_tasks()[:most]):
        said = {**GOOD, **(WRONG[number - 1] if 0 < number <= len(WRONG) else {})}
        slots += [
            slot(kind, said[kind], task_key=task.key, split=task.split, task=str(task.uid), level=LEVEL)
            for kind in KINDS
        ]
    timings = tuple(SlotTiming(0.01, 0.2, 0.03, 0.25) for _ in slots)
    result = ControlsResult(
        task_set.environment, task_set.version, "c" * 64, task_set.sha256, "hidden_calls/1", (), tuple(slots), timings
    )
    return record_controls(result, study=study, by=service_actor("worker"), at=at)
