"""Numbers of charts as plain JSON: what is drawn, how much of how much, by which sampler, resting on which bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Max
from numpy.typing import NDArray

from runs.metrics import codec
from runs.metrics.codec import Points
from runs.metrics.draw import SHOWN, draw
from runs.metrics.read import SeriesInfo, axis_of, data_sha256, load
from runs.metrics.sealing import by_series, landing_rows
from runs.models import MetricBatch, MetricLanding, MetricPoint, Run
from runs.presenters.layers.access import is_live, started_ms


@dataclass(frozen=True)
class Window:
    """What part of which axis is asked for. ``start``, ``stop`` None: open."""

    axis: str = "step"
    start: float | None = None
    stop: float | None = None
    limit: int = SHOWN


def _plain(values: NDArray[Any]) -> list[float | int]:
    found: list[float | int] = values.tolist()
    return found


def series_data(item: SeriesInfo, points: Points, window: Window, begin_ms: int) -> dict[str, Any]:
    """One line as drawn. ``x`` None: these points do not have the axis; nothing is drawn then, and it says so."""
    x = axis_of(points, window.axis, begin_ms)
    base = {"uid": item.uid, "n_stored": len(points)}
    if x is None or (x.dtype.kind == "f" and bool(np.isnan(x).any())):
        return {**base, "x": None, "y": [], "n_shown": 0, "sampler": "none", "nonfinite": [], "absent": []}
    drawn = draw(points, x, start=window.start, stop=window.stop, limit=window.limit)
    kept, marks = drawn.finite, drawn.marks
    odd = [(x[place].item(), int(points.flag[place])) for place in marks]
    found = {
        **base,
        "n_stored": drawn.stored,
        "n_shown": drawn.shown,
        "sampler": drawn.sampler,
        "window": list(drawn.window),
        "x": _plain(x[kept]),
        "y": _plain(points.value[kept]),
        "nonfinite": [[place, codec.NONFINITE[flag]] for place, flag in odd if flag != codec.ABSENT],
        "absent": [place for place, flag in odd if flag == codec.ABSENT],
    }
    if window.axis != "step":
        found["step"] = _plain(points.step[kept])
    if points.count is not None:
        found["count"] = [None if value < 0 else value for value in _plain(points.count[kept])]
    if points.subject is not None:
        found["subject"] = [points.subject[place] for place in kept]
    return found


def cursor_of(run: Run) -> str:
    """What has been stored so far, as an opaque text: give it back to get only what is new."""
    if run.origin == Run.NATIVE:
        return f"n{MetricPoint.objects.filter(series__run=run).aggregate(last=Max('pk'))['last'] or 0}"
    return f"b{MetricBatch.objects.filter(run=run).aggregate(last=Max('pk'))['last'] or 0}"


def _after(cursor: str, run: Run) -> int | None:
    """Row number of a cursor of this kind of run; None for a text that is none."""
    letter, digits = cursor[:1], cursor[1:]
    if letter != ("n" if run.origin == Run.NATIVE else "b") or not digits.isdecimal() or len(digits) > 18:
        return None
    return int(digits)


def fresh_points(run: Run, series: Sequence[SeriesInfo], cursor: str) -> dict[int, Points] | None:
    """Points stored after a cursor, by series, those without any left out.

    None where this cannot be told: a text that is no cursor of this run, or batches that have been sealed
    into chunks since. The caller then reads everything.
    """
    after = _after(cursor, run)
    if after is None:
        return None
    if run.origin == Run.NATIVE:
        new = MetricPoint.objects.filter(series__run=run, pk__gt=after).values_list("series_id", flat=True)
        touched = set(new.distinct())
        whole = load(run, [item for item in series if item.pk in touched], after=after)
        return {key: points for key, points in whole.items() if len(points)}
    landed = MetricLanding.objects.filter(run=run, batch_id__gt=after)
    payloads = list(landed.order_by("id").values_list("payload", flat=True))
    if len(payloads) != MetricBatch.objects.filter(run=run, pk__gt=after).count():
        return None
    wanted = {item.pk for item in series}
    groups = by_series(landing_rows(payloads))
    return {key: codec.merge([codec.points_of(rows)]) for key, rows in groups.items() if key in wanted}


def layer_data(run: Run, series: Sequence[SeriesInfo], window: Window, cursor: str = "") -> dict[str, Any]:
    """Lines of several charts in one answer, with the cursor read first: what comes later is never lost.

    ``cursor`` of an earlier answer: ``append`` is then true and the lines hold only what was stored after it,
    or false where that cannot be told and they hold everything.
    """
    now, begin = cursor_of(run), started_ms(run)
    fresh = fresh_points(run, series, cursor) if cursor else None
    if fresh is None:
        points = load(run, series)
        lines = [series_data(item, points[item.pk], window, begin) for item in series]
    else:
        lines = [series_data(item, fresh[item.pk], window, begin) for item in series if item.pk in fresh]
    return {
        "axis": window.axis,
        "cursor": now,
        "append": fresh is not None,
        "live": is_live(run),
        "sha256": data_sha256(run, series),
        "series": lines,
    }
