"""Rows of the groups table: rewards as dots, sigma, eligibility, advantages, Fatal, cut tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Prefetch, QuerySet, Sum
from django.utils.translation import gettext_lazy as _

from runs.models import Group, Run, Trajectory, TrajectoryCredit
from runs.presenters.drawing import Dot, lowest, position, stacked_dots

WIDTH = 160.0
FILTERS = ("all", "trains", "cut", "zero", "rejected", "fatal")


@dataclass(frozen=True)
class HeatCell:
    """One slot under one metric. ``tone``: h1..h4 and l1..l4 of the shading ramp, none for no value."""

    x: float
    y: float
    tone: str
    title: str


@dataclass(frozen=True)
class Heat:
    """A small strip: rows are slots, columns metrics. ``columns``: (word, middle of the column)."""

    width: float
    height: float
    cell: tuple[float, float]
    cells: list[HeatCell]
    columns: list[tuple[Any, float]]


HEAT: tuple[tuple[str, Any, Callable[[Trajectory], float | None]], ...] = (
    ("reward", _("reward"), lambda row: row.reward_total),
    ("advantage", _("advantage"), lambda row: row.advantage),
    ("success", _("success"), lambda row: None if row.success is None else float(row.success)),
    ("depth", _("tool calls"), lambda row: row.tool_depth),
    ("failures", _("failures seen"), lambda row: row.failures_seen),
    ("tokens", _("tokens"), lambda row: row.generated_tokens),
)


def _tone(value: float | None, full: float) -> str:
    """Step of the ramp, by the share of the full scale; nothing for zero."""
    if value is None:
        return "none"
    step = min(4, math.ceil(4 * abs(value) / full - 1e-9)) if full else 0
    return "z" if step <= 0 else f"{'h' if value > 0 else 'l'}{step}"


def heat_of(slots: Sequence[Trajectory], full: Mapping[str, float], cell: tuple[float, float]) -> Heat:
    """The strip of one group; ``full``: full scale by metric."""
    cells = []
    for column, (key, word, read) in enumerate(HEAT):
        for place, row in enumerate(slots):
            value = read(row) if row.status == "valid" else None
            shown = "—" if value is None else f"{value:.3g}"
            tone = _tone(value, full.get(key, 1.0))
            cells.append(HeatCell(column * cell[0], place * cell[1], tone, f"s{row.slot} {word} {shown}"))
    columns = [(word, round((i + 0.5) * cell[0], 1)) for i, (_key, word, _read) in enumerate(HEAT)]
    return Heat(cell[0] * len(HEAT), cell[1] * len(slots), cell, cells, columns)


def full_scales(slots: Sequence[Trajectory]) -> dict[str, float]:
    """Full scale of each metric over the slots in view."""
    found = {"reward": 1.0, "success": 1.0, "advantage": 2.0}
    for key, _word, read in HEAT:
        if key not in found:
            found[key] = max((float(read(row) or 0.0) for row in slots), default=0.0)
    return found


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
    heat: Heat

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


def with_cut() -> Any:
    """Groups of which an update took credits and trained nothing."""
    credits = TrajectoryCredit.objects.filter(trajectory__group=OuterRef("pk"))
    return Exists(credits) & ~Exists(credits.filter(trained_tokens__gt=0))


def read_span(text: str) -> tuple[int, int] | None:
    """``"40-49"`` as first and last ordinal; None for anything else."""
    first, dash, last = text.partition("-")
    if dash and first.isdecimal() and last.isdecimal() and max(len(first), len(last)) < 10:
        return int(first), int(last)
    return None


def filtered_groups(run: Run, choice: str, span: tuple[int, int] | None = None) -> QuerySet[Group]:
    """Training groups of a run, newest first, under one of ``FILTERS``; ``span``: first and last ordinal."""
    rows = Group.objects.filter(run=run, purpose="train").order_by("-ordinal")
    if span is not None:
        rows = rows.filter(ordinal__range=span)
    if choice == "trains":
        return rows.filter(~with_cut(), signal="signal").exclude(consumed__update__skipped__isnull=False)
    if choice == "cut":
        return rows.filter(with_cut(), signal="signal")
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
    full = full_scales([row for group in groups for row in group.slots])
    low = lowest(row.reward_total for group in groups for row in group.slots)
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
                stacked_dots(rewards, WIDTH, height / 2, low=low),
                None if group.mean is None else round(position(group.mean, WIDTH, low), 2),
                height,
                sum(row.fatal_confirmed is not None for row in group.slots),
                credit.get("cut"),
                signal_state(group, credit.get("trained"), was_skipped(group)),
                heat_of(group.slots, full, (9.0, max(1.5, 20.0 / max(1, len(group.slots))))),
            )
        )
    return found
