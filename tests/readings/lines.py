"""Lines for the rules, written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runs.readings.signals import Line, Signals


def line(name: str, values: Sequence[float], *, phase: str = "train", start: int = 0, **labels: str) -> Line:
    """One value a step from ``start`` on."""
    n = len(values)
    return Line(
        f"{name}/1", phase, "train", labels, np.arange(start, start + n), np.array(values, np.float64),
        np.full(n, 16), [f"u{i}" for i in range(n)],
    )  # fmt: skip


def ramp(first: float, last: float, n: int = 24) -> list[float]:
    """Even steps from ``first`` to ``last``."""
    return [float(item) for item in np.linspace(first, last, n)]


def wobble(centre: float, n: int = 24, size: float = 0.01) -> list[float]:
    """Up and down around a level: no trend."""
    return [centre + (size if i % 2 else -size) for i in range(n)]


def signals(*lines: Line, budget: int | None = 6) -> Signals:
    """Signals of these lines."""
    return Signals(lines, budget=budget, group_size=4)
