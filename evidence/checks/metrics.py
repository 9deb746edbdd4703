"""Step 8: every metric point equals its stored record, and its value what the record's subject gives."""

from __future__ import annotations

import math
from collections.abc import Callable

from django.db.models import Count

from evidence.checks import derived
from evidence.checks.derived import Derived
from evidence.checks.numbers import close
from evidence.checks.probes import key_of, probe_values
from evidence.checks.rebuilt import expected_values
from evidence.checks.rows import match
from evidence.report import StepLog
from runs import projection
from runs.actions.record_group import GROUP, parse_group
from runs.actions.record_metrics import METRICS, metrics_uid, parse_metrics
from runs.actions.record_probe import parse_probe
from runs.actions.record_update import UPDATE, parse_update
from runs.models import Document, MetricPoint, MetricSeries
from workbench.blobs import BlobStore
from workbench.contracts.canonical import parse_canonical
from workbench.contracts.probe import PROBE, ProbeRecord
from workbench.contracts.records import GroupRecord, MetricRecord, UpdateRecord

CHUNK = 50
Subject = GroupRecord | UpdateRecord | ProbeRecord


def check_metrics(log: StepLog, store: BlobStore) -> None:
    """Points by document and position; series by the identity that their points give them."""
    derived.reset()
    for document in Document.objects.filter(kind=METRICS).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_metricpoint", document.subject_uid):
            _document(log, document, store)
    strangers = MetricPoint.objects.exclude(document__kind=METRICS).values("document").annotate(n=Count("pk"))
    for found in strangers:
        log.problem("runs_metricpoint", found["document"], "document", expected="a metrics document", got=found["n"])


def _document(log: StepLog, document: Document, store: BlobStore) -> None:
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
    _values(log, document, run_uid, records, store)
    points = MetricPoint.objects.filter(document=document).select_related("series")
    match(log, "runs_metricpoint", document.subject_uid, expected, ((point.position, point) for point in points))
    for row in MetricSeries.objects.filter(uid__in=series).select_related("run"):
        log.compare("runs_metricseries", row.uid, series[row.uid], row)
        got = None if row.run is None else str(row.run.uid)
        if got != run_uid:
            log.problem("runs_metricseries", row.uid, "run", expected=run_uid, got=got)


def _subjects(records: list[MetricRecord]) -> dict[str, Subject]:
    """Parsed documents that the records speak of."""
    uids = {item.subject_uid for item in records if item.subject_uid is not None}
    parsers: dict[str, Callable[[bytes], Subject]] = {GROUP: parse_group, UPDATE: parse_update, PROBE: parse_probe}
    documents = Document.objects.filter(subject_uid__in=uids, kind__in=parsers)
    return {
        str(document.subject_uid): parsers[document.kind](bytes(document.bytes))
        for document in documents.iterator(chunk_size=CHUNK)
    }


def _equal(first: float | None, second: float | None) -> bool:
    if first is not None and second is not None and math.isnan(first) and math.isnan(second):
        return True
    return close(first, second)


def _values(
    log: StepLog, document: Document, run_uid: str | None, records: list[MetricRecord], store: BlobStore
) -> None:
    subjects = _subjects(records)
    probed = {uid: probe_values(item) for uid, item in subjects.items() if isinstance(item, ProbeRecord)}
    update = next((item for item in subjects.values() if isinstance(item, UpdateRecord)), None)
    rebuild = Derived(document, run_uid, update, store)
    for position, item in enumerate(records):
        subject = subjects.get(item.subject_uid or "")
        expected: list[tuple[float | None, int]] | None
        if isinstance(subject, ProbeRecord):
            known = probed[str(item.subject_uid)].get(key_of(item))
            expected = [] if known is None else [known]
        else:
            expected = None if subject is None else expected_values(item, subject)
            expected = rebuild.values(item) if expected is None else expected
        if expected is None:
            continue
        log.count()
        if not any(_equal(value, item.value) and count == item.count for value, count in expected):
            name = f"{document.subject_uid} {position} {item.definition}"
            log.problem("runs_metricpoint", name, "value", expected=expected, got=(item.value, item.count))
