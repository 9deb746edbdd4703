"""Lines of several runs on one axis, seeds of an arm as mean and standard deviation, and what differs beyond it.

One run gives one value a step. Of several attempts the newest that has a step counts there: the trainer
went on from it. The standard deviation is that of seeds (divisor n - 1), never of tasks or tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runs.metrics import codec
from runs.metrics.codec import Points
from runs.metrics.read import axis_of, load
from runs.models import Run
from runs.presenters.compare.runs import DASHES
from runs.presenters.layers.access import started_ms
from runs.presenters.layers.quantities import Member, Quantity

LAST = 10  # values of a run that its end is the mean of
BEYOND = 2.0  # standard deviations below which a difference is not distinguished
REFERENCE, NOT_DISTINGUISHED, DISTINGUISHED, NO_SD, WITHHELD, NO_DATA = (
    "reference", "not_distinguished", "beyond", "no_sd", "withheld", "no_data",
)  # fmt: skip
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Arm:
    """Runs of one treatment. A run from elsewhere is an arm of its own.

    ``colour`` from 1; arms beyond the sixth take a colour again and begin with dash ``turn``.
    """

    key: tuple[Any, ...]
    label: str
    runs: tuple[Run, ...]
    colour: int
    turn: int = 0

    @property
    def dash(self) -> str:
        """Class of its key: dashed where the colour is taken again."""
        return DASHES[self.turn % len(DASHES)]


@dataclass(frozen=True)
class Line:
    """One run's finite values: ``step``, ``x`` on the axis, ``value``, one a step. ``odd``: (x, word) of the others.

    ``x`` is None where the points do not have the axis. ``absent`` steps have no value here, which is no zero.
    """

    member: Member
    arm: Arm
    dash: int
    step: NDArray[np.int64]
    x: Floats | None
    value: Floats
    stored: int
    odd: tuple[tuple[float, str], ...] = ()
    absent: int = 0

    @property
    def label(self) -> str:
        """Name of the run, with the received name where there is one."""
        name = self.member.run.name
        return f"{name}: {self.member.received}" if self.member.received else name


@dataclass(frozen=True)
class Band:
    """Mean and standard deviation over the runs of an arm at each step that at least two of them have.

    ``x`` is the mean place of those runs on the axis; ``n`` counts them.
    """

    arm: Arm
    step: NDArray[np.int64]
    x: Floats
    mean: Floats
    sd: Floats
    n: NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """An arm at the common end of the axis. ``n`` runs with a value of ``of``; ``sd`` None for fewer than two.

    ``difference`` against the first row that has a value; ``verdict`` one of the words above.
    ``live``: a run of it goes on, so the number may still move.
    """

    arm: Arm
    received: str
    n: int
    of: int
    mean: float | None
    sd: float | None
    difference: float | None
    verdict: str
    live: bool


@dataclass(frozen=True)
class Compared:
    """A quantity over its runs. ``end``: the last place of the axis that every line reaches; None without a line."""

    quantity: Quantity
    lines: tuple[Line, ...]
    bands: tuple[Band, ...]
    rows: tuple[Row, ...]
    end: float | None
    pooled_sd: float | None
    without_axis: int
    points: dict[int, Points] = field(repr=False, default_factory=dict)


def arms_of(runs: Sequence[Run]) -> list[Arm]:
    """Arms in the order in which the runs first name them."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        key = ("run", run.pk) if run.arm_id is None else ("arm", run.plan_version_id, run.arm_id)
        groups.setdefault(key, []).append(run)
    plans = {run.plan_version_id for run in runs if run.plan_version_id is not None}
    found = []
    for place, (key, some) in enumerate(groups.items()):
        first = some[0]
        label = first.name
        if first.arm is not None and first.plan_version is not None:
            label = f"{first.plan_version.plan.slug} {first.arm.key}" if len(plans) > 1 else first.arm.key
        elif first.origin != Run.NATIVE:
            label = first.tracked.name
        found.append(Arm(key, label, tuple(some), place % 6 + 1, place // 6))
    return found


def by_step(points: Points, axis: Floats | None) -> tuple[NDArray[np.int64], Floats | None, Floats]:
    """One value a step: the points without a subject where there are some (a whole shard), else all.

    Several values of a step are averaged by their denominators, plainly where none has one: the rule of
    ``runs.readings.signals.line_of``. ``axis`` gives a step the largest place of its points.
    """
    whole = np.ones(len(points), bool)
    if points.subject is not None:
        without = np.array([not item for item in points.subject], bool)
        whole = without if without.any() else whole
    keep = whole & (points.flag == codec.FINITE)
    steps, at = np.unique(points.step[keep], return_inverse=True)
    values = points.value[keep]
    counts = np.maximum(points.count[keep], 0).astype(np.float64) if points.count is not None else np.zeros(len(values))
    total = np.bincount(at, counts, minlength=len(steps))
    weights = np.where(total[at] > 0, counts, 1.0)
    means = np.bincount(at, weights * values, minlength=len(steps)) / np.bincount(at, weights, minlength=len(steps))
    if axis is None:
        return steps, None, means
    place = np.full(len(steps), -np.inf)
    np.maximum.at(place, at, axis[keep])
    return steps, place, means


def _axis(points: Points, axis: str, begin: int) -> Floats | None:
    found = axis_of(points, axis, begin)
    if found is None or (found.dtype.kind == "f" and bool(np.isnan(found).any())):
        return None
    return found.astype(np.float64)


def _line(member: Member, arm: Arm, points: Mapping[int, Points], axis: str) -> Line:
    begin = started_ms(member.run)
    parts: list[tuple[NDArray[np.int64], Floats | None, Floats]] = []
    odd: list[tuple[float, str]] = []
    stored = absent = 0
    has_axis = True
    for item in member.series:
        some = points[item.pk]
        place = _axis(some, axis, begin)
        has_axis = has_axis and (place is not None or not len(some))
        parts.append(by_step(some, place))
        stored, absent = stored + len(some), absent + int((some.flag == codec.ABSENT).sum())
        if place is not None:
            odd += [
                (float(place[i]), codec.NONFINITE[int(some.flag[i])])
                for i in np.flatnonzero((some.flag != codec.FINITE) & (some.flag != codec.ABSENT))
            ]
    # The last attempt first: the first place at which ``unique`` meets a step is then that of the newest.
    whole = np.concatenate([steps for steps, _, _ in reversed(parts)])
    steps, first = np.unique(whole, return_index=True)
    value = np.concatenate([values for _, _, values in reversed(parts)])[first]
    x = None
    if has_axis:
        x = np.concatenate([np.zeros(0) if place is None else place for _, place, _ in reversed(parts)])[first]
    dash = arm.runs.index(member.run) + arm.turn
    return Line(member, arm, dash, steps, x, value, stored, tuple(odd), absent)


def band_of(arm: Arm, lines: Sequence[Line]) -> Band | None:
    """Mean and standard deviation of an arm's lines; None where no step is in two of them."""
    lines = [line for line in lines if line.x is not None and len(line.step)]
    if len(lines) < 2:
        return None
    steps = np.unique(np.concatenate([line.step for line in lines]))
    table = np.full((2, len(lines), len(steps)), np.nan)
    for row, line in enumerate(lines):
        at = np.searchsorted(steps, line.step)
        table[0, row, at], table[1, row, at] = line.x, line.value
    n = (~np.isnan(table[1])).sum(axis=0)
    keep = n > 1
    if not keep.any():
        return None
    x, values = table[0][:, keep], table[1][:, keep]
    return Band(
        arm, steps[keep], np.nanmean(x, axis=0), np.nanmean(values, axis=0), np.nanstd(values, axis=0, ddof=1), n[keep]
    )


def end_of(line: Line, end: float) -> float | None:
    """Mean of the last ``LAST`` values up to ``end``; None without one."""
    if line.x is None:
        return None
    order = np.argsort(line.x[line.x <= end], kind="stable")
    values = line.value[line.x <= end][order][-LAST:]
    return float(values.mean()) if len(values) else None


def pooled(groups: Sequence[Sequence[float]]) -> float | None:
    """Standard deviation within groups: root of summed squares over summed n - 1; None where no group has two."""
    freedom = sum(max(0, len(group) - 1) for group in groups)
    if not freedom:
        return None
    squares = sum(float(((np.array(group) - np.mean(group)) ** 2).sum()) for group in groups if len(group) > 1)
    return math.sqrt(squares / freedom)


def verdict_of(difference: float | None, sd: float | None, *, withheld: bool) -> str:
    """What may be said of a difference: nothing where it is withheld, without a spread, or below two of it."""
    if withheld:
        return WITHHELD
    if sd is None or difference is None:
        return NO_SD
    return DISTINGUISHED if abs(difference) > BEYOND * sd else NOT_DISTINGUISHED


def _rows(
    arms: Sequence[Arm], lines: Sequence[Line], live: frozenset[int], withheld: bool
) -> tuple[tuple[Row, ...], float | None, float | None]:
    placed = [line for line in lines if line.x is not None and len(line.step)]
    end = min((float(line.x.max()) for line in placed if line.x is not None), default=None)
    groups: dict[tuple[Any, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.arm.key, line.member.received), []).append(line)
    by_key = {arm.key: arm for arm in arms}
    values = {
        key: [value for line in some if end is not None and (value := end_of(line, end)) is not None]
        for key, some in groups.items()
    }
    sd = pooled(list(values.values()))
    reference: float | None = None
    rows = []
    for (key, received), found in values.items():
        arm = by_key[key]
        is_live = any(run.pk in live for run in arm.runs)
        mean = float(np.mean(found)) if found else None
        spread = float(np.std(found, ddof=1)) if len(found) > 1 else None
        difference, verdict = None, NO_DATA
        if mean is not None and reference is None:
            reference, verdict = mean, REFERENCE
        elif mean is not None and reference is not None:
            difference = mean - reference
            verdict = verdict_of(difference, sd, withheld=withheld)
        rows.append(Row(arm, received, len(found), len(arm.runs), mean, spread, difference, verdict, is_live))
    return tuple(rows), end, sd


def _load(members: Sequence[Member]) -> dict[int, Points]:
    """Points of all members: one reading for what no landing row of its run can add to, one for each other run."""
    points: dict[int, Points] = {}
    settled = [member for member in members if not member.received or not member.run.tracked.landed]
    if settled:
        points.update(load(settled[0].run, [item for member in settled for item in member.series]))
    for member in members:
        if member.series[0].pk not in points:
            points.update(load(member.run, member.series))
    return points


def compare(
    quantity: Quantity, arms: Sequence[Arm], axis: str, *, live: frozenset[int] = frozenset(), withheld: bool = False
) -> Compared:
    """A quantity over all its members. ``live``: row numbers of runs that go on."""
    points = _load(quantity.members)
    arm_of = {run.pk: arm for arm in arms for run in arm.runs}
    lines = tuple(_line(member, arm_of[member.run.pk], points, axis) for member in quantity.members)
    bands = []
    for arm in arms:
        found = band_of(arm, [line for line in lines if line.arm is arm and not line.member.received])
        if found is not None:
            bands.append(found)
    rows, end, sd = _rows(arms, lines, live, withheld)
    without = sum(line.x is None for line in lines)
    return Compared(quantity, lines, tuple(bands), rows, end, sd, without, points)
