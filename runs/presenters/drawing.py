"""Geometry of small drawings: dots on a line, step bars, stacked bars. Plain numbers, no markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dot:
    """One mark. ``x`` and ``y`` in drawing units."""

    x: float
    y: float
    label: str = ""
    slot: int | None = None


def lowest(values: Iterable[float | None]) -> float:
    """Where a scale of rewards begins: 0, or -1 where one of them is negative."""
    return -1.0 if any(value is not None and value < 0 for value in values) else 0.0


def position(value: float, width: float, low: float) -> float:
    """Where a value stands on a line of ``width`` from ``low`` to 1; what lies outside stands at its end."""
    return min(1.0, max(0.0, (value - low) / (1.0 - low))) * width


def stacked_dots(
    values: Sequence[float | None], width: float, middle: float, step: float = 5.0, *, low: float = 0.0
) -> list[Dot]:
    """Dots on a line of ``width`` from ``low`` to 1; equal values stand on top of each other, so position never lies.

    Values closer than one dot's width stack too. ``None`` (no reward) draws nothing. ``y`` is centred on
    ``middle``.
    """
    placed: list[tuple[float, int, float]] = []
    for slot, value in enumerate(values):
        if value is not None:
            placed.append((position(value, width, low), slot, value))
    placed.sort()
    piles: list[list[tuple[float, int, float]]] = []
    for item in placed:
        if piles and abs(item[0] - piles[-1][0][0]) < 0.5:
            piles[-1].append(item)
        else:
            piles.append([item])
    dots = []
    for pile in piles:
        top = middle - step * (len(pile) - 1) / 2
        dots += [
            Dot(round(x, 2), round(top + step * i, 2), f"{value:.3f}", slot) for i, (x, slot, value) in enumerate(pile)
        ]
    return dots


@dataclass(frozen=True)
class Segment:
    """A piece of a bar from ``x`` over ``width``."""

    x: float
    width: float
    tone: str
    label: str


def stacked_bar(parts: Sequence[tuple[str, float | None, str]], scale: float, *, zero: float = 0.0) -> list[Segment]:
    """Segments side by side from ``zero``, negative ones to its left; parts without a value or of zero width draw
    nothing. ``scale``: units per point."""
    found, right, left = [], zero, zero
    for label, value, tone in parts:
        width = abs(value or 0.0) * scale
        if width <= 0:
            continue
        is_negative = (value or 0.0) < 0
        found.append(Segment(round(left - width if is_negative else right, 2), round(width, 2), tone, label))
        left, right = (left - width, right) if is_negative else (left, right + width)
    return found
