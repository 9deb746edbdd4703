"""Rows of the trajectories list: reward, advantage, tokens, turns, what was cut, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Sum

from runs.models import Trajectory, TrajectoryCredit, Turn


@dataclass(frozen=True)
class TrajectoryRow:
    """One trajectory. ``trained`` and ``cut`` None: no update has taken it. ``turns``: decisions that were made."""

    trajectory: Trajectory
    turns: int
    trained: int | None
    cut: int | None


def trajectory_rows(found: Sequence[Trajectory]) -> list[TrajectoryRow]:
    """What the table shows, in two further queries."""
    ids = [row.pk for row in found]
    turns = dict(Turn.objects.filter(trajectory__in=ids).values_list("trajectory").annotate(n=Count("pk")).order_by())
    credits = {
        pk: (trained, cut)
        for pk, trained, cut in TrajectoryCredit.objects.filter(trajectory__in=ids)
        .values_list("trajectory")
        .annotate(trained=Sum("trained_tokens"), cut=Sum("masked_tokens"))
        .order_by()
    }
    return [TrajectoryRow(row, turns.get(row.pk, 0), *credits.get(row.pk, (None, None))) for row in found]
