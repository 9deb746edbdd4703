"""Whether a line rises, falls or does neither: Mann-Kendall test and Theil-Sen slope. Pure numpy.

Mann 1945, Kendall 1975 (S with the variance corrected for ties); Sen 1968 (median of pairwise slopes).
Neither assumes a shape nor equal noise, and one wild point changes little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RISING, FALLING, FLAT, SHORT = "rising", "falling", "flat", "short"
LEAST = 8  # points; below it the test cannot reach |z| of 2.5 however clear the order is
Z = 2.5
MOST = 400  # points: more are averaged in equal blocks, since pairs grow with the square


@dataclass(frozen=True)
class Trend:
    """``z``: Mann-Kendall, positive when rising; ``slope`` per step (Theil-Sen); ``first``, ``last``: means of the
    first and last third. ``direction`` is SHORT below ``LEAST`` points, and then nothing is said."""

    direction: str
    z: float | None
    slope: float | None
    first: float | None
    last: float | None
    n: int


def _blocks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([part.mean() for part in np.array_split(values, MOST)])


def trend(steps: NDArray[np.int64], values: NDArray[np.float64], least_change: float = 0.0) -> Trend:
    """Trend of finite values in order of their steps. ``least_change``: a smaller change of thirds is flat."""
    n = len(values)
    if n < LEAST:
        return Trend(SHORT, None, None, None, None, n)
    x, y = np.asarray(steps, np.float64), np.asarray(values, np.float64)
    if n > MOST:
        x, y = _blocks(x), _blocks(y)
    later, earlier = np.triu_indices(len(y), 1)[::-1]
    rises = y[later] - y[earlier]
    score = float(np.sign(rises).sum())
    _, ties = np.unique(y, return_counts=True)
    m = len(y)
    spread = (m * (m - 1) * (2 * m + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18.0
    z = 0.0 if spread <= 0 or score == 0 else (score - math.copysign(1.0, score)) / math.sqrt(spread)
    apart = x[later] - x[earlier]
    slopes = rises[apart > 0] / apart[apart > 0]
    third = max(1, m // 3)
    first, last = float(y[:third].mean()), float(y[-third:].mean())
    direction = FLAT
    if abs(z) >= Z and abs(last - first) >= least_change:
        direction = RISING if z > 0 else FALLING
    return Trend(direction, z, float(np.median(slopes)) if len(slopes) else None, first, last, n)
