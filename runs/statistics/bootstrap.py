"""Task bootstrap: percentile intervals of means over tasks, paired differences, gaps, seed spread.

Deterministic to the last bit on every machine: raw Philox output (a stream that numpy keeps stable)
keyed by (seed, stream), indices by multiply-shift, and elementwise IEEE arithmetic in task order
(no BLAS, no reduction whose order a library may choose). A resample draws whole tasks, so each task
keeps all of its repeats. Index bias of multiply-shift is below tasks / 2**32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.contracts.canonical import encode_float

RESAMPLES = 10_000
LEVEL = 0.95
METHOD = "percentile_task_bootstrap/1"
GENERATOR = "philox4x64-10"
TOO_FEW_TASKS = "fewer than 2 tasks: no interval"
ZERO_WIDTH = "every task has the same value: the width is 0 and is no evidence of precision"
_BLOCK = 2_000_000  # draws held at once; bounds memory, does not change the stream
TRAINING_SEEDS = "training_seeds"
REPEATED_EVALUATIONS = "repeated_evaluations"


@dataclass(frozen=True)
class Interval:
    """Bootstrap interval of a mean over ``tasks`` tasks. ``low`` and ``high`` are None below 2 tasks."""

    low: float | None
    high: float | None
    level: float
    tasks: int
    note: str | None = None

    @property
    def degenerate(self) -> bool:
        """Zero width: the sample holds no variation over tasks."""
        return self.low is not None and self.low == self.high

    def to_json(self) -> dict[str, Any]:
        """Canonical-JSON-able."""
        return {
            "low": encode_float(self.low),
            "high": encode_float(self.high),
            "level": self.level,
            "tasks": self.tasks,
            "note": self.note,
        }


@dataclass(frozen=True)
class Bootstrap:
    """What an interval is computed with. ``seed``: decimal string of 64 bits."""

    seed: str
    level: float = LEVEL
    resamples: int = RESAMPLES

    def __post_init__(self) -> None:
        _seed_number(self.seed)
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level: got {self.level}, expected a number between 0 and 1")
        if self.resamples < 1:
            raise ValueError(f"resamples: got {self.resamples}, expected at least 1")

    def at(self, level: float) -> Bootstrap:
        """The same draws at another level."""
        return Bootstrap(self.seed, level, self.resamples)


def _seed_number(seed: str) -> int:
    if not (isinstance(seed, str) and seed.isascii() and seed.isdigit() and int(seed) < 2**64):
        raise ValueError(f"seed: got {seed!r}, expected a decimal string below 2**64")
    return int(seed)


@lru_cache(maxsize=8)
def _weights(seed: int, stream: int, tasks: int, resamples: int) -> NDArray[np.uint16]:
    """How often each task is drawn in each resample: (tasks, resamples), columns sum to ``tasks``."""
    generator = np.random.Philox(key=np.array([seed, stream], dtype=np.uint64))
    weights = np.empty((tasks, resamples), dtype=np.uint16)
    rows = max(1, _BLOCK // tasks)
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        raw = generator.random_raw(count * tasks)
        index = ((raw >> np.uint64(32)) * np.uint64(tasks)) >> np.uint64(32)
        flat = index.astype(np.int64) + np.repeat(np.arange(count, dtype=np.int64) * tasks, tasks)
        drawn = np.bincount(flat, minlength=count * tasks).reshape(count, tasks)
        weights[:, start : start + count] = drawn.T
    weights.flags.writeable = False
    return weights


def resampled_means(values: Sequence[float], bootstrap: Bootstrap, stream: int = 0) -> NDArray[np.float64]:
    """Means of ``bootstrap.resamples`` resamples of ``values`` (one per task, in a fixed order), within [min, max].

    Raises ``ValueError`` for no task, more than 65,535 tasks or a non-finite value.
    """
    if not 1 <= len(values) <= 65_535:
        raise ValueError(f"values: got {len(values)} tasks, expected 1 to 65535")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("values: got a non-finite value, expected finite numbers")
    weights = _weights(_seed_number(bootstrap.seed), stream, len(values), bootstrap.resamples)
    total = np.zeros(bootstrap.resamples, dtype=np.float64)
    for value, row in zip(values, weights, strict=True):
        total += row * np.float64(value)
    total /= len(values)
    return np.clip(total, min(values), max(values))


def percentile_interval(samples: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Central percentile interval with linear interpolation between order statistics."""
    ordered = np.sort(samples)
    bounds = []
    for share in ((1.0 - level) / 2.0, 1.0 - (1.0 - level) / 2.0):
        position = share * (len(ordered) - 1)
        below = math.floor(position)
        above = min(below + 1, len(ordered) - 1)
        low, high = float(ordered[below]), float(ordered[above])
        bounds.append(min(max(low + (high - low) * (position - below), low), high))
    return bounds[0], bounds[1]


