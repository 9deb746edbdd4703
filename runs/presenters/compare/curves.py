"""Curves of several runs over one axis that they share: steps of training, trajectories, tokens or time.

Optimizer steps and groups count differently in runs of another batch size; trajectories and generated
tokens do not. Each point is moved to the axis through the groups that its update had consumed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.db.models import Count, Max, Sum
from django.utils.translation import gettext_lazy as _

from runs.models import ConsumedGroup, Group, Run, UpdateStep
from runs.presenters.series import DEFINITIONS, MAX_POINTS, Definition, thin

NATIVE = "native"
AXES: dict[str, Any] = {
    NATIVE: _("group or optimizer step"),
    "trajectories": _("trajectories collected"),
    "tokens": _("tokens generated"),
    "time": _("minutes since the first group"),
}
# Read with another grader or other tasks these say nothing; the others describe the optimizer alone.
GRADED = ("reward", "sigma", "silent")


@dataclass(frozen=True)
class Clock:
    """Where a run stood after each of its groups. All lists are in the groups' order."""

    ordinals: list[int]
    trajectories: list[float]
    tokens: list[float]
    minutes: list[float]
    step_groups: dict[int, int]  # optimizer step -> ordinal of the last group that its update consumed

    def at_group(self, axis: str) -> Callable[[float], float | None]:
        """Group ordinal -> place on the axis; None before the first group."""
        values = {"trajectories": self.trajectories, "tokens": self.tokens, "time": self.minutes}[axis]

        def read(ordinal: float) -> float | None:
            place = bisect_right(self.ordinals, ordinal) - 1
            return values[place] if place >= 0 else None

        return read

    def at_step(self, axis: str) -> Callable[[float], float | None]:
        """Optimizer step -> place on the axis; None for a step whose update consumed no known group."""
        read = self.at_group(axis)

        def place(step: float) -> float | None:
            ordinal = self.step_groups.get(int(step))
            return None if ordinal is None else read(ordinal)

        return place


def clock_of(run: Run) -> Clock:
    """Three queries, whatever the run's length."""
    rows = list(
        Group.objects.filter(run=run, purpose="train")
        .order_by("ordinal")
        .values("ordinal", "created_at")
        .annotate(slots=Count("trajectories"), tokens=Sum("trajectories__generated_tokens"))
    )
    start = min((row["created_at"] for row in rows), default=None)
    last = dict(
        ConsumedGroup.objects.filter(update__run=run)
        .order_by()
        .values_list("update")
        .annotate(last=Max("group__ordinal"))
    )
    steps = UpdateStep.objects.filter(update__run=run).values_list("step", "update")
    return Clock(
        [row["ordinal"] for row in rows],
        [float(n) for n in accumulate(row["slots"] for row in rows)],
        [float(n) for n in accumulate(row["tokens"] or 0 for row in rows)],
        [(row["created_at"] - start).total_seconds() / 60 for row in rows] if start is not None else [],
        {step: last[update] for step, update in steps if update in last},
    )


@dataclass(frozen=True)
class Curve:
    """One run's points: ``x`` on the axis. ``dropped`` points had no place there."""

    x: list[float]
    y: list[float | None]
    nonfinite: list[tuple[float, str]]
    stored: int
    shown: int
    dropped: int


def curve_of(run: Run, definition: Definition, axis: str) -> Curve:
    """Points of one run, thinned so that no extreme is lost."""
    points = definition.read(run)
    moved = points
    if axis != NATIVE:
        clock = clock_of(run)
        place = clock.at_group(axis) if definition.per_group else clock.at_step(axis)
        moved = [(x, value, word) for raw, value, word in points if (x := place(raw)) is not None]
    thinned = thin(moved, MAX_POINTS)
    return Curve(
        [p[0] for p in thinned.points if p[1] is not None],
        [p[1] for p in thinned.points if p[1] is not None],
        [(p[0], p[2]) for p in thinned.points if p[1] is None and p[2]],
        len(points),
        thinned.shown,
        len(points) - len(moved),
    )


def axis_word(definition: Definition, axis: str) -> str:
    """What the axis counts, for one chart."""
    return str(definition.axis if axis == NATIVE else AXES[axis])


def charts(comparable: bool) -> list[Definition]:
    """Charts that may be set side by side: without comparability only those that no grader enters."""
    return [item for item in DEFINITIONS.values() if comparable or item.key not in GRADED]
