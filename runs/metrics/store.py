"""The one way in for logged points: batches into landing rows, landing rows into sealed chunks.

A batch is stored once: its digest is unique in the run. Points may come late and out of order. A point
that is sent again, in whatever batch, is one point when read. Native points come through
``runs.actions.record_metrics`` with the document that proves them, and are read by the same function.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from runs.metrics import codec
from runs.metrics.latest import remember
from runs.metrics.names import LOGGED, series_keys
from runs.metrics.sealing import seal, seal_when_due
from runs.models import Actor, Run, TrackedRun
from workbench.contracts.errors import RecordError

BOUND = 2**62  # steps and times beyond this would not survive differences
NAME_LENGTH = 500

__all__ = ["LOGGED", "Accepted", "LoggedPoint", "log_points", "log_rows", "seal"]


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


def log_points(
    run: Run, points: Sequence[LoggedPoint], *, source: str, actor: Actor, at: datetime, head: TrackedRun | None = None
) -> Accepted:
    """Store a batch for the run's current segment; all of it or nothing. ``source``: mlflow, api or import.

    ``head``: the run's locked head, where the caller holds it. Raises ``RecordError`` for a name or
    number that cannot be stored, and when the run was not logged.
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
    return log_rows(run, names, rows, source=source, actor=actor, at=at, head=head)


def log_rows(
    run: Run,
    names: Sequence[str],
    rows: NDArray[Any],
    *,
    source: str,
    actor: Actor,
    at: datetime,
    head: TrackedRun | None = None,
) -> Accepted:
    """``log_points`` for arrays: rows of ``codec.LANDING`` whose ``series`` indexes ``names``; flags are set here."""
    _check(names, rows)
    names, rows = _by_appearance(names, rows.copy())
    rows["flag"] = codec.flags_of(rows["value"])
    rows["value"][rows["flag"] != codec.FINITE] = 0.0
    rows["value"] += 0.0  # -0.0 becomes 0.0: two bytes of one number would be two points
    with transaction.atomic():
        head = head or TrackedRun.objects.select_for_update().filter(run=run).first()
        if head is None:
            raise RecordError(f"run: got {run.uid} of origin {run.origin}, expected a run that logs its metrics")
        segment = str(head.segment)
        digest = batch_digest(segment, names, rows)
        if _is_stored(run, digest):
            return Accepted(0, len(rows))
        keys = series_keys(run, segment, names)
        rows["series"] = np.array([keys[name] for name in names], np.int64)[rows["series"]]
        batch = _land(head, digest, rows, source, actor, at)
        remember(run, {keys[name]: name for name in names}, rows)
        head.landed, head.updated_at = head.landed + len(rows), at
        seal_when_due(run, head, batch, at=at)
    return Accepted(len(rows), 0)


# Statements of the hot path, written out: a trainer comes here with every step, and building them takes longer
# than the database takes to run them. The tables' triggers hold for them as for every other statement.
_IS_STORED = "SELECT 1 FROM runs_metricbatch WHERE run_id = %s AND digest = %s"
_BATCH = (
    "INSERT INTO runs_metricbatch (run_id, digest, points, source, actor_id, at)"
    " VALUES (%s, %s, %s, %s, %s, %s) RETURNING id"
)
_LANDING = "INSERT INTO runs_metriclanding (batch_id, run_id, points, payload) VALUES (%s, %s, %s, %s)"
_HEAD = "UPDATE runs_trackedrun SET landed = landed + %s, updated_at = %s WHERE id = %s"


def _is_stored(run: Run, digest: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_IS_STORED, [run.pk, digest])
        return cursor.fetchone() is not None


def _land(head: TrackedRun, digest: str, rows: NDArray[Any], source: str, actor: Actor, at: datetime) -> int:
    """Store a batch and its landing row, and count it; the batch's key. Call with the head locked."""
    when, count = connection.ops.adapt_datetimefield_value(at), len(rows)
    with connection.cursor() as cursor:
        cursor.execute(_BATCH, [head.run_id, digest, count, source, actor.pk, when])
        (key,) = cursor.fetchone()
        cursor.execute(_LANDING, [key, head.run_id, count, rows.tobytes()])
        cursor.execute(_HEAD, [count, when, head.pk])
    return int(key)


def _check(names: Sequence[str], rows: NDArray[Any]) -> None:
    for name in names:
        if not name or len(name) > NAME_LENGTH or "\x00" in name or not _is_text(name):
            shown = name[:80].encode("utf-8", "backslashreplace").decode()
            raise RecordError(
                f"name: got {shown!r} of {len(name)} characters, expected 1 to {NAME_LENGTH} of UTF-8 without NUL"
            )
    for column in ("step", "time_ms"):
        if len(rows) and (rows[column].max() >= BOUND or rows[column].min() <= -BOUND):
            raise RecordError(f"points.{column}: got a number beyond {BOUND}, expected one within")


def _is_text(name: str) -> bool:
    if name.isascii():
        return True
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _by_appearance(names: Sequence[str], rows: NDArray[Any]) -> tuple[Sequence[str], NDArray[Any]]:
    """Names in the order in which the rows first use them, so that a batch's digest can be made again from them."""
    highest = np.maximum.accumulate(rows["series"]) if len(rows) else rows["series"]
    if len(rows) and highest[0] == 0 and highest[-1] == len(names) - 1 and not np.any(np.diff(highest) > 1):
        return names, rows
    used, first, places = np.unique(rows["series"], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(used), np.int64)
    rank[order] = np.arange(len(used))
    rows["series"] = rank[places]
    return [names[int(item)] for item in used[order]], rows


def batch_digest(segment: str, names: Sequence[str], rows: NDArray[Any]) -> str:
    """SHA-256 of an attempt, names in order of appearance, and landing rows whose ``series`` indexes them."""
    found = hashlib.sha256(json.dumps([segment, list(names)], separators=(",", ":")).encode())
    found.update(rows.tobytes())
    return found.hexdigest()
