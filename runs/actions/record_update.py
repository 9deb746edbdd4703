"""Record an optimizer batch: its document, steps, credits, the consumed groups and the new checkpoint."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.utils import timezone

from runs import projection
from runs.actions.documents import AlreadyRecorded, store_document
from runs.models import (
    Checkpoint,
    ConsumedGroup,
    Group,
    Run,
    TraceFrame,
    Trajectory,
    TrajectoryCredit,
    UpdateBatch,
    UpdateStep,
)
from runs.storage import blob_store, reference_blobs
from workbench.blobs import BlobStore
from workbench.contracts import layout
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import RecordError
from workbench.contracts.jobs import UpdateResult
from workbench.contracts.records import UpdateRecord
from workbench.contracts.wire import parse_record

UPDATE = "update"  # kind of the document


def parse_update(data: bytes) -> UpdateRecord:
    """The record of canonical bytes, with its inner relations checked. Raises ``RecordError``."""
    record = parse_record(UpdateRecord, data)
    if not set(record.trained_group_uids) <= set(record.group_uids):
        raise RecordError("trained_group_uids: got a group that is not among group_uids, expected a subset")
    if not set(record.edit_only_group_uids) <= set(record.trained_group_uids):
        raise RecordError("edit_only_group_uids: got a group that is not among trained_group_uids, expected a subset")
    if not set(record.trials) <= set(record.group_uids):
        raise RecordError("trials: got a group that is not among group_uids, expected groups of the batch")
    if len(set(record.group_uids)) != len(record.group_uids):
        raise RecordError("group_uids: got a group twice, expected each once")
    if record.skipped is not None:
        if record.steps or record.adapter_after != record.adapter_before:
            raise RecordError("skipped: got steps or a new adapter, expected the parent's adapter and no step")
    elif not record.steps:
        raise RecordError("steps: got none, expected at least one or a reason in skipped")
    return record


def checkpoint_at(run: Run, policy_version: int) -> Checkpoint:
    """The run's checkpoint of a policy version; its parent's for the version that it started from."""
    found = Checkpoint.objects.filter(run=run, policy_version=policy_version).first()
    parent = run.parent_checkpoint
    if found is None and parent is not None and parent.policy_version == policy_version:
        found = parent
    if found is None:
        raise RecordError(f"policy_version: got {policy_version}, expected a version that run {run.uid} has")
    return found


def _groups(run: Run, record: UpdateRecord, before: Checkpoint) -> list[Group]:
    found = {str(group.uid): group for group in Group.objects.filter(run=run, uid__in=record.group_uids)}
    for uid in record.group_uids:
        group = found.get(uid)
        if group is None or group.purpose != "train" or group.checkpoint_id != before.pk:
            raise RecordError(
                f"group_uids: got {uid}, expected a training group of this run under policy {before.policy_version}"
            )
    ineligible = [uid for uid in record.trained_group_uids if not found[uid].eligible]
    if ineligible:
        raise RecordError(f"trained_group_uids: got {ineligible[0]}, expected eligible groups only")
    return [found[uid] for uid in record.group_uids]


def _check_context(run: Run, record: UpdateRecord, before: Checkpoint) -> None:
    pairs = [
        ("uid", record.uid, layout.update_uid(str(run.uid), record.batch)),
        ("run_uid", record.run_uid, str(run.uid)),
        ("plan_sha256", record.plan_sha256, run.plan_version.sha256 if run.plan_version else None),
        ("adapter_before", record.adapter_before, before.sha256),
    ]
    for field, got, expected in pairs:
        if got != expected:
            raise RecordError(f"{field}: got {got}, expected {expected}")


def _checkpoint_after(
    run: Run, record: UpdateRecord, before: Checkpoint, adapter_bytes: int, at: datetime
) -> Checkpoint:
    if record.skipped is not None:
        return before
    version = record.policy_version + 1
    return Checkpoint.objects.create(
        uid=layout.checkpoint_uid(str(run.uid), version), run=run, parent=before, sha256=record.adapter_after,
        policy_version=version, kind=Checkpoint.UPDATE, base_model_sha256=before.base_model_sha256,
        tokenizer_sha256=before.tokenizer_sha256, adaptation=before.adaptation, blob_bytes=adapter_bytes, created_at=at,
    )  # fmt: skip


def update_blobs(record: UpdateRecord) -> dict[str, str]:
    """Blobs that an update brings: sha256 -> kind."""
    found = {} if record.skipped is not None else {record.adapter_after: "adapter"}
    for sha256, kind in (
        (record.optimizer_after, "optimizer"),
        (record.old_logprobs_sha256, "old_logprobs"),
        (record.trace_blob_sha256, "trace"),
    ):
        if sha256 is not None and not (record.skipped is not None and sha256 == record.optimizer_before):
            found[sha256] = kind
    return found


def record_update(
    *, run: Run, result: UpdateResult, at: datetime | None = None, store: BlobStore | None = None
) -> UpdateBatch:
    """Insert document and rows of one optimizer batch. Call inside ``transaction.atomic()``.

    The ledger takes every group of the batch, trained or not: a group is offered once. A skipped
    batch makes no checkpoint. Raises ``RecordError`` where record and context disagree,
    ``BlobMissing`` for an absent blob, ``AlreadyRecorded`` for a batch or group that is taken.
    """
    data = result.record_json.encode()
    if sha256_hex(data) != result.record_sha256:
        raise RecordError(f"record_sha256: got {result.record_sha256}, expected {sha256_hex(data)}")
    record, at, store = parse_update(data), at or timezone.now(), store or blob_store()
    if UpdateBatch.objects.filter(run=run, batch=record.batch).exists():
        raise AlreadyRecorded(f"update {record.uid}: got it a second time, expected it once")
    before = checkpoint_at(run, record.policy_version)
    _check_context(run, record, before)
    groups = _groups(run, record, before)
    taken = ConsumedGroup.objects.filter(group__in=groups).select_related("group").first()
    if taken is not None:
        raise AlreadyRecorded(f"group {taken.group.uid}: got it in a second update, expected it in one")
    reference_blobs(update_blobs(record), store=store)
    store_document(UPDATE, record.uid, data)
    update = UpdateBatch.objects.create(
        **projection.update_columns(record), run=run, checkpoint_before=before, record_sha256=result.record_sha256,
        checkpoint_after=_checkpoint_after(run, record, before, result.adapter_blob_bytes, at),
    )  # fmt: skip
    ConsumedGroup.objects.bulk_create(ConsumedGroup(group=group, update=update) for group in groups)
    _insert_parts(update, record, groups)
    return update


def _insert_parts(update: UpdateBatch, record: UpdateRecord, groups: list[Group]) -> None:
    UpdateStep.objects.bulk_create(UpdateStep(update=update, **projection.step_columns(item)) for item in record.steps)
    rows = {row.uid: row for row in Trajectory.objects.filter(group__in=groups).select_related("group")}
    for credit in record.credits:
        row = rows.get(uuid.UUID(credit.trajectory_uid))
        if row is None or str(row.group.uid) != credit.group_uid:
            raise RecordError(
                f"credits: got trajectory {credit.trajectory_uid}, expected one of group {credit.group_uid}"
            )
    TrajectoryCredit.objects.bulk_create(
        TrajectoryCredit(
            update=update, trajectory=rows[uuid.UUID(item.trajectory_uid)], **projection.credit_columns(item)
        )
        for item in record.credits
    )
    unknown = [item.trajectory_uid for item in record.traces if uuid.UUID(item.trajectory_uid) not in rows]
    if unknown:
        raise RecordError(f"traces: got trajectory {unknown[0]}, expected one of the batch")
    TraceFrame.objects.bulk_create(
        TraceFrame(update=update, trajectory=rows[uuid.UUID(item.trajectory_uid)], **projection.trace_columns(item))
        for item in record.traces
    )
