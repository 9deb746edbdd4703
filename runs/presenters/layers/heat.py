"""Distributions over time: how many trajectories had which value at which policy version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import F
from numpy.typing import NDArray

from runs.models import ImportedRollout, MetricPoint, Run, Trajectory

COLUMNS, ROWS = 120, 24
QUANTITIES = ("reward", "advantage", "length", "staleness")


@dataclass(frozen=True)
class Heat:
    """``counts``[row][column]: trajectories with a value in ``edges``[row]..[row + 1] at ``steps``[column].

    ``width``: steps in a column. ``stored`` trajectories have the quantity, ``without`` do not (no reward,
    say), and are in no cell. Empty: the run has no such trajectories.
    """

    quantity: str
    steps: tuple[int, ...]
    width: int
    edges: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]
    stored: int
    without: int


def _rows(run: Run, quantity: str) -> list[tuple[int, float | None]]:
    if quantity == "staleness":
        points = MetricPoint.objects.filter(series__run=run, series__definition="l1.trajectory_age/1")
        return [(step, value) for step, value in points.values_list("update", "value") if step is not None]
    if run.origin != Run.NATIVE:
        column = {"reward": "reward", "advantage": "advantage", "length": "tokens"}[quantity]
        rollouts = ImportedRollout.objects.filter(run=run, step__isnull=False)
        return list(rollouts.values_list("step", column))
    column = {"reward": "reward_total", "advantage": "advantage", "length": "policy_tokens"}[quantity]
    trained = Trajectory.objects.filter(group__run=run, group__purpose="train")
    return list(trained.values_list(F("group__policy_version"), column))


def heat_of(run: Run, quantity: str) -> Heat:
    """The distribution of one of ``QUANTITIES`` over the run's versions (steps, of an import).

    Raises ``ValueError`` for another quantity.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity: got {quantity!r}, expected one of {', '.join(QUANTITIES)}")
    rows = _rows(run, quantity)
    kept = [(step, value) for step, value in rows if step is not None and value is not None and np.isfinite(value)]
    without = len(rows) - len(kept)
    if not kept:
        return Heat(quantity, (), 1, (), (), 0, without)
    steps, values = np.array([step for step, _ in kept]), np.array([value for _, value in kept], np.float64)
    return _binned(quantity, steps, values, without)


def _binned(quantity: str, steps: NDArray[Any], values: NDArray[np.float64], without: int) -> Heat:
    first, last = int(steps.min()), int(steps.max())
    width = -(-(last - first + 1) // COLUMNS)
    columns = (last - first) // width + 1
    low, high = float(values.min()), float(values.max())
    whole = quantity in ("length", "staleness")
    if whole:  # one cell a whole number while they fit
        size = max(1, -(-int(high - low + 1) // ROWS))
        edges = low + size * np.arange(int(high - low) // size + 2)
    else:
        edges = np.linspace(low, high if high > low else low + 1.0, ROWS + 1)
    row = np.clip(np.searchsorted(edges, values, "right") - 1, 0, len(edges) - 2)
    counts = np.zeros((len(edges) - 1, columns), np.int64)
    np.add.at(counts, (row, (steps - first) // width), 1)
    return Heat(
        quantity,
        tuple(range(first, last + 1, width)),
        width,
        tuple(float(edge) for edge in edges),
        tuple(tuple(int(cell) for cell in line) for line in counts),
        len(values),
        without,
    )
