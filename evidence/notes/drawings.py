"""Geometry of the drawings of a notes page: bars from bound values, and the cells of the last storyboard frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

WIDTH, HEIGHT = 684, 14  # of one bar's drawing area, in units of its own box
CREDIT_CELLS = {
    "columns": tuple(14 + 11 * at for at in range(9)),
    "rows": tuple({"y": 12 + 15 * at, "chosen": at == 1} for at in range(5)),
}


@dataclass(frozen=True)
class Bar:
    """One row: what is drawn from the value, of what, and where both end. None: there is no value to draw."""

    item: dict[str, Any]
    width: float | None
    whole: float | None

    @property
    def rest(self) -> float | None:
        """Width of what the whole has beyond the value."""
        return None if self.width is None or self.whole is None else round(self.whole - self.width, 2)


def number_of(chip: Any) -> Fraction | None:
    """The exact value of a chip, None where it has none."""
    try:
        return None if chip is None or chip.value is None else Fraction(chip.value)
    except (ValueError, ZeroDivisionError):
        return None


def _whole(item: dict[str, Any]) -> Fraction | None:
    """Of what a value is drawn: the figure named, or all of it where the value is a rate n of N."""
    chip = item["figure"]
    if item["of"] is None and chip is not None and chip.value is not None and chip.version.style == "ratio":
        return Fraction(1)
    return number_of(item["of"])


def bars(items: Sequence[dict[str, Any]]) -> list[Bar]:
    """Rows on one common scale: the largest value or whole fills the width; a negative value draws nothing."""
    pairs = [(number_of(item["figure"]), _whole(item)) for item in items]
    largest = max((value for pair in pairs for value in pair if value is not None and value > 0), default=None)

    def wide(value: Fraction | None) -> float | None:
        return None if value is None or largest is None or value < 0 else round(float(value / largest) * WIDTH, 2)

    return [Bar(item, wide(value), wide(whole)) for item, (value, whole) in zip(items, pairs, strict=True)]
