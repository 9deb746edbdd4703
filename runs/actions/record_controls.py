"""Environment controls: ask for them as a job, and record what came of them. One function records, whoever ran them."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction

from runs import projection_controls as projection
from runs.actions.documents import store_document
from runs.actions.jobs import ensure_job, finish
from runs.actions.receipts import append_receipt
from runs.actions.tasks import store_task_set
from runs.errors import DomainError
from runs.models import Actor, ControlSet, ControlSlot, Job, Study, TaskSet
from runs.storage import blob_store
from workbench.blobs import BlobStore
from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.contracts.controls import (
    CONTROLS,
    ControlsRecord,
    ControlsResult,
    ControlsSpec,
    controls_uid,
    counts,
    parse_controls,
)
from workbench.contracts.errors import RecordError
from workbench.contracts.wire import record_bytes, to_wire

CONTROLS_JOB, CONTROLS_QUEUE = "run_controls", "trial"
CONTROLS_RECORDED = "controls.recorded"  # kind of receipt
ATTEMPTS = 3
OPEN = ("queued", "leased")
STREAM = "controls"  # of no study


def stream_of(study: Study | None) -> str:
    """Stream of the receipts: the study's, or one of no study."""
    return STREAM if study is None else f"study:{study.uid}"


def _key(study: Study, spec: ControlsSpec) -> str:
    return f"controls:{study.uid}:{sha256_hex(canonical_bytes(to_wire(spec)))[:16]}:"


def request_controls(study: Study, spec: ControlsSpec, *, by: Actor, at: datetime) -> Job:
    """Ask a worker for the controls of an environment; one under way for the same question is returned as it is.

    What cannot be loaded or has no controls ends the job as failed, with its reason.
    """
    if not spec.environment:
        raise DomainError("environment: got nothing, expected an id, a registered name or package.module:Class")
    key = _key(study, spec)
    with transaction.atomic():
        Study.objects.select_for_update().get(pk=study.pk)
        known = Job.objects.filter(kind=CONTROLS_JOB, study=study, key__startswith=key).order_by("-pk")
        newest = known.first()
        if newest is not None and newest.state in OPEN:
            return newest
        return ensure_job(
            key=f"{key}{known.count() + 1}",
            kind=CONTROLS_JOB,
            queue=CONTROLS_QUEUE,
            execution=None,
            run=None,
            study=study,
            spec={"controls": to_wire(spec), "requested_by": str(by.uid)},
            max_attempts=ATTEMPTS,
            at=at,
        )


def record_controls(
    result: ControlsResult, *, study: Study | None, by: Actor, at: datetime, store: BlobStore | None = None
) -> ControlSet:
    """Insert document, rows and receipt. Call inside ``transaction.atomic()``.

    An earlier record of the same task set stands; this one is the next. Raises ``RecordError`` for a slot that
    contradicts itself, or of a task that is not of the set.
    """
    store = store or blob_store()
    if len(result.timings) != len(result.slots):
        raise RecordError(f"timings: got {len(result.timings)}, expected one for each of {len(result.slots)} slots")
    tasks = store_task_set(
        store.get(result.task_set_sha256),
        environment=result.environment,
        version=result.environment_version,
        store=store,
    )
    record = _record(result, tasks)
    data = record_bytes(record)
    rows = dict(tasks.all_tasks().values_list("uid", "pk"))
    missing = [slot for slot in record.slots if uuid.UUID(slot.task_uid) not in rows]
    if missing:
        raise RecordError(f"slots: got task {missing[0].task_uid}, expected one of the set {tasks.sha256}")
    store_document(CONTROLS, record.uid, data)
    made = ControlSet.objects.create(
        **projection.control_set_columns(record), task_set=tasks, study=study, record_sha256=sha256_hex(data),
        created_at=at,
    )  # fmt: skip
    ControlSlot.objects.bulk_create(
        (
            ControlSlot(
                control_set=made, task_id=rows[uuid.UUID(slot.task_uid)], position=position,
                **projection.control_slot_columns(slot), **projection.timing_columns(timing),
            )
            for position, (slot, timing) in enumerate(zip(record.slots, result.timings, strict=True))
        ),
        batch_size=200,
    )  # fmt: skip
    append_receipt(stream_of(study), CONTROLS_RECORDED, record.uid, receipt_of(record, made, result), actor=by, at=at)
    return made


def _record(result: ControlsResult, tasks: TaskSet) -> ControlsRecord:
    ordinal = ControlSet.objects.filter(task_set=tasks).count() + 1
    record = ControlsRecord(
        uid=controls_uid(str(tasks.uid), ordinal),
        environment=result.environment,
        environment_version=result.environment_version,
        code_sha256=result.code_sha256,
        task_set_sha256=tasks.sha256,
        verifier=result.verifier,
        ordinal=ordinal,
        splits=result.splits,
        slots=result.slots,
    )
    return parse_controls(record_bytes(record))


def receipt_of(record: ControlsRecord, made: ControlSet, result: ControlsResult) -> dict[str, Any]:
    """What the receipt says: hashes, counts with denominators, levels of isolation, seconds of each slot."""
    levels: list[dict[str, Any]] = []
    for slot in record.slots:
        if slot.level and slot.level not in levels:
            levels.append(slot.level)
    return {
        "controls": record.uid,
        "record_sha256": made.record_sha256,
        "task_set": record.task_set_sha256,
        "environment": record.environment,
        "environment_version": record.environment_version,
        "verifier": record.verifier,
        "ordinal": record.ordinal,
        "slots": len(record.slots),
        "counts": {item.category: [item.count, item.of] for item in counts(record.slots) if item.kind is None},
        "levels": levels,
        "timings": [list(asdict(item).values()) for item in result.timings],
    }


def commit_controls(job: Job, result: ControlsResult, *, by: Actor, at: datetime) -> ControlSet:
    """End the job with its record; nothing of a lost lease is kept. Raises ``StaleLease`` then."""
    with transaction.atomic():
        finish(job, "succeeded", at=at)
        made = record_controls(result, study=job.study, by=by, at=at)
        Job.objects.filter(pk=job.pk).update(result={"controls": str(made.uid)})
    return made
