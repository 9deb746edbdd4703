"""The one way in for logged points: batches into landing rows, landing rows into sealed chunks.

A batch is stored once: its digest is unique in the run. Points may come late and out of order. A point
that is sent again, in whatever batch, is one point when read. Native points come through
``runs.actions.record_metrics`` with the document that proves them, and are read by the same function.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import F
from numpy.typing import NDArray

from runs.metrics import codec
from runs.models import Actor, MetricBatch, MetricChunk, MetricLanding, MetricLatest, MetricSeries, Run, TrackedRun
from workbench.contracts.canonical import derive_uid
from workbench.contracts.errors import RecordError

LOGGED = "logged/1"  # definition of a series that a trainer named itself
SEAL_POINTS = 2048  # points a series in landing rows before its run is sealed
SEAL_LEAST, SEAL_MOST = 50_000, 2_000_000  # of a run
CHUNK_POINTS = 65_536
BOUND = 2**62  # steps and times beyond this would not survive differences


@dataclass(frozen=True)
class LoggedPoint:
    """One value as it came: any name, any finite or non-finite number, step and time in milliseconds."""

    name: str
    value: float
    step: int
    time_ms: int


@dataclass(frozen=True)
class Accepted:
    """What a write did: points stored now, and points of a batch that was stored before."""

    stored: int
    repeated: int


def logged_series_uid(run_uid: str, segment: str, name: str) -> str:
    """Identity of a logged series: its run, attempt and name as received."""
    return str(derive_uid(run_uid, f"logged:{segment}:{name}"))


def log_points(run: Run, points: Sequence[LoggedPoint], *, source: str, actor: Actor, at: datetime) -> Accepted:
    """Store a batch for the run's current segment; all of it or nothing. ``source``: mlflow, api or import.

    Raises ``RecordError`` for a name or number that cannot be stored, and when the run was not logged.
    """
    if not points:
        return Accepted(0, 0)
    names = list(dict.fromkeys(point.name for point in points))
    place = {name: position for position, name in enumerate(names)}
    rows = np.zeros(len(points), codec.LANDING)
    rows["series"] = [place[point.name] for point in points]
    try:
        rows["step"] = [point.step for point in points]
        rows["time_ms"] = [point.time_ms for point in points]
    except OverflowError as error:
        raise RecordError("points.step: got an integer beyond 64 bits, expected one within") from error
    rows["value"] = [point.value for point in points]
    return log_rows(run, names, rows, source=source, actor=actor, at=at)


def log_rows(
    run: Run, names: Sequence[str], rows: NDArray[Any], *, source: str, actor: Actor, at: datetime
) -> Accepted:
    """``log_points`` for arrays: rows of ``codec.LANDING`` whose ``series`` indexes ``names``; flags are set here."""
    _check(names, rows)
    rows = rows.copy()
    rows["flag"] = codec.flags_of(rows["value"])
    rows["value"][rows["flag"] != codec.FINITE] = 0.0
    with transaction.atomic():
        head = TrackedRun.objects.select_for_update().filter(run=run).first()
        if head is None:
            raise RecordError(f"run: got {run.uid} of origin {run.origin}, expected a run that logs its metrics")
        segment = str(head.segment)
        digest = _digest(segment, names, rows)
        if MetricBatch.objects.filter(run=run, digest=digest).exists():
            return Accepted(0, len(rows))
        keys = _series(run, segment, names)
        rows["series"] = np.array([keys[name] for name in names], np.int64)[rows["series"]]
        batch = MetricBatch(run=run, digest=digest, points=len(rows), source=source, actor=actor, at=at)
        batch.save()
        MetricLanding.objects.create(batch=batch, run=run, points=len(rows), payload=rows.tobytes())
        _remember_latest(run, {key: name for name, key in keys.items()}, rows)
        landed = head.landed + len(rows)
        TrackedRun.objects.filter(pk=head.pk).update(landed=F("landed") + len(rows), updated_at=at)
        if landed >= SEAL_LEAST and landed >= _seal_at(run):
            seal(run, at=at)
    return Accepted(len(rows), 0)


def _check(names: Sequence[str], rows: NDArray[Any]) -> None:
    for name in names:
        if not name or len(name) > 500 or "\x00" in name:
            raise RecordError(f"name: got {name[:80]!r} of {len(name)} characters, expected 1 to 500 without NUL")
    for column in ("step", "time_ms"):
        if len(rows) and (rows[column].max() >= BOUND or rows[column].min() <= -BOUND):
            raise RecordError(f"points.{column}: got a number beyond {BOUND}, expected one within")


def _digest(segment: str, names: Sequence[str], rows: NDArray[Any]) -> str:
    found = hashlib.sha256(json.dumps([segment, list(names)], separators=(",", ":")).encode())
    found.update(rows.tobytes())
    return found.hexdigest()


def _series(run: Run, segment: str, names: Sequence[str]) -> dict[str, int]:
    """Row numbers by name, made where they are missing. Call with the head locked."""
    mine = MetricSeries.objects.filter(run=run, segment=segment, definition=LOGGED)
    found: dict[str, int] = {}
    for start in range(0, len(names), 500):
        found.update(mine.filter(name__in=names[start : start + 500]).values_list("name", "pk"))
    missing = [name for name in names if name not in found]
    made = [
        MetricSeries(
            uid=logged_series_uid(str(run.uid), segment, name), run=run, definition=LOGGED, phase="", split="",
            labels={}, labels_key="{}", segment=segment, name=name,
        )
        for name in missing
    ]  # fmt: skip
    for start in range(0, len(made), 500):
        for row in MetricSeries.objects.bulk_create(made[start : start + 500]):
            found[row.name] = row.pk
    return found


def _last_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """The newest row of each series by (step, time, position)."""
    order = np.lexsort((rows["time_ms"], rows["step"], rows["series"]))
    ends = np.flatnonzero(np.diff(rows["series"][order], append=np.int64(-1)))
    last: NDArray[Any] = rows[order[ends]]
    return last


def _remember_latest(run: Run, names: dict[int, str], rows: NDArray[Any]) -> None:
    """Move ``MetricLatest`` forward where the batch holds something newer."""
    last = _last_rows(rows)
    known = {
        series: (step, time_ms)
        for series, step, time_ms in MetricLatest.objects.filter(series__in=last["series"].tolist()).values_list(
            "series_id", "step", "time_ms"
        )
    }
    fresh = [
        MetricLatest(
            series_id=series, run=run, name=names[series], step=step, time_ms=time_ms,
            value=value if flag == codec.FINITE else None, nonfinite=codec.NONFINITE.get(flag, ""),
        )
        for series, step, time_ms, value, flag in last.tolist()
        if series not in known or (step, time_ms) >= known[series]
    ]  # fmt: skip
    MetricLatest.objects.bulk_create(
        fresh,
        update_conflicts=True,
        unique_fields=["series"],
        update_fields=["step", "time_ms", "value", "nonfinite"],
        batch_size=500,
    )


def _seal_at(run: Run) -> int:
    series = MetricSeries.objects.filter(run=run, definition=LOGGED).count()
    return min(SEAL_MOST, max(SEAL_LEAST, SEAL_POINTS * series))


def landing_rows(payloads: Iterable[bytes | memoryview]) -> NDArray[Any]:
    """Landing payloads as one array."""
    parts = [np.frombuffer(bytes(payload), codec.LANDING) for payload in payloads]
    return np.concatenate(parts) if parts else np.zeros(0, codec.LANDING)


def by_series(rows: NDArray[Any]) -> dict[int, NDArray[Any]]:
    """Rows of each series, in the order in which they came."""
    if not len(rows):
        return {}
    order = np.argsort(rows["series"], kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.diff(rows["series"], prepend=np.int64(-1)))
    return {int(part["series"][0]): part for part in np.split(rows, starts[1:])}


def seal(run: Run, *, at: datetime) -> list[MetricChunk]:
    """Turn every landing row of the run into chunks with a hash, one or more a series; returns the new ones."""
    with transaction.atomic():
        if TrackedRun.objects.select_for_update().filter(run=run).first() is None:
            raise RecordError(f"run: got {run.uid} of origin {run.origin}, expected a run that logs its metrics")
        landed = list(MetricLanding.objects.filter(run=run).order_by("id").values_list("pk", "payload"))
        if not landed:
            return []
        groups = by_series(landing_rows(payload for _, payload in landed))
        uids = dict(MetricSeries.objects.filter(run=run, definition=LOGGED).values_list("pk", "uid"))
        taken: dict[int, int] = {}
        for series, ordinal in MetricChunk.objects.filter(series__run=run).values_list("series_id", "ordinal"):
            taken[series] = max(taken.get(series, 0), ordinal + 1)
        chunks = []
        for series, rows in groups.items():
            rows = codec.ordered(rows)
            for part in np.array_split(rows, -(-len(rows) // CHUNK_POINTS)):
                points = codec.points_of(part)
                payload, sha256 = codec.write_chunk(str(uids[series]), points)
                chunks.append(
                    MetricChunk(
                        series_id=series, ordinal=taken.get(series, 0), points=len(points),
                        first_step=int(points.step[0]), last_step=int(points.step[-1]), sha256=sha256,
                        payload=payload, sealed_at=at,
                    )
                )  # fmt: skip
                taken[series] = taken.get(series, 0) + 1
        made = MetricChunk.objects.bulk_create(chunks, batch_size=200)
        MetricLanding.objects.filter(run=run, pk__lte=landed[-1][0]).delete()
        TrackedRun.objects.filter(run=run).update(landed=0)
    return made
