"""What a chart draws of a series: exact points where they fit, else M4 of the finite ones; extrema are never lost.

M4 keeps the first, last, lowest and highest point of every bin of the axis (Jugel et al., "M4: A
visualization-oriented time series data aggregation", 2014). Points that are not finite are listed
beside, as marks, and never enter the range of the axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tsdownsample import M4Downsampler

from runs.metrics import codec
from runs.metrics.codec import Points

EXACT, M4 = "exact", "m4"
SHOWN = 2000


@dataclass(frozen=True)
class Drawn:
    """Positions into the points of a series, in order of the axis. ``shown`` + ``marks`` counts what is drawn.

    ``stored`` points lie in the window; ``finite`` positions are drawn as the line, ``marks`` are
    non-finite or absent. ``window`` is the (first, last) axis value asked for, None for open.
    """

    x: NDArray[Any]
    finite: NDArray[np.int64]
    marks: NDArray[np.int64]
    stored: int
    sampler: str
    window: tuple[float | None, float | None]

    @property
    def shown(self) -> int:
        """Points drawn, marks included."""
        return len(self.finite) + len(self.marks)


def draw(
    points: Points,
    x: NDArray[Any],
    *,
    start: float | None = None,
    stop: float | None = None,
    limit: int = SHOWN,
) -> Drawn:
    """Choose at most ``limit`` finite points (a multiple of 4, at least 12) of a window of the axis ``x``.

    The same arguments give the same points. First, last, lowest and highest finite point of the window
    are always among them.
    """
    if limit < 12 or limit % 4:
        raise ValueError(f"limit: got {limit}, expected a multiple of 4 from 12")
    order = None if len(x) < 2 or bool(np.all(x[1:] >= x[:-1])) else np.argsort(x, kind="stable")
    sorted_x = x if order is None else x[order]
    low = 0 if start is None else int(np.searchsorted(sorted_x, start, "left"))
    high = len(x) if stop is None else int(np.searchsorted(sorted_x, stop, "right"))
    high = max(low, high)
    if order is None and high - low > limit and not points.flag[low:high].any():  # nothing to pick out: no copies
        finite = low + _m4(x[low:high], points.value[low:high], limit)
        return Drawn(x, finite, np.zeros(0, np.int64), high - low, M4, (start, stop))
    inside = np.arange(low, high) if order is None else order[low:high]
    is_finite = points.flag[inside] == codec.FINITE
    finite, marks = inside[is_finite], inside[~is_finite]
    sampler = EXACT
    if len(finite) > limit:
        finite, sampler = finite[_m4(x[finite], points.value[finite], limit)], M4
    return Drawn(x, finite, marks, len(inside), sampler, (start, stop))


def _m4(x: NDArray[Any], y: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    chosen = M4Downsampler().downsample(np.ascontiguousarray(x), np.ascontiguousarray(y), n_out=limit - 4)
    ends = [0, len(y) - 1, int(np.argmin(y)), int(np.argmax(y))]
    return np.unique(np.concatenate((np.asarray(chosen, np.int64), np.array(ends, np.int64))))
