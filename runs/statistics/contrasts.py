"""Paired contrasts of two checkpoints, per training seed and over seeds; and the table of paired tasks.

A contrast is always treatment minus baseline, paired on (task, repeat): the repeat's seed is the
same for every checkpoint. Per task first, then over tasks; a resample draws whole tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.contracts.canonical import encode_float

from .bootstrap import TRAINING_SEEDS, Bootstrap, Interval, Spread, spread, task_interval
from .cells import by_task, describe_checkpoint, mixed
from .estimators import Rate, task_pass_at_k, task_pass_hat_k
from .items import BINARY, METRICS, MISSING, ItemFacts, complete_grid

PASS_METRICS = {"pass_at_k": task_pass_at_k, "pass_hat_k": task_pass_hat_k}
NO_PAIRED = "no_paired_task"
MIXED = "mixed_verifiers"
Pair = tuple[ItemFacts, ItemFacts, float, float]


@dataclass(frozen=True)
class Contrast:
    """Treatment minus baseline at one training seed. ``tasks``: per task key (baseline, treatment) means.

    ``reason`` is a code where nothing could be compared, else None. ``missing`` counts pairs of which
    one side has no outcome yet: the contrast is then partial.
    """

    baseline: ItemFacts
    treatment: ItemFacts
    metric: str
    k: int | None
    requested: int
    paired: int
    missing: int
    tasks: Mapping[tuple[str, str], tuple[float, float]]
    families: Mapping[tuple[str, str], str]
    gained: int | None
    lost: int | None
    reason: str | None = None

    @property
    def differences(self) -> dict[tuple[str, str], float]:
        """Per task, treatment minus baseline."""
        return {key: after - before for key, (before, after) in self.tasks.items()}

    @property
    def estimate(self) -> float | None:
        """Mean over tasks of the differences."""
        return mean_difference(self.differences).value


def mean_difference(differences: Mapping[tuple[str, str], float]) -> Rate:
    """Mean over tasks of per-task differences."""
    return Rate(math.fsum(differences.values()), len(differences))


def _pairs(baseline: Sequence[ItemFacts], treatment: Sequence[ItemFacts], metric: str) -> tuple[list[Pair], int, int]:
    """Pairs measured on both sides, the number requested, and the number with a missing side."""
    read = METRICS["success" if metric in PASS_METRICS else metric].read
    before, after = ({item.slot: item for item in side} for side in (baseline, treatment))
    slots = sorted(set(before) | set(after))
    found: list[Pair] = []
    missing = 0
    for slot in slots:
        left, right = before.get(slot), after.get(slot)
        if left is None or right is None or MISSING in (left.status, right.status):
            missing += 1
        elif left.valid and right.valid:
            values = read(left), read(right)
            if values[0] is not None and values[1] is not None:
                found.append((left, right, values[0], values[1]))
    return found, len(slots), missing


def _task_values(pairs: Sequence[Pair], metric: str, k: int | None) -> dict[tuple[str, str], tuple[float, float]]:
    grouped: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for left, _, before, after in pairs:
        grouped.setdefault((left.split, left.task_key), []).append((before, after))
    values: dict[tuple[str, str], tuple[float, float]] = {}
    for key in sorted(grouped):
        rows = grouped[key]
        n = len(rows)
        sums = [math.fsum(row[side] for row in rows) for side in (0, 1)]
        if metric not in PASS_METRICS:
            values[key] = (sums[0] / n, sums[1] / n)
        elif k is not None and n >= k:
            estimate = PASS_METRICS[metric]
            values[key] = (estimate(n, int(sums[0]), k), estimate(n, int(sums[1]), k))
    return values


def contrast(
    baseline: Sequence[ItemFacts], treatment: Sequence[ItemFacts], metric: str, k: int | None = None
) -> Contrast:
    """Compare two checkpoints on the items of one condition and split, both non-empty (``complete_grid``).

    ``k`` is for ``pass_at_k`` and ``pass_hat_k``: None means the most repeats that a task requested.
    """
    pairs, requested, missing = _pairs(baseline, treatment, metric)
    if metric in PASS_METRICS and k is None:
        k = max(len(rows) for rows in by_task([*baseline]).values())
    judged = "success" if metric in PASS_METRICS else metric
    reason = MIXED if mixed([*baseline, *treatment], judged) else None
    tasks = {} if reason else _task_values(pairs, metric, k if metric in PASS_METRICS else None)
    binary = metric in METRICS and METRICS[metric].kind == BINARY
    return Contrast(
        baseline=baseline[0],
        treatment=treatment[0],
        metric=metric,
        k=k if metric in PASS_METRICS else None,
        requested=requested,
        paired=len(pairs),
        missing=missing,
        tasks=tasks,
        families={(left.split, left.task_key): left.family for left, *_ in pairs},
        gained=sum(after > before for *_, before, after in pairs) if binary else None,
        lost=sum(after < before for *_, before, after in pairs) if binary else None,
        reason=reason or (None if tasks else NO_PAIRED),
    )


def _family_rows(one: Contrast) -> list[dict[str, Any]]:
    """Per family: difference, and whether it runs against the aggregate (negative transfer of a gain)."""
    total = one.estimate or 0.0
    rows = []
    differences = one.differences
    for name in sorted(set(one.families.values())):
        own = {key: value for key, value in differences.items() if one.families[key] == name}
        rate = mean_difference(own)
        against = rate.value is not None and rate.value * total < 0
        rows.append({"family": name, "difference": rate.to_json(), "against_aggregate": against})
    return rows


def contrast_json(one: Contrast, bootstrap: Bootstrap) -> dict[str, Any]:
    """Canonical-JSON-able contrast with its task-bootstrap interval."""
    differences = one.differences
    sides = [Rate(math.fsum(pair[side] for pair in one.tasks.values()), len(one.tasks)) for side in (0, 1)]
    return {
        "baseline": describe_checkpoint(one.baseline),
        "treatment": describe_checkpoint(one.treatment),
        "metric": one.metric,
        "k": one.k,
        "pairs": Rate(one.paired, one.requested).to_json(),
        "missing": one.missing,
        "baseline_mean": sides[0].to_json(),
        "treatment_mean": sides[1].to_json(),
        "difference": mean_difference(differences).to_json(),
        "interval": task_interval(list(differences.values()), bootstrap).to_json(),
        "gained": None if one.gained is None else Rate(one.gained, one.paired).to_json(),
        "lost": None if one.lost is None else Rate(one.lost, one.paired).to_json(),
        "families": _family_rows(one),
        "reason": one.reason,
    }


@dataclass(frozen=True)
class SeedContrasts:
    """One comparison over training seeds. ``absent``: seed -> reason code of the seeds without it."""

    by_seed: Mapping[str, Contrast]
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def measured(self) -> dict[str, Contrast]:
        """Seeds with an estimate."""
        return {seed: one for seed, one in sorted(self.by_seed.items()) if one.estimate is not None}

    @property
    def missing(self) -> int:
        """Pairs without outcome yet, over all seeds."""
        return sum(one.missing for one in self.by_seed.values())

    def estimates(self) -> list[float]:
        """The difference of each measured seed."""
        return [value for one in self.measured.values() if (value := one.estimate) is not None]

    def seed_spread(self) -> Spread:
        """Mean +- standard deviation of training seeds of the paired difference."""
        return spread(self.estimates(), TRAINING_SEEDS)

    def task_differences(self) -> dict[tuple[str, str], float]:
        """Per task, the mean over seeds of its paired difference (seeds kept together with their task)."""
        grouped: dict[tuple[str, str], list[float]] = {}
        for one in self.measured.values():
            for key, value in one.differences.items():
                grouped.setdefault(key, []).append(value)
        return {key: math.fsum(grouped[key]) / len(grouped[key]) for key in sorted(grouped)}

    def interval(self, bootstrap: Bootstrap) -> Interval:
        """Task bootstrap of ``task_differences``: conditional on these seeds."""
        return task_interval(list(self.task_differences().values()), bootstrap)

    def to_json(self, bootstrap: Bootstrap) -> dict[str, Any]:
        """Per seed, and over seeds: spread of seeds, and task mean with interval."""
        seeds = self.seed_spread()
        return {
            "per_seed": [
                {"run_seed": seed, **contrast_json(one, bootstrap)} for seed, one in sorted(self.by_seed.items())
            ],
            "absent_seeds": [{"run_seed": seed, "reason": reason} for seed, reason in sorted(self.absent.items())],
            "over_seeds": {
                "seeds": Rate(len(self.measured), len(self.by_seed) + len(self.absent)).to_json(),
                "spread": seeds.to_json(),
                "distinguished": seeds.distinguished,
                "task_difference": mean_difference(self.task_differences()).to_json(),
                "interval": self.interval(bootstrap).to_json(),
            },
        }


def _flip(before: float | None, after: float | None) -> str | None:
    if before is None or after is None:
        return None
    return {(0, 0): "neither", (0, 1): "gained", (1, 0): "lost", (1, 1): "both"}[int(before), int(after)]


def task_table(
    items: Iterable[ItemFacts],
    arm_a: str | None,
    arm_b: str | None,
    *,
    condition: str,
    split: str,
    metric: str = "reward",
    run_seed: str | None = None,
) -> list[dict[str, Any]]:
    """Paired values of final checkpoints, one row per (run seed, task), for dots and flip strips.

    ``arm_a`` is the baseline, None the parent (paired with every seed of ``arm_b``); ``run_seed``
    restricts to one seed. ``repeats``: {"repeat", "a", "b", "flip"} with None where a side is
    not measured; ``flip`` (neither | gained | lost | both) for binary metrics only.
    Raises ``ValueError`` for an unknown metric.
    """
    if metric not in METRICS:
        raise ValueError(f"metric: got {metric!r}, expected one of {', '.join(METRICS)}")
    grid = [
        item for item in complete_grid(items) if item.is_final and (item.condition, item.split) == (condition, split)
    ]
    arms = {arm_a, arm_b} - {None}
    seeds = sorted({item.run_seed for item in grid if item.arm in arms and item.run_seed is not None})
    rows: list[dict[str, Any]] = []
    for seed in seeds if run_seed is None else [run_seed]:
        sides = [
            {item.slot: item for item in grid if item.arm == arm and item.run_seed == (None if arm is None else seed)}
            for arm in (arm_a, arm_b)
        ]
        if all(sides):
            rows.extend(_task_rows(sides[0], sides[1], metric, seed))
    return rows


def _task_rows(
    before: Mapping[tuple[str, str, int], ItemFacts],
    after: Mapping[tuple[str, str, int], ItemFacts],
    metric: str,
    seed: str,
) -> list[dict[str, Any]]:
    read, binary = METRICS[metric].read, METRICS[metric].kind == BINARY
    grouped: dict[str, list[tuple[str, str, int]]] = {}
    for slot in sorted(set(before) | set(after)):
        grouped.setdefault(slot[1], []).append(slot)
    rows = []
    for task_key, slots in sorted(grouped.items()):
        repeats, pairs = [], []
        for slot in slots:
            values = [read(side[slot]) if slot in side and side[slot].valid else None for side in (before, after)]
            flip = _flip(values[0], values[1]) if binary else None
            repeats.append(
                {"repeat": slot[2], "a": encode_float(values[0]), "b": encode_float(values[1]), "flip": flip}
            )
            if values[0] is not None and values[1] is not None:
                pairs.append((values[0], values[1]))
        any_item = before.get(slots[0]) or after[slots[0]]
        a, b = (Rate(math.fsum(pair[side] for pair in pairs), len(pairs)) for side in (0, 1))
        rows.append(
            {
                "run_seed": seed,
                "task_key": task_key,
                "task_uid": any_item.task_uid,
                "family": any_item.family,
                "pairs": Rate(len(pairs), len(slots)).to_json(),
                "a": a.to_json(),
                "b": b.to_json(),
                "difference": encode_float(b.value - a.value) if a.value is not None and b.value is not None else None,
                "repeats": repeats,
            }
        )
    return rows
