"""Sign of D beside sampled continuations: same-state branches at turns whose block was taken back."""

from __future__ import annotations

import math
from dataclasses import dataclass

from runs.models import Intervention, PlanVersion, StateBranch
from workbench.contracts.branches import AFTER, BEFORE, signs_agree

MOST = 100  # rows that are shown; counts are of all
SURE = 2.0  # standard errors beyond which a difference of means is told apart from 0


@dataclass(frozen=True)
class Beside:
    """One sample. ``value``: mean reward after the turn less that before it, an estimate of Q(s, a) - V(s).

    ``error``: its standard error from those of the two means, None where one of them is not known. ``agree`` None
    where a sign is not known.
    """

    branch: StateBranch
    difference: float | None
    error: float | None
    agree: bool | None

    @property
    def is_sure(self) -> bool | None:
        """Whether ``value`` lies beyond ``SURE`` standard errors of 0; None where either is not known."""
        value = self.branch.value
        return None if value is None or self.error is None else abs(value) > SURE * self.error


@dataclass(frozen=True)
class Sampled:
    """All samples of a plan. ``zero``: samples whose D is 0, which are neither ``same`` nor ``other``."""

    rows: list[Beside]
    total: int
    same: int
    other: int
    zero: int
    unknown: int

    @property
    def signed(self) -> int:
        """Samples with a D that is not 0 and a known difference of means."""
        return self.same + self.other


def standard_error(branch: StateBranch) -> float | None:
    """Of the difference of the two means: the root of the summed squares. None where one mean has none."""
    found = {point["point"]: point["standard_error"] for point in branch.points}
    before, after = found.get(BEFORE), found.get(AFTER)
    return None if before is None or after is None else math.hypot(before, after)


def sampled_of(version: PlanVersion) -> Sampled:
    """Branches at the turns whose block the intervention took back, newest first. Two queries."""
    branches = (
        StateBranch.objects.filter(trajectory__group__plan_version=version)
        .select_related("trajectory__group__run", "trajectory__group__task")
        .order_by("-pk")
    )
    found = Intervention.objects.filter(trajectory__branches__in=branches.order_by()).distinct()
    drawn = {item[0]: item[1:] for item in found.values_list("trajectory_id", "selected", "difference")}
    rows = []
    for branch in branches:
        selected, difference = drawn.get(branch.trajectory_id, (None, None))
        if selected == branch.decision:
            rows.append(Beside(branch, difference, standard_error(branch), signs_agree(branch.value, difference)))
    signed = [row for row in rows if row.agree is not None and row.difference]
    same = sum(row.agree is True for row in signed)
    zero = sum(row.difference == 0 and row.agree is not None for row in rows)
    unknown = sum(row.agree is None for row in rows)
    return Sampled(rows[:MOST], len(rows), same, len(signed) - same, zero, unknown)
