"""Entropy against training: how much of the start is left, and how fast it changes now."""

from __future__ import annotations

import math
from collections.abc import Sequence

WINDOW = 20  # collections


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Least-squares slope of (x, y) pairs; None where x does not vary."""
    count = len(points)
    if count < 2:
        return None
    centre_x = math.fsum(x for x, _ in points) / count
    centre_y = math.fsum(y for _, y in points) / count
    spread = math.fsum((x - centre_x) ** 2 for x, _ in points)
    if spread == 0.0:
        return None
    return math.fsum((x - centre_x) * (y - centre_y) for x, y in points) / spread


def left(first: float, now: float) -> float | None:
    """Entropy now over that of the first collection; None where that was 0."""
    return now / first if first else None
