"""The one way to read points, native or logged: series of a run, their points, and what a chart draws.

Native points are rows that a document proves; logged points are chunks and landing rows. Callers see
``codec.Points`` either way. No point is dropped, filled or rounded here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runs.metrics import codec
from runs.metrics.codec import Points
from runs.metrics.names import LOGGED
from runs.metrics.sealing import by_series, landing_rows
from runs.models import MetricBatch, MetricChunk, MetricLanding, MetricPoint, MetricSeries, Run
from workbench.contracts.canonical import digest

AXES = ("step", "trajectories", "tokens", "wall", "time")
FLAGS = {"nan": codec.NAN, "inf": codec.PLUS_INFINITY, "-inf": codec.MINUS_INFINITY}


@dataclass(frozen=True)
class SeriesInfo:
    """Identity of a series. ``name`` is empty for a native series, whose ``definition`` is its name."""

    pk: int
    uid: str
    definition: str
    name: str
    phase: str
    split: str
    labels: dict[str, str]
    segment: str

    @property
    def is_logged(self) -> bool:
        """Whether a trainer from elsewhere named it."""
        return self.definition == LOGGED

    @property
    def key(self) -> str:
        """Name for people: the received name, or the definition with its labels."""
        if self.is_logged:
            return self.name
        labels = ",".join(f"{key}={value}" for key, value in sorted(self.labels.items()))
        return self.definition.rpartition("/")[0] + (f"[{labels}]" if labels else "")


def series_of(
    run: Run, *, definitions: Sequence[str] | None = None, names: Sequence[str] | None = None
) -> list[SeriesInfo]:
    """Series of a run in a fixed order; ``definitions`` or ``names`` narrow it."""
    rows = MetricSeries.objects.filter(run=run)
    if definitions is not None:
        rows = rows.filter(definition__in=definitions)
    if names is not None:
        rows = rows.filter(name__in=names)
    columns = ("pk", "uid", "definition", "name", "phase", "split", "labels", "segment")
    found = rows.order_by("definition", "name", "phase", "split", "labels_key", "segment").values_list(*columns)
    return [SeriesInfo(pk, str(uid), *rest) for pk, uid, *rest in found]


def load(
    run: Run,
    series: Sequence[SeriesInfo],
    *,
    start: int | None = None,
    stop: int | None = None,
    after: int | None = None,
) -> dict[int, Points]:
    """Points of each series by its row number; a handful of queries however many series there are.

    ``start`` and ``stop`` narrow logged series to steps within both, reading only the chunks that
    reach in; ``after`` narrows native series to points stored behind that row number.
    """
    native = [item.pk for item in series if not item.is_logged]
    logged = [item.pk for item in series if item.is_logged]
    found = {item.pk: codec.empty() for item in series}
    found.update(_native(native, after))
    found.update(_logged(run, logged, start, stop))
    return found


def _native(keys: Sequence[int], after: int | None = None) -> dict[int, Points]:
    columns = (
        "series_id", "update", "policy_version", "trajectories", "generated_tokens", "wall_seconds", "at", "value",
        "nonfinite", "count", "subject_uid",
    )  # fmt: skip
    rows: dict[int, list[tuple[Any, ...]]] = {}
    for part in _parts(keys):
        chosen = MetricPoint.objects.filter(series__in=part).order_by("series", "policy_version", "update", "id")
        if after is not None:
            chosen = chosen.filter(pk__gt=after)
        for row in chosen.values_list(*columns).iterator(chunk_size=5000):
            rows.setdefault(row[0], []).append(row)
    return {key: _native_points(found) for key, found in rows.items()}


def _native_points(rows: Sequence[tuple[Any, ...]]) -> Points:
    _, update, version, trajectories, tokens, wall, at, value, nonfinite, count, subject = zip(*rows, strict=True)

    def whole(column: Iterable[int | None]) -> NDArray[np.int64]:
        return np.array([-1 if item is None else item for item in column], np.int64)

    flags = [
        codec.FINITE if item is not None else FLAGS.get(name, codec.ABSENT)
        for item, name in zip(value, nonfinite, strict=True)
    ]
    return Points(
        step=np.array([v if u is None else u for u, v in zip(update, version, strict=True)], np.int64),
        time_ms=np.array([round(item.timestamp() * 1000) for item in at], np.int64),
        value=np.array([0.0 if item is None else item for item in value], np.float64),
        flag=np.array(flags, np.uint8),
        version=whole(version),
        trajectories=whole(trajectories),
        tokens=whole(tokens),
        wall=np.array([math.nan if item is None else item for item in wall], np.float64),
        count=whole(count),
        subject=["" if item is None else str(item) for item in subject],
    )


def _parts(keys: Sequence[int], size: int = 500) -> Iterable[Sequence[int]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


def _logged(run: Run, keys: Sequence[int], start: int | None, stop: int | None) -> dict[int, Points]:
    if not keys:
        return {}
    parts: dict[int, list[Points]] = {}
    for some in _parts(keys):
        rows = MetricChunk.objects.filter(series__in=some).order_by("series", "ordinal")
        if start is not None:
            rows = rows.filter(last_step__gte=start)
        if stop is not None:
            rows = rows.filter(first_step__lte=stop)
        chunks: dict[int, list[tuple[bytes | memoryview, int]]] = {}
        for key, payload, count in rows.values_list("series_id", "payload", "points").iterator(chunk_size=200):
            chunks.setdefault(key, []).append((payload, count))
        for key, found in chunks.items():
            points = codec.read_chunks([payload for payload, _ in found], sum(count for _, count in found))
            parts.setdefault(key, []).append(points)
    wanted = set(keys)
    payloads = MetricLanding.objects.filter(run=run).order_by("id").values_list("payload", flat=True)
    for key, landed in by_series(landing_rows(payloads)).items():
        if key in wanted:
            parts.setdefault(key, []).append(codec.points_of(landed))
    return {key: _within(codec.merge(some), start, stop) for key, some in parts.items()}


def history(run: Run, name: str, *, start: int | None = None, stop: int | None = None) -> Points:
    """Every logged point of a name over all attempts of a run, in order of (time, step)."""
    found = load(run, [item for item in series_of(run, names=[name]) if item.is_logged], start=start, stop=stop)
    points = [part for part in found.values() if len(part)]
    if not points:
        return codec.empty()
    whole = points[0] if len(points) == 1 else codec.joined(points)
    if len(whole) > 1 and bool(np.any(whole.time_ms[1:] < whole.time_ms[:-1])):
        order = np.lexsort((whole.value, whole.step, whole.time_ms))
        whole = codec.take(whole, order)
    return whole


def _within(points: Points, start: int | None, stop: int | None) -> Points:
    """Points whose step lies within both bounds."""
    low = 0 if start is None else int(np.searchsorted(points.step, start, "left"))
    high = len(points) if stop is None else int(np.searchsorted(points.step, stop, "right"))
    return points if (low, high) == (0, len(points)) else codec.part(points, low, high)


def data_sha256(run: Run, series: Sequence[SeriesInfo]) -> str:
    """Digest of what the series' points rest on: chunks, batches not yet sealed, and metrics documents."""
    keys = [item.pk for item in series]
    parts: list[list[str]] = []
    for part in _parts(keys):
        sealed = MetricChunk.objects.filter(series__in=part).order_by("series", "ordinal")
        native = (
            MetricPoint.objects.filter(series__in=part).order_by("document").values_list("document__sha256", flat=True)
        )
        parts += [list(sealed.values_list("sha256", flat=True)), list(native.distinct())]
    waiting = MetricBatch.objects.filter(run=run, landing__isnull=False).order_by("id")
    return digest(
        {
            "series": [item.uid for item in series],
            "parts": parts,
            "batches": list(waiting.values_list("digest", flat=True)),
        }
    )


def axis_of(points: Points, axis: str, started_ms: int) -> NDArray[Any] | None:
    """Values of a step axis, or None where these points do not have it (unknown, which is no zero).

    ``wall`` is seconds since the run's start, ``time`` milliseconds since 1970.
    """
    if axis not in AXES:
        raise ValueError(f"axis: got {axis!r}, expected one of {', '.join(AXES)}")
    if axis == "step":
        return points.step
    if axis == "time":
        return points.time_ms
    if axis == "wall":
        return points.wall if points.wall is not None else (points.time_ms - started_ms) / 1000.0
    column = points.trajectories if axis == "trajectories" else points.tokens
    return None if column is None or not len(column) or column.min() < 0 else column
