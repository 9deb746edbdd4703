"""The one write function and the one read function of metric points."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from runs import projection
from runs.actions.documents import store_document
from runs.models import MetricPoint, MetricSeries, Run
from workbench.contracts.canonical import canonical_bytes, derive_uid, digest
from workbench.contracts.records import MetricRecord
from workbench.contracts.wire import from_wire, to_wire

METRICS = "metrics"  # kind of the document
SCHEMA = "workbench.metrics/1"


def metrics_body(
    run_uid: str | None, segment: str, metrics: Sequence[MetricRecord], source: str = ""
) -> dict[str, Any]:
    """What the stored document of one write says. ``source``: the job whose result it is."""
    return {
        "schema": SCHEMA, "run_uid": run_uid, "segment": segment, "source": source,
        "metrics": [to_wire(item) for item in metrics],
    }  # fmt: skip


def parse_metrics(body: dict[str, Any]) -> tuple[str | None, str, list[MetricRecord]]:
    """Run uid, segment and records of a stored document."""
    return body["run_uid"], body["segment"], [from_wire(MetricRecord, item) for item in body["metrics"]]


def metrics_uid(body: dict[str, Any]) -> uuid.UUID:
    """Subject uid of the document: equal points written twice are refused."""
    return derive_uid(body["run_uid"], f"metrics:{digest(body)}")


def _series(run: Run | None, metrics: Sequence[MetricRecord], segment: str) -> dict[uuid.UUID, MetricSeries]:
    run_uid = None if run is None else str(run.uid)
    wanted: dict[uuid.UUID, MetricRecord] = {}
    for item in metrics:
        wanted.setdefault(projection.series_uid(run_uid, item, segment), item)
    known = set(MetricSeries.objects.filter(uid__in=wanted).values_list("uid", flat=True))
    for uid, item in wanted.items():
        if uid in known:
            continue
        MetricSeries.objects.get_or_create(  # another writer of a run-less series may be first
            uid=uid,
            defaults={
                "run": run, "definition": item.definition, "phase": item.phase, "split": item.split,
                "labels": item.labels, "labels_key": projection.labels_key(item.labels), "segment": segment,
            },
        )  # fmt: skip
    return {row.uid: row for row in MetricSeries.objects.filter(uid__in=wanted)}


def write_points(
    run: Run | None,
    metrics: Sequence[MetricRecord],
    *,
    segment: str,
    at: datetime,
    wall_seconds: float | None,
    source: str = "",
) -> int:
    """Append points and the document that proves them; returns how many. Call inside a transaction.

    ``run`` None: a plan-level series. ``segment``: part of the series identity (an attempt of an
    interrupted run, say). ``wall_seconds`` since the run's start, None where unknown. ``source``: key
    of the job, since two shards may measure the same values. Raises ``AlreadyRecorded`` for a second
    write of the same records from the same source.
    """
    if not metrics:
        return 0
    run_uid = None if run is None else str(run.uid)
    body = metrics_body(run_uid, segment, metrics, source)
    document = store_document(METRICS, metrics_uid(body), canonical_bytes(body))
    series = _series(run, metrics, segment)
    MetricPoint.objects.bulk_create(
        (
            MetricPoint(
                series=series[projection.series_uid(run_uid, item, segment)], document=document, position=position,
                wall_seconds=wall_seconds, at=at, **projection.point_columns(item),
            )
            for position, item in enumerate(metrics)
        ),
        batch_size=500,
    )  # fmt: skip
    return len(metrics)


def read_series(
    run: Run | None,
    definition: str,
    *,
    phase: str | None = None,
    split: str | None = None,
    labels: dict[str, str] | None = None,
    segment: str | None = None,
) -> list[tuple[MetricSeries, list[MetricPoint]]]:
    """Series of a definition with their points in natural order; None leaves an axis open.

    A point without ``value`` has its reason in ``nonfinite``, or does not exist ("").
    """
    chosen = MetricSeries.objects.filter(run=run, definition=definition)
    if phase is not None:
        chosen = chosen.filter(phase=phase)
    if split is not None:
        chosen = chosen.filter(split=split)
    if labels is not None:
        chosen = chosen.filter(labels_key=projection.labels_key(labels))
    if segment is not None:
        chosen = chosen.filter(segment=segment)
    found: dict[int, tuple[MetricSeries, list[MetricPoint]]] = {
        row.pk: (row, []) for row in chosen.order_by("phase", "split", "labels_key", "segment")
    }
    points = MetricPoint.objects.filter(series__in=found).order_by("series", "policy_version", "update", "id")
    for point in points.iterator(chunk_size=2000):
        found[point.series_id][1].append(point)
    return list(found.values())
