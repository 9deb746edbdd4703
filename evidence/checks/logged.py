"""Step 8, logged runs: chunks hashed again, batches counted, newest points and heads built again, files known."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidence.report import StepLog
from runs.metrics import codec
from runs.metrics.latest import last_rows
from runs.metrics.names import LOGGED, logged_series_uid
from runs.metrics.sealing import SEALED, chunks_sha256, landing_rows
from runs.metrics.store import batch_digest
from runs.models import (
    BlobRef,
    MetricBatch,
    MetricChunk,
    MetricLanding,
    MetricLatest,
    MetricSeries,
    Receipt,
    RunArtifact,
    RunSegment,
    TrackedRun,
    TrackedTransition,
)

CHUNK = 50
CHUNKS, LANDING, SERIES, HEAD = "runs_metricchunk", "runs_metriclanding", "runs_metricseries", "runs_trackedrun"
LATEST, BATCH = "runs_metriclatest", "runs_metricbatch"


def check_logged(log: StepLog) -> None:
    """Every logged run, then chunks and files that belong to none."""
    for head in TrackedRun.objects.select_related("run").order_by("pk").iterator(chunk_size=CHUNK):
        with log.reading(HEAD, head.external_id):
            _run(log, head)
    strangers = MetricChunk.objects.filter(series__run__tracked__isnull=True)
    for chunk in strangers.values_list("pk", flat=True)[:CHUNK]:
        log.problem(CHUNKS, chunk, "series", expected="a series of a logged run", got=None)
    sizes = dict(BlobRef.objects.filter(kind="artifact").values_list("sha256", "bytes"))
    for row in RunArtifact.objects.order_by("pk").iterator(chunk_size=CHUNK):
        log.count()
        if row.sha256 not in sizes:  # the same bytes may stand there for another reason
            sizes.update(BlobRef.objects.filter(sha256=row.sha256).values_list("sha256", "bytes"))
        if sizes.get(row.sha256) != row.bytes:
            log.problem("runs_runartifact", row.pk, "bytes", expected=sizes.get(row.sha256), got=row.bytes)


def _run(log: StepLog, head: TrackedRun) -> None:
    series = list(MetricSeries.objects.filter(run=head.run, definition=LOGGED).order_by("pk"))
    for row in series:
        log.count()
        expected = logged_series_uid(str(head.run.uid), row.segment, row.name)
        if str(row.uid) != expected:
            log.problem(SERIES, row.pk, "uid", expected=expected, got=row.uid)
    known = {row.pk: row for row in series}
    newest: dict[int, NDArray[Any]] = {}
    sealed = _chunks(log, head, known, newest)
    landed = _landings(log, head, known, newest)
    _counts(log, head, sealed, landed)
    _latest(log, head, known, newest)
    _head(log, head)


def _newer(newest: dict[int, NDArray[Any]], rows: NDArray[Any]) -> None:
    """Keep the newest row of each series among those seen."""
    for row in last_rows(rows):
        key = int(row["series"])
        both = row.reshape(1) if key not in newest else np.concatenate((newest[key], row.reshape(1)))
        newest[key] = last_rows(both)


def _chunks(log: StepLog, head: TrackedRun, known: dict[int, MetricSeries], newest: dict[int, NDArray[Any]]) -> int:
    """Hash each chunk again; the number of points in them."""
    total = 0
    ordinals: dict[int, int] = defaultdict(int)
    rows = MetricChunk.objects.filter(series__run=head.run).order_by("series", "ordinal")
    for chunk in rows.iterator(chunk_size=CHUNK):
        log.count()
        total += chunk.points
        name = f"{chunk.pk} of run {head.external_id}"
        if chunk.ordinal != ordinals[chunk.series_id]:
            log.problem(CHUNKS, name, "ordinal", expected=ordinals[chunk.series_id], got=chunk.ordinal)
        ordinals[chunk.series_id] += 1
        with log.reading(CHUNKS, name, "payload"):
            uid, points = codec.read_chunk(chunk.payload)
            expected = {
                "sha256": codec.chunk_sha256(uid, points),
                "points": len(points),
                "first_step": int(points.step[0]),
                "last_step": int(points.step[-1]),
            }
            log.compare(CHUNKS, name, expected, chunk)
            owner = known.get(chunk.series_id)
            if owner is None or str(owner.uid) != uid:
                log.problem(CHUNKS, name, "series", expected=uid, got=None if owner is None else owner.uid)
            last = np.zeros(len(points), codec.LANDING)
            last["series"] = chunk.series_id
            for column, _ in codec.COLUMNS:
                last[column] = getattr(points, column)
            _newer(newest, last)
    return total


def _landings(log: StepLog, head: TrackedRun, known: dict[int, MetricSeries], newest: dict[int, NDArray[Any]]) -> int:
    """Landing rows against the digest of their batch; the number of points in them."""
    total = 0
    rows = MetricLanding.objects.filter(run=head.run).select_related("batch").order_by("pk")
    for landing in rows.iterator(chunk_size=CHUNK):
        log.count()
        total += landing.points
        with log.reading(LANDING, landing.pk, "payload"):
            found = landing_rows([landing.payload])
            expected = {"points": landing.batch.points, "run_id": landing.batch.run_id}
            log.compare(LANDING, landing.pk, expected, landing)
            if len(found) != landing.points:
                log.problem(LANDING, landing.pk, "payload", expected=f"{landing.points} points", got=len(found))
            digest = _digest(found, known)
            if digest != landing.batch.digest:
                log.problem(LANDING, landing.pk, "payload", expected=landing.batch.digest, got=digest)
            _newer(newest, found)
    return total


def _digest(rows: NDArray[Any], known: dict[int, MetricSeries]) -> str | None:
    """Digest of a batch out of its landing row; None where it names a series of another run."""
    keys, first, places = np.unique(rows["series"], return_index=True, return_inverse=True)
    if any(int(key) not in known for key in keys):
        return None
    order = np.argsort(first)
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys))
    plain = rows.copy()
    plain["series"] = rank[places]
    series = [known[int(key)] for key in keys[order]]
    return batch_digest(series[0].segment, [row.name for row in series], plain)


def _counts(log: StepLog, head: TrackedRun, sealed: int, landed: int) -> None:
    """Batches, receipts of sealing, chunks and landing rows tell one story."""
    if head.landed != landed:
        log.problem(HEAD, head.external_id, "landed", expected=landed, got=head.landed)
    receipts = Receipt.objects.filter(kind=SEALED, subject_uid=head.run.uid).order_by("stream", "seq")
    bodies = [json.loads(bytes(item))["body"] for item in receipts.values_list("bytes", flat=True)]
    log.count(len(bodies))
    gone = MetricBatch.objects.filter(run=head.run, landing__isnull=True).values_list("points", flat=True)
    told = {name: sum(body[name] for body in bodies) for name in ("batches", "points", "kept")}
    for name, got in (("batches", len(gone)), ("points", sum(gone))):
        if told[name] != got:
            log.problem(BATCH, f"run {head.external_id}", name, expected=told[name], got=got)
    if told["kept"] != sealed:
        log.problem(CHUNKS, f"run {head.external_id}", "points", expected=told["kept"], got=sealed)
    if bodies and (found := chunks_sha256(head.run)) != bodies[-1]["all_chunks_sha256"]:
        log.problem(CHUNKS, f"run {head.external_id}", "sha256", expected=bodies[-1]["all_chunks_sha256"], got=found)


def _latest(log: StepLog, head: TrackedRun, known: dict[int, MetricSeries], newest: dict[int, NDArray[Any]]) -> None:
    rows = {row.series_id: row for row in MetricLatest.objects.filter(run=head.run)}
    for key, found in newest.items():
        log.count()
        row = rows.pop(key, None)
        name = f"{known[key].name} of run {head.external_id}" if key in known else f"series {key}"
        if row is None:
            log.problem(LATEST, name, "series", expected="one row", got=None)
            continue
        _, step, time_ms, value, flag = found[0].tolist()
        expected = {
            "step": step,
            "time_ms": time_ms,
            "value": value if flag == codec.FINITE else None,
            "nonfinite": codec.NONFINITE.get(flag, ""),
            "name": known[key].name if key in known else None,
        }
        log.compare(LATEST, name, expected, row)
    for row in rows.values():
        log.problem(LATEST, row.pk, "series", expected="a series with points", got=row.series_id)


def _head(log: StepLog, head: TrackedRun) -> None:
    """Status, mark of deletion and number of attempts as the history of the run says."""
    log.count()
    status, deleted = "", False
    moves = TrackedTransition.objects.filter(run=head.run).order_by("pk").values_list("to_state", flat=True)
    for state in moves:
        if state in TrackedRun.STATES:
            status = state
        elif state in ("deleted", "active"):
            deleted = state == "deleted"
    log.compare(HEAD, head.external_id, {"status": status, "deleted": deleted}, head)
    ordinals = sorted(RunSegment.objects.filter(run=head.run).values_list("ordinal", flat=True))
    if ordinals != list(range(head.segment + 1)):
        log.problem(HEAD, head.external_id, "segment", expected=len(ordinals) - 1, got=head.segment)
