"""Landing rows into chunks with a hash. Each sealing leaves a receipt that binds every chunk the run has.

Chunks of a run are ordered by series uid and ordinal, so a receipt's digest does not depend on row numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from runs.actions.actors import service_actor
from runs.actions.receipts import append_receipt
from runs.metrics import codec
from runs.metrics.names import LOGGED
from runs.models import MetricChunk, MetricLanding, MetricSeries, Run, TrackedRun
from workbench.contracts.canonical import digest
from workbench.contracts.errors import RecordError

SEAL_POINTS = 2048  # points a series in landing rows before its run is sealed
SEAL_LEAST, SEAL_MOST = 50_000, 500_000  # of a run
SEAL_BATCHES, LOOK_EVERY = 4096, 64  # rows of landing, looked at with every 64th batch
CHUNK_POINTS = 65_536
SEALED = "metrics.sealed"


def seal_when_due(run: Run, head: TrackedRun, batch: int, *, at: datetime) -> None:
    """Seal a run whose landing rows have become many. Call with the head locked, after batch row ``batch``."""
    is_large = head.landed >= SEAL_LEAST and head.landed >= _seal_at(run)
    looks = not is_large and batch % LOOK_EVERY == 0
    if is_large or (looks and MetricLanding.objects.filter(run=run).count() >= SEAL_BATCHES):
        seal(run, at=at)


def _seal_at(run: Run) -> int:
    series = MetricSeries.objects.filter(run=run, definition=LOGGED).count()
    return min(SEAL_MOST, max(SEAL_LEAST, SEAL_POINTS * series))


def landing_rows(payloads: Iterable[bytes | memoryview]) -> NDArray[Any]:
    """Landing payloads as one array."""
    return np.frombuffer(b"".join(bytes(payload) for payload in payloads), codec.LANDING)


def by_series(rows: NDArray[Any]) -> dict[int, NDArray[Any]]:
    """Rows of each series, in the order in which they came."""
    if not len(rows):
        return {}
    series = rows["series"]
    if series[0] == series[-1] and bool(np.all(series == series[0])):
        return {int(series[0]): rows}
    order = np.argsort(series, kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.diff(rows["series"], prepend=np.int64(-1)))
    return {int(part["series"][0]): part for part in np.split(rows, starts[1:])}


def seal(run: Run, *, at: datetime) -> list[MetricChunk]:
    """Turn every landing row of the run into chunks with a hash, one or more a series; returns the new ones."""
    with transaction.atomic():
        head = TrackedRun.objects.select_for_update().select_related("study").filter(run=run).first()
        if head is None:
            raise RecordError(f"run: got {run.uid} of origin {run.origin}, expected a run that logs its metrics")
        landed = list(MetricLanding.objects.filter(run=run).order_by("id").values_list("pk", "payload"))
        if not landed:
            return []
        rows = landing_rows(payload for _, payload in landed)
        chunks = _chunks(run, by_series(rows), at)
        made = MetricChunk.objects.bulk_create(chunks, batch_size=200)
        MetricLanding.objects.filter(run=run, pk__lte=landed[-1][0]).delete()
        TrackedRun.objects.filter(run=run).update(landed=0)
        counts = {
            "batches": len(landed),
            "points": len(rows),
            "kept": sum(item.points for item in made),
            "chunks": len(made),
        }
        body = {**counts, "all_chunks_sha256": chunks_sha256(run)}
        append_receipt(f"study:{head.study.uid}", SEALED, run.uid, body, actor=service_actor("metric store"), at=at)
    return made


def chunks_sha256(run: Run) -> str:
    """Digest of [series uid, ordinal, sha256] of every chunk of a run."""
    rows = MetricChunk.objects.filter(series__run=run).values_list("series__uid", "ordinal", "sha256")
    return digest(sorted([str(uid), ordinal, sha256] for uid, ordinal, sha256 in rows))


def _chunks(run: Run, groups: dict[int, NDArray[Any]], at: datetime) -> list[MetricChunk]:
    """Unsaved chunks of landing rows by series."""
    uids = dict(MetricSeries.objects.filter(run=run, definition=LOGGED).values_list("pk", "uid"))
    taken: dict[int, int] = {}
    for series, ordinal in MetricChunk.objects.filter(series__run=run).values_list("series_id", "ordinal"):
        taken[series] = max(taken.get(series, 0), ordinal + 1)
    chunks = []
    for series, rows in groups.items():
        points = codec.merge([codec.points_of(rows)])
        count = -(-len(points) // CHUNK_POINTS)
        for number in range(count):
            first, after = -(-number * len(points) // count), -(-(number + 1) * len(points) // count)
            piece = codec.part(points, first, after)
            payload, sha256 = codec.write_chunk(str(uids[series]), piece)
            chunks.append(
                MetricChunk(
                    series_id=series, ordinal=taken.get(series, 0) + number, points=len(piece),
                    first_step=int(piece.step[0]), last_step=int(piece.step[-1]), sha256=sha256,
                    payload=payload, sealed_at=at,
                )
            )  # fmt: skip
    return chunks
