"""Task sets: counts by split and family, overlap between splits; a task: its groups and outcomes by checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, Q, QuerySet
from django.db.models.functions import Lower, Trim
from django.utils.translation import gettext as _

from runs.access import Principal, visible
from runs.models import EvaluationItem, Group, Task, TaskSet

SPLITS = ("train", "validation", "test", "out_of_distribution", "anchor")


@dataclass(frozen=True)
class Overlap:
    """How many values stand in more than one split, of how many; ``examples``: keys of tasks that share one."""

    name: Any
    shared: int
    total: int
    examples: list[list[str]]


def counts(task_set: TaskSet) -> tuple[list[str], list[tuple[str, list[int], int]], list[int]]:
    """(splits, rows of (family, count by split, sum), sums by split)."""
    found: dict[str, dict[str, int]] = {}
    rows = Task.objects.filter(entries__task_set=task_set).values_list("family", "split").annotate(n=Count("pk"))
    for family, split, n in rows.order_by("family", "split"):
        found.setdefault(family, {})[split] = n
    present = {split for row in found.values() for split in row}
    splits = [name for name in SPLITS if name in present] + sorted(present - set(SPLITS))
    table = [(family, [row.get(name, 0) for name in splits], sum(row.values())) for family, row in found.items()]
    return splits, table, [sum(row[1][i] for row in table) for i in range(len(splits))]


def overlaps(task_set: TaskSet) -> list[Overlap]:
    """Contents, prompts and hidden references that stand in more than one split: none should."""
    tasks = Task.objects.filter(entries__task_set=task_set).order_by()
    return [
        _overlap(_("whole task"), tasks, "task_sha256"),
        _overlap(
            _("prompt with initial state, case and outer space aside"),
            tasks.annotate(v=Lower(Trim("prompt"))),
            "v",
            "initial_state",
        ),
        _overlap(_("hidden reference"), tasks, "hidden"),
    ]


def _overlap(name: Any, tasks: QuerySet[Task], *columns: str) -> Overlap:
    values = tasks.values(*columns).annotate(splits=Count("split", distinct=True))
    shared, total = values.filter(splits__gt=1), values.count()
    count, examples = shared.count(), []
    for row in shared[:2] if count else ():
        same = tasks.filter(**{column: row[column] for column in columns}).values_list("key", "split")[:4]
        examples.append([f"{key} ({split})" for key, split in same])
    return Overlap(name, count, total, examples)


@dataclass(frozen=True)
class Outcome:
    """Items of one checkpoint on one task under one condition: ``success`` of ``valid`` of ``total``."""

    plan: str
    study: str
    run: str | None
    run_uid: Any
    checkpoint: str
    policy_version: int
    condition: str
    success: int
    valid: int
    total: int
    reward: float | None


def outcomes(principal: Principal, task: Task) -> list[Outcome]:
    """Evaluation outcomes of a task by checkpoint and condition, in visible studies."""
    rows = (
        visible(principal, EvaluationItem.objects.filter(task=task))
        .values(
            "plan_version__plan__slug", "plan_version__plan__study__slug", "run__name", "run__uid",
            "checkpoint__sha256", "checkpoint__policy_version", "condition",
        )
        .annotate(
            total=Count("pk"),
            valid=Count("pk", filter=Q(trajectory__status="valid")),
            success=Count("pk", filter=Q(trajectory__status="valid", trajectory__success=True)),
            reward=Avg("trajectory__reward_total"),
        )
        .order_by("plan_version__plan__study__slug", "plan_version__plan__slug", "condition", "run__name")
    )  # fmt: skip
    return [
        Outcome(
            row["plan_version__plan__slug"], row["plan_version__plan__study__slug"], row["run__name"], row["run__uid"],
            row["checkpoint__sha256"], row["checkpoint__policy_version"], row["condition"], row["success"],
            row["valid"], row["total"], row["reward"],
        )
        for row in rows
    ]  # fmt: skip


def training_groups(principal: Principal, task: Task, limit: int = 24) -> tuple[list[Group], int]:
    """Newest training groups of a task with ``succeeded``, ``valid`` and ``slots``; and how many there are."""
    rows = visible(principal, Group.objects.filter(task=task, purpose="train"))
    shown = rows.select_related("run", "plan_version__plan").annotate(
        slots=Count("trajectories"),
        valid=Count("trajectories", filter=Q(trajectories__status="valid")),
        succeeded=Count("trajectories", filter=Q(trajectories__status="valid", trajectories__success=True)),
    )
    return list(shown.order_by("-pk")[:limit]), rows.count()
