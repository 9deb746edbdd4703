"""Distribution of D by outcome of the original, drawn as stems at exact values: position never lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs.presenters.trials.funnel import Column, executes
from runs.presenters.trials.rows import Row, Signs, signs_of
from runs.presenters.trials.words import NEGATIVE, OUTCOME, PARTIAL, SUCCESS, ZERO

WIDTH, HEIGHT, REACH = 360.0, 34.0, 2.0  # drawing units of a strip; D lies in [-2, 2]
ORDER = (SUCCESS, PARTIAL, ZERO, NEGATIVE)
DIGIT, LINE, ABOVE = 7.0, 9.0, 5.0  # drawing units: width of a digit, height of a number, its distance from a stem
BROKEN = 2.5  # a zero stem more than this many times the tallest other one is drawn broken


@dataclass(frozen=True)
class Stem:
    """``count`` differences of exactly ``value``. ``broken``: taller than drawn; its number says how tall.

    ``label``: where the number stands, above the stem and above the numbers beside it that it would cover.
    """

    value: float
    count: int
    x: float
    top: float
    label: float
    sign: str
    broken: bool


@dataclass(frozen=True)
class Strip:
    """Usable differences of one class of originals. ``unusable``: recorded originals of the class without a D."""

    outcome: str
    word: Any
    range: Any
    signs: Signs
    unusable: int
    stems: tuple[Stem, ...]


@dataclass(frozen=True)
class Spread:
    """One scope. ``unknown``: recorded originals without a utility: they have no D and stand in no strip."""

    column: Column
    strips: tuple[Strip, ...]
    unknown: int


def _x(value: float) -> float:
    return round(WIDTH * (min(REACH, max(-REACH, value)) + REACH) / (2 * REACH), 1)


def _label(x: float, top: float, count: int, placed: Sequence[tuple[float, float, float]]) -> float:
    """Height of a number that covers none of those ``placed`` (x, height, half its width), as far as there is room."""
    half, y = DIGIT * len(str(count)) / 2, top - ABOVE
    while any(abs(x - other) < half + wide and abs(y - height) < LINE for other, height, wide in placed):
        if y - 1 < -ABOVE:
            return round(top - ABOVE, 1)
        y -= 1
    return round(y, 1)


def stems_of(values: Sequence[float]) -> tuple[Stem, ...]:
    """One stem for each exact value, heights in one scale; a zero stem far above the others is broken."""
    counts = Counter(round(value, 9) + 0.0 for value in values)
    tallest = max((n for value, n in counts.items() if value), default=0)
    nothing = counts.get(0.0, 0)
    scale = tallest if tallest and nothing > BROKEN * tallest else max(tallest, nothing, 1)
    found, placed = list[Stem](), list[tuple[float, float, float]]()
    for value, n in sorted(counts.items()):
        broken = n > scale
        height = min(1.0, n / scale)
        sign = "nil" if not value else "positive" if value > 0 else "negative"
        x, top = _x(value), round(HEIGHT * (1 - height), 1)
        label = _label(x, top, n, placed)
        placed.append((x, label, DIGIT * len(str(n)) / 2))
        found.append(Stem(value, n, x, top, label, sign, broken))
    return tuple(found)


def _strip(key: str, rows: Sequence[Row]) -> Strip:
    values = [row.difference for row in rows if row.difference is not None]
    return Strip(key, *OUTCOME[key], signs_of(rows), len(rows) - len(values), stems_of(values))


def build_spreads(columns: Sequence[Column]) -> list[Spread]:
    """One for each scope in which D is measured."""
    found = []
    for column in columns:
        if executes(column):
            strips = tuple(_strip(key, [row for row in column.rows if row.outcome == key]) for key in ORDER)
            found.append(Spread(column, strips, sum(row.original is None for row in column.rows)))
    return found


def scatter(columns: Sequence[Column], most: int) -> dict[str, Any]:
    """Points for the drawing of |D| over m/L: where the cap acts. At most ``most`` a scope, with how many there are."""
    lines = []
    for column in columns:
        rows = [row for row in column.rows if row.difference and row.ratio]
        if executes(column) and column.weight is not None and column.cap is not None:
            lines.append(
                {
                    "name": column.key,
                    "stored": len(rows),
                    "x": [row.ratio for row in rows[:most]],
                    "y": [row.difference for row in rows[:most]],
                    "uid": [str(row.trajectory) for row in rows[:most]],
                    "bound": column.cap / column.weight if column.weight else None,
                }
            )
    return {"lines": lines}
