"""What pages read of trials: one flat row an intervention, and figures with numerator and denominator.

Every function takes rows of one scope: the pilot (preflight groups of the parent) or one arm. They are never added up
across the two.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from runs.models import Intervention, PlanVersion
from runs.presenters.trials.words import SUCCESS, UNKNOWN, outcome_of
from workbench.contracts.trials import AVAILABLE, UNAVAILABLE

PILOT = None  # scope of preflight groups; any other scope is an arm's row number
NEAR = 1e-9  # relative to the larger of 1 and the value: two masses that must be equal


class Row(NamedTuple):
    """One intervention. ``arm`` None: pilot. Other Nones as in the model."""

    arm: int | None
    run: int | None
    trajectory: UUID
    valid: str
    status: str
    selected: int | None
    tokens: int
    selected_tokens: int | None
    touched: float | None
    empty: bool | None
    original: float | None
    difference: float | None
    replays_agree: int
    replays: int
    repeats_agree: int
    repeats: int
    broken: str | None

    @property
    def outcome(self) -> str:
        """Class of the original."""
        return outcome_of(self.original)

    @property
    def failed(self) -> bool:
        """Whether the original is known and no success."""
        return self.outcome not in (SUCCESS, UNKNOWN)

    @property
    def ratio(self) -> float | None:
        """m / L of the chosen turn; None where none was chosen."""
        if self.selected_tokens is None or not self.tokens:
            return None
        return self.selected_tokens / self.tokens


FIELDS = (
    "trial_set__run__arm_id", "trial_set__run_id", "trajectory__uid", "trajectory__status", "status", "selected",
    "policy_tokens", "selected_tokens", "touched_share", "is_empty_patch", "original_utility", "difference",
    "replays_agree", "replays", "repeats_agree", "repeats", "trial_set__unavailable",
)  # fmt: skip


def read_rows(version: PlanVersion) -> dict[int | None, list[Row]]:
    """Every intervention of a plan version by scope. One query; blocks and contents are not read."""
    found: dict[int | None, list[Row]] = {}
    for values in Intervention.objects.filter(trial_set__plan_version=version).values_list(*FIELDS):
        row = Row(*values)
        found.setdefault(row.arm, []).append(row)
    return found


@dataclass(frozen=True)
class Rate:
    """``n`` of ``of``. ``of`` 0: nothing to count, which is no rate of 0."""

    n: int
    of: int

    @property
    def share(self) -> float | None:
        """n / of; None of nothing."""
        return self.n / self.of if self.of else None


@dataclass(frozen=True)
class Middle:
    """A median over ``n`` values; None of none."""

    value: float | None
    n: int


def middle(values: Iterable[float | None]) -> Middle:
    """Median of the known values."""
    known = [value for value in values if value is not None]
    return Middle(statistics.median(known) if known else None, len(known))


def nearest_rank(values: Sequence[float], share: float) -> float | None:
    """Percentile by nearest rank: the smallest value that at least ``share`` of all do not exceed; None of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def shrinkage(weight: float, cap: float, row: Row) -> float | None:
    """s that the definition gives: min(1, c / |lambda D L/m|), 1 where D = 0; None without D or without m."""
    if row.difference is None or not row.selected_tokens:
        return None
    size = abs(weight * row.difference * row.tokens / row.selected_tokens)
    return 1.0 if size == 0 else min(1.0, cap / size)


@dataclass(frozen=True)
class Signs:
    """Usable differences by sign; the three add up to ``usable``."""

    usable: int
    positive: int
    negative: int

    @property
    def nonzero(self) -> Rate:
        """Not zero, of all usable."""
        return Rate(self.positive + self.negative, self.usable)

    @property
    def zero(self) -> int:
        """Exactly zero: measured, and no difference."""
        return self.usable - self.positive - self.negative


def signs_of(rows: Iterable[Row]) -> Signs:
    """Signs of the usable differences among rows."""
    known = [row.difference for row in rows if row.difference is not None]
    return Signs(len(known), sum(value > 0 for value in known), sum(value < 0 for value in known))


def missing(rows: Iterable[Row]) -> Rate:
    """Interventions without feedback, of those that are recorded and were to be executed."""
    some = list(rows)
    return Rate(
        sum(row.status in UNAVAILABLE for row in some), sum(row.status in (AVAILABLE, *UNAVAILABLE) for row in some)
    )
