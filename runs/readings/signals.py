"""Lines that rules read: one value a step, from any run's series. Neither Django nor a database here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from runs.metrics import codec
from runs.metrics.codec import Points


@dataclass(frozen=True)
class Line:
    """Finite values of one metric by step; ``subjects``: uid behind each value, "" where it has none or several.

    ``dropped`` counts points that are not finite or absent, which no rule takes for a number.
    """

    definition: str
    phase: str
    split: str
    labels: Mapping[str, str]
    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    subjects: Sequence[str] = field(default=())
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.steps)


def whole(points: Points) -> NDArray[np.bool_]:
    """Which points stand for a step as a whole: those without a subject where there are some, else all.

    A collection shard's value has no subject; values of its groups beside it have theirs.
    """
    if points.subject is not None and any(not item for item in points.subject):
        return np.array([not item for item in points.subject], bool)
    return np.ones(len(points), bool)


def line_of(definition: str, phase: str, split: str, labels: Mapping[str, str], points: Points) -> Line:
    """One value a step: the points without a subject where there are some (a whole shard), else all.

    Several values of a step (shards) are averaged by their denominators, or plainly where none has one.
    """
    chosen = whole(points)
    finite = chosen & (points.flag == codec.FINITE)
    at, values = points.step[finite], points.value[finite]
    counts = np.maximum(points.count[finite], 0) if points.count is not None else np.zeros(len(at), np.int64)
    named = [] if points.subject is None else [item for item, keep in zip(points.subject, finite, strict=True) if keep]
    steps = np.unique(at)
    means, totals, subjects = [], [], []
    for step in steps:
        here = at == step
        weights = counts[here] if counts[here].sum() > 0 else np.ones(int(here.sum()))
        means.append(float(np.average(values[here], weights=weights)))
        totals.append(int(counts[here].sum()))
        found = {named[position] for position in np.flatnonzero(here)} if named else set()
        subjects.append(found.pop() if len(found) == 1 else "")
    return Line(
        definition, phase, split, dict(labels), steps, np.array(means, np.float64), np.array(totals, np.int64),
        subjects, int((chosen & (points.flag != codec.FINITE)).sum()),
    )  # fmt: skip


class Signals:
    """The lines of one run. ``budget``: decisions allowed a trajectory, None where unknown."""

    def __init__(self, lines: Iterable[Line], *, budget: int | None = None, group_size: int | None = None):
        self.lines = tuple(lines)
        self.budget, self.group_size = budget, group_size

    def line(self, name: str, *, phase: str = "train", split: str | None = None, **labels: str | None) -> Line | None:
        """The longest line of ``name`` (without its version) in a phase; None where nothing was measured.

        A label of None: the line must not have it. Bounds of intervals are lines of their own and never
        stand for the value: ask for ``bound="low"``.
        """
        found = self.every(name, phase=phase, split=split, **labels)
        return max(found, key=lambda line: (len(line), sorted(line.labels.items()))) if found else None

    def every(self, name: str, *, phase: str = "train", split: str | None = None, **labels: str | None) -> list[Line]:
        """All lines that ``line`` chooses from, those of every epoch, say."""
        labels = {"bound": None, **labels}
        return [
            line
            for line in self.lines
            if line.definition.rpartition("/")[0] == name
            and line.phase == phase
            and (split is None or line.split == split)
            and all(line.labels.get(key) == value for key, value in labels.items())
            and len(line)
        ]