def task_interval(values: Sequence[float], bootstrap: Bootstrap) -> Interval:
    """Interval of the mean over tasks; ``values``: one number per task (the mean of its repeats)."""
    if len(values) < 2:
        return Interval(None, None, bootstrap.level, len(values), TOO_FEW_TASKS)
    low, high = percentile_interval(resampled_means(values, bootstrap), bootstrap.level)
    return Interval(low, high, bootstrap.level, len(values), ZERO_WIDTH if low == high else None)


def paired_interval(baseline: Sequence[float], treatment: Sequence[float], bootstrap: Bootstrap) -> Interval:
    """Interval of mean(treatment - baseline) over tasks that both sides measured, same order, same repeats.

    A resample draws a task once for both sides. Raises ``ValueError`` for unequal lengths.
    """
    if len(baseline) != len(treatment):
        raise ValueError(f"treatment: got {len(treatment)} tasks, expected {len(baseline)} as in baseline")
    return task_interval([after - before for before, after in zip(baseline, treatment, strict=True)], bootstrap)


def gap_interval(first: Sequence[float], second: Sequence[float], bootstrap: Bootstrap) -> Interval:
    """Interval of mean(first) - mean(second) over two different task sets, resampled independently.

    ``tasks`` of the result is the smaller number of tasks.
    """
    tasks = min(len(first), len(second))
    if tasks < 2:
        return Interval(None, None, bootstrap.level, tasks, TOO_FEW_TASKS)
    samples = resampled_means(first, bootstrap, 0) - resampled_means(second, bootstrap, 1)
    low, high = percentile_interval(samples, bootstrap.level)
    return Interval(low, high, bootstrap.level, tasks, ZERO_WIDTH if low == high else None)


@dataclass(frozen=True)
class Spread:
    """Mean +- sample standard deviation (divide by n - 1) of ``of``; ``sd`` is None below two values."""

    of: str
    n: int
    mean: float | None
    sd: float | None

    @property
    def distinguished(self) -> bool | None:
        """Whether the mean is at least two standard deviations from 0. None where ``sd`` is.

        False asserts no equivalence. A mean of exactly 0 is never distinguished.
        """
        if self.mean is None or self.sd is None:
            return None
        return self.mean != 0.0 and abs(self.mean) >= 2.0 * self.sd

    def to_json(self) -> dict[str, Any]:
        """Canonical-JSON-able."""
        return {"of": self.of, "n": self.n, "mean": encode_float(self.mean), "sd": encode_float(self.sd)}


def spread(values: Sequence[float], of: str = TRAINING_SEEDS) -> Spread:
    """Mean and sample standard deviation of ``values``; the name of what varies is part of the result."""
    if not values:
        return Spread(of, 0, None, None)
    mean = min(max(math.fsum(values) / len(values), min(values)), max(values))
    if len(values) < 2:
        return Spread(of, 1, mean, None)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return Spread(of, len(values), mean, math.sqrt(variance))
