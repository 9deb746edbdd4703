"""Small statistics, and the collector of ``MetricRecord`` values of one phase, split and policy version."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import Any

from workbench.contracts.metrics import METRIC_DEFINITIONS
from workbench.contracts.records import MetricRecord

Numbers = Sequence[float]


def mean(values: Numbers) -> float | None:
    """Arithmetic mean, None of nothing."""
    return math.fsum(values) / len(values) if values else None


def variance(values: Numbers) -> float | None:
    """Population variance (divisor n), None of nothing."""
    if not values:
        return None
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values) / len(values)


def edit_distance(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Levenshtein distance of two sequences, unit costs."""
    previous = list(range(len(second) + 1))
    for row, left in enumerate(first, 1):
        current = [row]
        for column, right in enumerate(second, 1):
            current.append(min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (left != right)))
        previous = current
    return previous[-1]


def pairwise_distance(sequences: Sequence[Sequence[Any]]) -> float | None:
    """Mean over pairs of edit distance / longer length; two empty sequences have distance 0."""
    shares = [edit_distance(a, b) / max(len(a), len(b), 1) for a, b in combinations(sequences, 2)]
    return mean(shares)


def distinct_pairs(ids: Sequence[int]) -> float | None:
    """Distinct pairs of neighbours over pairs (distinct-2); None below two ids."""
    pairs = list(pairwise(ids))
    return len(set(pairs)) / len(pairs) if pairs else None


def point_biserial(values: Numbers, successes: Sequence[bool]) -> float | None:
    """Correlation of a quantity with success; None where either does not vary."""
    spread = variance(values)
    right = [value for value, success in zip(values, successes, strict=True) if success]
    wrong = [value for value, success in zip(values, successes, strict=True) if not success]
    if not right or not wrong or not spread:
        return None
    share = len(right) / len(values)
    gap = math.fsum(right) / len(right) - math.fsum(wrong) / len(wrong)
    return gap / math.sqrt(spread) * math.sqrt(share * (1 - share))


def quantile(values: Numbers, share: float) -> float:
    """Quantile with linear interpolation between order statistics. Raises ``ValueError`` for no value."""
    if not values:
        raise ValueError("values: got none, expected at least one")
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def concentration(counts: Sequence[int]) -> float:
    """Sum of squared shares (Herfindahl): 1 where all visits fall on one state, 1 / n where n share them equally."""
    total = sum(counts)
    return math.fsum((count / total) ** 2 for count in counts)


class MetricSink:
    """Collects records of one phase, split and policy version."""

    def __init__(self, phase: str, split: str, policy_version: int, update: int | None = None):
        self.phase, self.split, self.policy_version, self.update = phase, split, policy_version, update
        self.records: list[MetricRecord] = []

    def add(self, name: str, value: float | None, count: int | None, subject: str | None = None, **labels: str) -> None:
        """One value of definition ``name`` (version 1). ``count`` is its denominator."""
        identity = f"{name}/1"
        if identity not in METRIC_DEFINITIONS:
            raise KeyError(f"definition: got {identity}, expected one of the table")
        record = MetricRecord(
            identity,
            self.phase,
            self.split,
            dict(labels),
            None if value is None else float(value),
            count,
            self.policy_version,
            self.update,
            None,
            None,
            subject,
        )
        self.records.append(record)

    def mean(self, name: str, values: Iterable[float], subject: str | None = None, **labels: str) -> None:
        """Mean of ``values`` with their number as denominator."""
        found = [float(value) for value in values]
        self.add(name, mean(found), len(found), subject, **labels)
