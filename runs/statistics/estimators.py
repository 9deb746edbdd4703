"""Estimators over evaluation items: rates and means with their denominators, pass@k, pass^k.

Per task first, then over tasks (spec: evaluation statistics); nothing is derived from a pooled mean.
A zero denominator is "no exposure": value ``None``, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.contracts.canonical import encode_float
from workbench.contracts.estimators import task_pass_at_k, task_pass_hat_k

__all__ = [
    "NO_EXPOSURE",
    "Rate",
    "count_rate",
    "mean_rate",
    "pass_at_k",
    "pass_hat_k",
    "task_pass_at_k",
    "task_pass_hat_k",
]

NO_EXPOSURE = "no exposure"


@dataclass(frozen=True)
class Rate:
    """``numerator`` / ``denominator``. Counts, or for a mean: sum of the values / number of values.

    ``note`` says what the denominator leaves out; it is ``NO_EXPOSURE`` where the denominator is 0.
    Raises ``ValueError`` for a negative denominator.
    """

    numerator: float
    denominator: int
    note: str | None = None

    def __post_init__(self) -> None:
        if self.denominator < 0:
            raise ValueError(f"denominator: got {self.denominator}, expected at least 0")
        if self.denominator == 0 and self.numerator != 0:
            raise ValueError(f"numerator: got {self.numerator}, expected 0 over a zero denominator")

    @property
    def value(self) -> float | None:
        """The quotient; ``None`` without exposure."""
        return self.numerator / self.denominator if self.denominator else None

    def to_json(self) -> dict[str, Any]:
        """``{"numerator", "denominator", "value", "note"}``."""
        note = self.note
        if self.denominator == 0:
            note = NO_EXPOSURE if note is None else f"{NO_EXPOSURE}; {note}"
        return {
            "numerator": encode_float(self.numerator),
            "denominator": self.denominator,
            "value": encode_float(self.value),
            "note": note,
        }


def count_rate(flags: Iterable[bool | None]) -> Rate:
    """Share of True among the measured flags; a ``None`` leaves the denominator and is noted."""
    known = list(flags)
    measured = [flag for flag in known if flag is not None]
    return Rate(sum(measured), len(measured), _left_out(len(known) - len(measured)))


def mean_rate(values: Iterable[float | None]) -> Rate:
    """Mean of the measured values as a ``Rate`` (exactly rounded sum / count); ``None`` is left out and noted.

    The stored quotient lies within [min, max] up to one rounding of the division.
    """
    known = list(values)
    measured = [float(value) for value in known if value is not None]
    return Rate(math.fsum(measured), len(measured), _left_out(len(known) - len(measured)))


def _left_out(count: int) -> str | None:
    return f"{count} not measured, left out of the denominator" if count else None


def _over_tasks(per_task: Sequence[Sequence[bool]], k: int, hat: bool) -> Rate:
    estimate = task_pass_hat_k if hat else task_pass_at_k
    values = [estimate(len(task), sum(task), k) for task in per_task if len(task) >= k]
    short = len(per_task) - len(values)
    note = f"{short} of {len(per_task)} tasks have fewer than {k} repeats and are left out" if short else None
    return Rate(math.fsum(values), len(values), note)


def pass_at_k(per_task: Sequence[Sequence[bool]], k: int) -> Rate:
    """Mean over tasks of the unbiased per-task pass@k. ``per_task``: repeats of each task.

    Tasks with fewer than ``k`` repeats leave the denominator, which the note says.
    """
    return _over_tasks(per_task, k, hat=False)


def pass_hat_k(per_task: Sequence[Sequence[bool]], k: int) -> Rate:
    """Mean over tasks of the unbiased per-task pass^k (all of k repeats succeed)."""
    return _over_tasks(per_task, k, hat=True)
