"""Groups as steps: one cell per group, or per bin of groups beyond one hundred."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from runs.models import Group, Run

MAX_CELLS = 100
WIDTH, LEFT, BAR = 1150.0, 128.0, 26.0


@dataclass(frozen=True)
class Cell:
    """One cell. ``height`` of the sigma bar in units; the flags draw one row each."""

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
    recorded: bool


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
    errors: int
    total: int


def build_step_bar(run: Run, planned: int) -> StepBar:
    """Cells from the run's training groups, in order; ``planned`` groups in all."""
    rows = list(
        Group.objects.filter(run=run, purpose="train")
        .order_by("ordinal")
        .values("uid", "ordinal", "eligible", "signal", "sigma", "ineligible_reason", "task__key")
    )
    planned = max(planned, len(rows), 1)
    per_cell = max(1, math.ceil(planned / MAX_CELLS))
    count = math.ceil(planned / per_cell)
    pitch = (WIDTH - LEFT) / count
    full = max((row["sigma"] or 0.0 for row in rows), default=0.0)
    bins: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        bins.setdefault(row["ordinal"] // per_cell, []).append(row)
    cells = [_cell(found, index, pitch, full) for index, found in sorted(bins.items())]
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
        errors=sum(bool(row["ineligible_reason"]) for row in rows),
        total=len(rows),
    )


def _cell(rows: Sequence[Mapping[str, Any]], index: int, pitch: float, full: float) -> Cell:
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
        url=reverse("runs:group", args=[first["uid"]]),
        title=f"{title}. {reason}" if reason else title,
        discarded=sum(not row["eligible"] for row in rows),
        all_right=sum(row["signal"] == "zero_all_right" for row in rows),
        all_wrong=sum(row["signal"] in ("zero_all_wrong", "zero_equal") for row in rows),
        errors=sum(bool(row["ineligible_reason"]) for row in rows),
        recorded=True,
    )
