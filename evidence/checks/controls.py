"""Step 4, environment controls: rows against documents and receipts, categories computed again."""

from __future__ import annotations

from typing import Any

from evidence.report import StepLog
from runs import projection_controls as projection
from runs.actions.record_controls import CONTROLS_RECORDED, stream_of
from runs.models import ControlSet, ControlSlot, Document, Receipt
from workbench.contracts.canonical import parse_canonical
from workbench.contracts.controls import CATEGORIES, CONTROLS, ControlsRecord, controls_uid, parse_controls

CHUNK = 50


def check_control_rows(log: StepLog) -> None:
    """Every document has its rows and its receipt, every row its document; ordinals of a task set have no gap."""
    told = _told()
    for document in Document.objects.filter(kind=CONTROLS).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_controlset", document.subject_uid):
            _set(log, document, told.get(str(document.subject_uid)))
    known = Document.objects.filter(kind=CONTROLS).values("subject_uid")
    for row in ControlSet.objects.exclude(uid__in=known).only("uid").iterator(chunk_size=CHUNK):
        log.problem("runs_controlset", row.uid, "uid", expected=f"a document of kind {CONTROLS}", got=None)


def _told() -> dict[str, dict[str, Any]]:
    """Bodies of the receipts by record uid, each with its ``stream``."""
    rows = Receipt.objects.filter(kind=CONTROLS_RECORDED).values_list("stream", "bytes")
    found = ((stream, parse_canonical(bytes(data))["body"]) for stream, data in rows.iterator(chunk_size=CHUNK))
    return {body["controls"]: {**body, "stream": stream} for stream, body in found}


def _set(log: StepLog, document: Document, told: dict[str, Any] | None) -> None:
    from evidence.checks.rows import match

    record = parse_controls(bytes(document.bytes))
    row = ControlSet.objects.select_related("task_set", "study").filter(uid=document.subject_uid).first()
    log.count()
    if row is None:
        log.problem("runs_controlset", document.subject_uid, "uid", expected="one row", got=None)
        return
    expected = {**projection.control_set_columns(record), "record_sha256": document.sha256}
    log.compare("runs_controlset", row.uid, expected, row)
    for name, got, wanted in (
        ("task_set", row.task_set.sha256, record.task_set_sha256),
        ("uid", record.uid, controls_uid(str(row.task_set.uid), record.ordinal)),
        ("ordinal", ControlSet.objects.filter(task_set=row.task_set, ordinal__lte=row.ordinal).count(), record.ordinal),
    ):
        if got != wanted:
            log.problem("runs_controlset", row.uid, name, expected=wanted, got=got)
    if told is None:
        log.problem("runs_receipt", row.uid, "kind", expected=f"a receipt of kind {CONTROLS_RECORDED}", got=None)
    timings = [] if told is None else told["timings"]
    columns = [
        {
            **projection.control_slot_columns(slot),
            "position": position,
            **(dict(zip(projection.TIMES, timings[position], strict=True)) if position < len(timings) else {}),
        }
        for position, slot in enumerate(record.slots)
    ]
    keys = [(slot.task_uid, slot.kind) for slot in record.slots]
    rows = ControlSlot.objects.filter(control_set=row).select_related("task").order_by("position")
    found = (((str(item.task.uid), item.kind), item) for item in rows.iterator(chunk_size=CHUNK))
    match(log, "runs_controlslot", row.uid, dict(zip(keys, columns, strict=True)), found)
    if told is not None:
        if told["stream"] != stream_of(row.study):
            log.problem("runs_controlset", row.uid, "study", expected=told["stream"], got=stream_of(row.study))
        _counts(log, record, told)


def _counts(log: StepLog, record: ControlsRecord, told: dict[str, Any]) -> None:
    """What the receipt counts, counted again from the observations."""
    slots = len(record.slots)
    expected = {name: [sum(name in slot.categories for slot in record.slots), slots] for name in CATEGORIES}
    if told["counts"] != expected or told["slots"] != slots:
        log.problem("runs_receipt", record.uid, "counts", expected=expected, got=told["counts"])
