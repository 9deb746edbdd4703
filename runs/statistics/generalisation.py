"""L5 metric points of evaluation cells: performance, the gap to other tasks, forgetting on anchor tasks.

Pure functions of item facts. A task counts once, as the mean of its valid, measured repeats; intervals
resample whole tasks with the settings and the seed of the execution's aggregate, so that both say the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.contracts.records import MetricRecord
from workbench.contracts.seeds import derive_seed

from .bootstrap import Bootstrap, Interval, gap_interval, paired_interval, task_interval
from .cells import IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, by_task, mixed, task_means
from .estimators import pass_at_k, pass_hat_k
from .items import METRICS, ItemFacts

ANCHOR = "anchor"
JUDGED = (("reward", "reward"), ("success", "success_rate"))  # item metric, last part of the definition's name

__all__ = [
    "ANCHOR",
    "IN_DISTRIBUTION",
    "OUT_OF_DISTRIBUTION",
    "Cell",
    "bootstrap_of",
    "forgetting",
    "gap",
    "performance",
]


@dataclass(frozen=True)
class Cell:
    """Items of one checkpoint under one condition and split, complete. ``subject_uid``: the checkpoint."""

    subject_uid: str
    policy_version: int
    condition: str
    split: str
    items: Sequence[ItemFacts]


def bootstrap_of(plan_sha256: str) -> Bootstrap:
    """The settings of the plan's aggregate."""
    return Bootstrap(derive_seed("statistics.bootstrap", plan_sha256))


def _record(cell: Cell, name: str, value: float | None, count: int, **labels: str) -> MetricRecord:
    return MetricRecord(
        f"l5.{name}/1", cell.condition, cell.split, labels, value, count, cell.policy_version, None, None, None,
        cell.subject_uid,
    )  # fmt: skip


def _with_interval(
    cell: Cell, name: str, value: float | None, count: int, interval: Interval, **labels: str
) -> list[MetricRecord]:
    """The value, and its bounds as series of their own; below two tasks there is no bound."""
    found = [_record(cell, name, value, count, **labels)]
    for bound, limit in (("low", interval.low), ("high", interval.high)):
        found.append(_record(cell, name, limit, count, bound=bound, **labels))
    return found


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def performance(cell: Cell, bootstrap: Bootstrap) -> list[MetricRecord]:
    """Mean reward and pass rate over tasks with intervals; pass@k and pass^k for k = 2, 4, 8 ... of the repeats."""
    found: list[MetricRecord] = []
    for metric, name in JUDGED:
        if mixed(cell.items, metric):
            continue
        means = task_means(cell.items, METRICS[metric])
        values = [means[key] for key in sorted(means)]
        found += _with_interval(cell, name, _mean(values), len(values), task_interval(values, bootstrap))
    if mixed(cell.items, "success"):
        return found
    repeats = [[bool(row.success) for row in rows if row.valid] for rows in by_task(cell.items).values()]
    most = max((len(rows) for rows in by_task(cell.items).values()), default=0)
    k = 2
    while k <= most:
        for name, rate in (("pass_at_k", pass_at_k(repeats, k)), ("pass_hat_k", pass_hat_k(repeats, k))):
            found.append(_record(cell, name, rate.value, rate.denominator, k=str(k)))
        k *= 2
    return found


def gap(inside: Cell, outside: Cell, bootstrap: Bootstrap) -> list[MetricRecord]:
    """In-distribution minus out-of-distribution; both task sets resampled independently. Split: the inside's."""
    found: list[MetricRecord] = []
    for metric, _ in JUDGED:
        if mixed([*inside.items, *outside.items], metric):
            continue
        sides = []
        for cell in (inside, outside):
            means = task_means(cell.items, METRICS[metric])
            sides.append([means[key] for key in sorted(means)])
        first, second = _mean(sides[0]), _mean(sides[1])
        value = None if first is None or second is None else first - second
        interval = gap_interval(sides[0], sides[1], bootstrap)
        count = min(len(side) for side in sides)
        found += _with_interval(inside, f"{metric}_gap", value, count, interval, outside=outside.split)
    return found


def forgetting(parent: Cell, cell: Cell, bootstrap: Bootstrap) -> list[MetricRecord]:
    """Parent minus checkpoint on the same anchor tasks, paired by task: positive where something was lost."""
    found: list[MetricRecord] = []
    for metric, _ in JUDGED:
        if mixed([*parent.items, *cell.items], metric):
            continue
        before, after = (task_means(side.items, METRICS[metric]) for side in (parent, cell))
        shared = sorted(before.keys() & after.keys())
        old, new = [before[key] for key in shared], [after[key] for key in shared]
        value = _mean([first - second for first, second in zip(old, new, strict=True)])
        interval = paired_interval(new, old, bootstrap)
        found += _with_interval(cell, f"{metric}_forgotten", value, len(shared), interval)
    return found
