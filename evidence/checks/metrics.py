"""Step 8: every metric point equals the stored record that it is projected from."""

from __future__ import annotations

from django.db.models import Count

from evidence.checks.rows import match
from evidence.report import StepLog
from runs import projection
from runs.actions.record_metrics import METRICS, metrics_uid, parse_metrics
from runs.models import Document, MetricPoint, MetricSeries
from workbench.contracts.canonical import parse_canonical

CHUNK = 50


def check_metrics(log: StepLog) -> None:
    """Points by document and position; series by the identity that their points give them."""
    for document in Document.objects.filter(kind=METRICS).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_metricpoint", document.subject_uid):
            _document(log, document)
    strangers = MetricPoint.objects.exclude(document__kind=METRICS).values("document").annotate(n=Count("pk"))
    for found in strangers:
        log.problem("runs_metricpoint", found["document"], "document", expected="a metrics document", got=found["n"])


def _document(log: StepLog, document: Document) -> None:
    body = parse_canonical(bytes(document.bytes))
    if metrics_uid(body) != document.subject_uid:
        log.problem(
            "runs_document", document.subject_uid, "subject_uid", expected=metrics_uid(body), got=document.subject_uid
        )
    run_uid, segment, records = parse_metrics(body)
    expected, series = {}, {}
    for position, item in enumerate(records):
        uid = projection.series_uid(run_uid, item, segment)
        expected[position] = {**projection.point_columns(item), "series__uid": uid}
        series[uid] = {
            "definition": item.definition, "phase": item.phase, "split": item.split, "labels": item.labels,
            "labels_key": projection.labels_key(item.labels), "segment": segment,
        }  # fmt: skip
    points = MetricPoint.objects.filter(document=document).select_related("series")
    match(log, "runs_metricpoint", document.subject_uid, expected, ((point.position, point) for point in points))
    for row in MetricSeries.objects.filter(uid__in=series).select_related("run"):
        log.compare("runs_metricseries", row.uid, series[row.uid], row)
        got = None if row.run is None else str(row.run.uid)
        if got != run_uid:
            log.problem("runs_metricseries", row.uid, "run", expected=run_uid, got=got)
