"""Rows of the groups table: rewards as dots, sigma, eligibility, advantages, Fatal, cut tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Prefetch, QuerySet, Sum

from runs.models import Group, Run, Trajectory, TrajectoryCredit
from runs.presenters.drawing import Dot, stacked_dots

WIDTH = 160.0
FILTERS = ("all", "trains", "cut", "zero", "rejected", "fatal")


@dataclass(frozen=True)
class GroupRow:
    """One group. ``dots`` of its rewards; ``mean_x`` None where the group has no mean; ``cut`` tokens removed."""

    group: Group
    slots: Sequence[Trajectory]
    dots: list[Dot]
    mean_x: float | None
    height: float
    fatals: int
    cut: int | None
    signal: str

    @property
    def invalid(self) -> list[int]:
        """Slots without an outcome."""
        return [row.slot for row in self.slots if row.status != "valid"]


def signal_state(group: Group, trained: int | None, skipped: bool = False) -> str:
    """Key of the pill. ``trained`` tokens by the update's credits, None before any update took the group."""
    if not group.eligible:
        return "ineligible"
    if group.signal == "signal" and skipped:
        return "signal_skipped"
    if group.signal == "signal" and trained == 0:
        return "signal_cut"
    return group.signal or ""


def was_skipped(group: Group) -> bool:
    """Whether the update that took the group was skipped. Needs ``consumed__update`` loaded."""
    update = getattr(getattr(group, "consumed", None), "update", None)
    return update is not None and update.skipped is not None


def _with_cut() -> Any:
    """Groups of which an update took credits and trained nothing."""
    credits = TrajectoryCredit.objects.filter(trajectory__group=OuterRef("pk"))
    return Exists(credits) & ~Exists(credits.filter(trained_tokens__gt=0))


def filtered_groups(run: Run, choice: str) -> QuerySet[Group]:
    """Training groups of a run, newest first, under one of ``FILTERS``."""
    rows = Group.objects.filter(run=run, purpose="train").order_by("-ordinal")
    if choice == "trains":
        return rows.filter(~_with_cut(), signal="signal").exclude(consumed__update__skipped__isnull=False)
    if choice == "cut":
        return rows.filter(_with_cut(), signal="signal")
    if choice == "zero":
        return rows.filter(eligible=True).exclude(signal="signal")
    if choice == "rejected":
        return rows.filter(eligible=False)
    if choice == "fatal":
        return rows.filter(trajectories__fatal_confirmed__isnull=False).distinct()
    return rows


def with_slots(rows: QuerySet[Group]) -> QuerySet[Group]:
    """The groups with their task and slots loaded, in two queries."""
    slots = Trajectory.objects.order_by("slot")
    return rows.select_related("task", "consumed__update").prefetch_related(
        Prefetch("trajectories", queryset=slots, to_attr="slots")
    )


def group_rows(groups: Sequence[Any]) -> list[GroupRow]:
    """What the table shows; ``groups`` come from ``with_slots``. One further query."""
    ids = [group.pk for group in groups]
    credits: dict[int, dict[str, Any]] = {
        row["trajectory__group"]: dict(row)
        for row in TrajectoryCredit.objects.filter(trajectory__group__in=ids)
        .values("trajectory__group")
        .annotate(cut=Sum("masked_tokens"), trained=Sum("trained_tokens"))
    }
    found = []
    for group in groups:
        rewards = [row.reward_total for row in group.slots]
        piles = max(1, max((rewards.count(value) for value in rewards if value is not None), default=1))
        height = max(20.0, 5.0 * piles + 4)
        credit = credits.get(group.pk, {})
        found.append(
            GroupRow(
                group,
                group.slots,
                stacked_dots(rewards, WIDTH, height / 2),
                None if group.mean is None else round(group.mean * WIDTH, 2),
                height,
                sum(row.fatal_confirmed is not None for row in group.slots),
                credit.get("cut"),
                signal_state(group, credit.get("trained"), was_skipped(group)),
            )
        )
    return found
