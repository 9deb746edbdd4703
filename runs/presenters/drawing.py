"""Geometry of small drawings: dots on a line, step bars, stacked bars. Plain numbers, no markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dot:
    """One mark. ``x`` and ``y`` in drawing units."""

    x: float
    y: float
    label: str = ""
    slot: int | None = None


def stacked_dots(values: Sequence[float | None], width: float, middle: float, step: float = 5.0) -> list[Dot]:
    """Dots on a 0..1 line of ``width``; equal values stand on top of each other, so position never lies.

    Values closer than one dot's width stack too. ``None`` (no reward) draws nothing. ``y`` is centred on
    ``middle``.
    """
    placed: list[tuple[float, int, float]] = []
    for slot, value in enumerate(values):
        if value is not None:
            placed.append((min(1.0, max(0.0, value)) * width, slot, value))
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


def stacked_bar(parts: Sequence[tuple[str, float | None, str]], scale: float) -> list[Segment]:
    """Segments side by side; parts without a value or of zero width draw nothing. ``scale``: units per point."""
    found, x = [], 0.0
    for label, value, tone in parts:
        width = (value or 0.0) * scale
        if width > 0:
            found.append(Segment(round(x, 2), round(width, 2), tone, label))
            x += width
    return found
