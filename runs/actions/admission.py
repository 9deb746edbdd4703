"""Admission of tasks by their controls: a plan with a task whose controls failed is not frozen.

Of each task that a plan trains, probes or evaluates on, the newest record of controls that speaks of it counts: on the
same task set, by the same environment code and verifier as the plan binds, of the plan's study or of none. A slot that
is not as expected refuses its task. A task without a record, or with a slot that nobody knows, is neither refused nor
admitted: unknown stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from runs.models import ControlSet, ControlSlot, Study
from workbench.contracts.errors import PlanInvalid, Problem
from workbench.contracts.layout import split_tasks

Body = dict[str, Any]
MOST = 50  # problems that are named


@dataclass(frozen=True)
class Refused:
    """A slot that is not as expected. ``ordinal``: of the record on its task set."""

    task: str
    kind: str
    expected: bool
    ordinal: int


def used_tasks(body: Body) -> set[str]:
    """Uids of the tasks that a plan's groups, probes and evaluation items are of."""
    plan = body["plan"]
    whole = {plan["rollout"]["split"], *(arm["config"]["rollout"]["split"] for arm in body["arms"])}
    parts = [(split, None) for split in whole]
    parts += [(item["split"], item["tasks"]) for item in plan["evaluation"]["splits"]]
    if plan["probe"] is not None:
        parts.append((plan["probe"]["split"], plan["probe"]["tasks"]))
    return {task["uid"] for split, most in parts for task in split_tasks(body, split)[:most]}


def refused_slots(body: Body, study: Study) -> Iterator[Refused]:
    """Slots that refuse a task of a body, by task and position."""
    bound = body["bindings"]
    environment = bound.get("environment") or {}
    if not environment.get("verifier"):
        return  # nothing is judged by tests here
    records = ControlSet.objects.filter(
        Q(study=None) | Q(study=study),
        task_set__sha256=bound["task_set"]["sha256"],
        code_sha256=environment.get("code_sha256"),
        verifier=environment["verifier"],
    )
    used, newest = used_tasks(body), dict[int, int]()
    slots = ControlSlot.objects.filter(control_set__in=records).select_related("task", "control_set")
    for slot in slots.order_by("-control_set__ordinal", "position"):
        ordinal = newest.setdefault(slot.task_id, slot.control_set.ordinal)
        if slot.control_set.ordinal == ordinal and slot.as_expected is False and str(slot.task.uid) in used:
            yield Refused(slot.task.key, slot.kind, slot.expected, ordinal)


def check_admission(body: Body, study: Study) -> None:
    """Raises ``PlanInvalid`` naming task, control and record where the controls of a task failed."""
    problems = [
        Problem(
            f"environment: task {item.task}",
            f"control {item.kind} {'failed' if item.expected else 'passed'}",
            f"control {item.kind} {'passes' if item.expected else 'fails'}: record {item.ordinal} of its task set",
        )
        for item in refused_slots(body, study)
    ]
    if problems:
        raise PlanInvalid(problems[:MOST])
