"""Groups as steps: one cell per group, or per bin of groups beyond one hundred."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.models import Group, Run, Tombstone
from runs.presenters.groups import with_cut

MAX_CELLS = 100
WIDTH, LEFT, BAR = 1150.0, 128.0, 26.0
STRIP = 7.0  # height of a strip's mark that stands for every group of its cell


@dataclass(frozen=True)
class Cell:
    """One cell of ``groups`` groups. ``height`` of the sigma bar in units; each count draws a mark in its strip.

    ``errors`` counts slots without an outcome, ``cut`` groups that lost every token, ``removed`` groups whose
    captures retention removed.
    """

    x: float
    width: float
    middle: float
    height: float
    top: float
    url: str
    title: str
    discarded: int
    all_right: int
    all_wrong: int
    errors: int
    cut: int
    removed: int
    groups: int

    def mark(self, count: int) -> float:
        """Height of a mark: its share of the cell's groups, never too low to be seen."""
        return round(max(1.6, STRIP * min(1.0, count / self.groups)), 2) if count else 0.0

    @property
    def marks(self) -> dict[str, float]:
        """Heights of the strips' marks where a cell holds several groups, and (``_up``) the way up from their foot."""
        heights = {
            name: self.mark(getattr(self, name)) for name in ("discarded", "all_right", "all_wrong", "cut", "errors")
        }
        return heights | {f"{name}_up": -height for name, height in heights.items()}

    @property
    def held(self) -> bool:
        """Whether the captures of every group are held."""
        return not self.removed


@dataclass(frozen=True)
class StepBar:
    """The drawing. ``per_cell`` groups stand in one cell; ``ghosts`` are groups that have not been collected."""

    cells: list[Cell]
    ghosts: list[tuple[float, float]]
    ticks: list[tuple[float, int]]
    per_cell: int
    full_sigma: float
    with_signal: int
    discarded: int
    zero: int
    right: int
    wrong: int
    errors: int
    cut: int
    removed: int
    total: int


def build_step_bar(run: Run, planned: int) -> StepBar:
    """Cells from the run's training groups, in order; ``planned`` groups in all."""
    gone = Exists(Tombstone.objects.filter(sha256=OuterRef("capture_blob_sha256")))
    rows = list(
        Group.objects.filter(run=run, purpose="train")
        .annotate(
            invalid=Count("trajectories", filter=~Q(trajectories__status="valid")), is_cut=with_cut(), is_removed=gone
        )
        .order_by("ordinal")
        .values(
            "uid", "ordinal", "eligible", "signal", "sigma", "ineligible_reason", "task__key",
            "invalid", "is_cut", "is_removed",
        )
    )  # fmt: skip
    planned = max(planned, len(rows), 1)
    per_cell = max(1, math.ceil(planned / MAX_CELLS))
    count = math.ceil(planned / per_cell)
    pitch = (WIDTH - LEFT) / count
    full = max((row["sigma"] or 0.0 for row in rows), default=0.0)
    bins: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        bins.setdefault(row["ordinal"] // per_cell, []).append(row)
    page = reverse("runs:run", args=[run.uid])
    cells = [_cell(found, index, pitch, full, page) for index, found in sorted(bins.items())]
    ghosts = [(round(LEFT + i * pitch, 2), round(pitch - 2, 2)) for i in range(count) if i not in bins]
    step = max(1, round(count / 6 / 5) * 5 or 1)
    ticks = [(round(LEFT + (i + 0.5) * pitch, 1), i * per_cell) for i in range(0, count, step)]
    return StepBar(
        cells,
        ghosts,
        ticks,
        per_cell,
        full,
        with_signal=sum(row["signal"] == "signal" for row in rows),
        discarded=sum(not row["eligible"] for row in rows),
        zero=sum(row["eligible"] and row["signal"] != "signal" for row in rows),
        right=sum(_is_right(row) for row in rows),
        wrong=sum(_is_wrong(row) for row in rows),
        errors=sum(row["invalid"] for row in rows),
        cut=sum(_is_cut(row) for row in rows),
        removed=sum(row["is_removed"] for row in rows),
        total=len(rows),
    )


def _is_right(row: Mapping[str, Any]) -> bool:
    return bool(row["eligible"] and row["signal"] == "zero_all_right")


def _is_wrong(row: Mapping[str, Any]) -> bool:
    return bool(row["eligible"] and row["signal"] in ("zero_all_wrong", "zero_equal"))


def _is_cut(row: Mapping[str, Any]) -> bool:
    return bool(row["eligible"] and row["signal"] == "signal" and row["is_cut"])


def _cell(rows: Sequence[Mapping[str, Any]], index: int, pitch: float, full: float, page: str) -> Cell:
    """The cell of some neighbouring groups; one group opens itself, several open their part of the table."""
    x, width = LEFT + index * pitch, max(1.0, pitch - 2)
    sigma = max((row["sigma"] or 0.0 for row in rows), default=0.0)
    height = BAR * sigma / full if full else 0.0
    first, last = rows[0], rows[-1]
    span = str(first["ordinal"]) if first is last else f"{first['ordinal']}–{last['ordinal']}"
    reason = first["ineligible_reason"] or ""
    title = _("group %(span)s, %(task)s, σ %(sigma).3f") % {"span": span, "task": first["task__key"], "sigma": sigma}
    return Cell(
        x=round(x, 2),
        width=round(width, 2),
        middle=round(x + width / 2, 2),
        height=round(height, 2),
        top=round(BAR - height, 2),
        url=reverse("runs:group", args=[first["uid"]])
        if first is last
        else f"{page}?span={first['ordinal']}-{last['ordinal']}#groups",
        title=f"{title}. {reason}" if reason else title,
        discarded=sum(not row["eligible"] for row in rows),
        all_right=sum(_is_right(row) for row in rows),
        all_wrong=sum(_is_wrong(row) for row in rows),
        errors=sum(row["invalid"] for row in rows),
        cut=sum(_is_cut(row) for row in rows),
        removed=sum(row["is_removed"] for row in rows),
        groups=len(rows),
    )
