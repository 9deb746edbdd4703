"""Record a collected group: its document and every row that pages read."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import datetime

from django.utils import timezone

from runs import projection
from runs.actions.documents import AlreadyRecorded, store_document
from runs.models import (
    Checkpoint,
    EvaluationItem,
    Group,
    Observation,
    PlanVersion,
    RewardComponent,
    Run,
    Task,
    ToolCall,
    Trajectory,
    Turn,
)
from runs.storage import blob_store, reference_blobs
from workbench.blobs import BlobStore
from workbench.contracts.canonical import derive_uid, sha256_hex
from workbench.contracts.errors import RecordError
from workbench.contracts.jobs import CollectedGroup
from workbench.contracts.records import EVALUATE, PREFLIGHT, TRAIN, CaptureRef, GroupRecord, TrajectoryRecord
from workbench.contracts.wire import parse_record

GROUP = "group"  # kind of the document


def parse_group(data: bytes) -> GroupRecord:
    """The record of canonical bytes, with its inner relations checked. Raises ``RecordError``."""
    record = parse_record(GroupRecord, data)
    if record.purpose not in (PREFLIGHT, TRAIN, EVALUATE):
        raise RecordError(f"purpose: got {record.purpose!r}, expected preflight, train or evaluate")
    slots = [item.slot for item in record.trajectories]
    if not slots or slots != list(range(len(slots))):
        raise RecordError(f"trajectories: got slots {slots}, expected 0 to G - 1 in order")
    projection.advantages(record)
    for item in record.trajectories:
        for name in ("task_uid", "failure_profile"):
            if getattr(item, name) != getattr(record, name):
                raise RecordError(
                    f"trajectories[{item.slot}].{name}: got {getattr(item, name)}, expected {getattr(record, name)}"
                )
        expected = str(derive_uid(record.uid, f"slot:{item.slot}"))
        if item.uid != expected:
            raise RecordError(f"trajectories[{item.slot}].uid: got {item.uid}, expected {expected}")
        _check_trajectory(item)
    return record


def _check_trajectory(item: TrajectoryRecord) -> None:
    where = f"trajectories[{item.slot}]"
    if item.status == "valid":
        if item.facts is None or item.terminal is None or item.reward is None:
            raise RecordError(f"{where}: got a valid slot without facts, terminal or reward, expected all three")
    elif item.reward is not None or item.facts is not None or item.terminal is not None or not item.invalid_reason:
        raise RecordError(f"{where}: got an invalid slot with an outcome or without a reason, expected only a reason")
    for turn in item.turns:
        if turn.observation is not None and turn.tool_call is None:
            raise RecordError(f"{where}.turns[{turn.decision}]: got an Observation without a call, expected both")


def group_parent(record: GroupRecord, plan_version: PlanVersion, checkpoint: Checkpoint) -> tuple[str, str]:
    """Uid and natural key that the group's own uid derives from."""
    if record.purpose == PREFLIGHT:
        return str(derive_uid(plan_version.uid, "execution")), f"group:{record.purpose}:{record.ordinal}"
    if record.purpose == TRAIN:
        return record.run_uid, f"group:{record.purpose}:{record.ordinal}"
    return str(checkpoint.uid), f"group:{record.purpose}:{record.condition}:{record.split}:{record.ordinal}"


def _check_context(record: GroupRecord, plan_version: PlanVersion, run: Run | None, checkpoint: Checkpoint) -> Task:
    task = Task.objects.filter(uid=record.task_uid).first()
    if task is None:
        raise RecordError(f"task_uid: got {record.task_uid}, expected a stored task")
    parent, key = group_parent(record, plan_version, checkpoint)
    pairs = [
        ("uid", record.uid, str(derive_uid(parent, key))),
        ("plan_sha256", record.plan_sha256, plan_version.sha256),
        ("task_sha256", record.task_sha256, task.task_sha256),
        ("family", record.family, task.family),
        ("identities.adapter", record.identities.adapter, checkpoint.sha256),
        ("identities.policy_version", record.identities.policy_version, checkpoint.policy_version),
        ("identities.base_model", record.identities.base_model, checkpoint.base_model_sha256),
        ("identities.tokenizer", record.identities.tokenizer, checkpoint.tokenizer_sha256),
    ]
    if run is not None:
        pairs.append(("run_uid", record.run_uid, str(run.uid)))
    elif record.purpose == TRAIN:
        raise RecordError("run: got none, expected the run that a training group belongs to")
    for field, got, expected in pairs:
        if got != expected:
            raise RecordError(f"{field}: got {got}, expected {expected}")
    return task


def match_captures(record: GroupRecord, captures: tuple[CaptureRef, ...]) -> dict[str, CaptureRef]:
    """Place of every turn's capture by hash. Raises ``RecordError`` where turns and places disagree."""
    turns = [(turn.capture_sha256, item.uid, turn.decision) for item in record.trajectories for turn in item.turns]
    places = [(ref.capture_sha256, ref.trajectory_uid, ref.decision) for ref in captures]
    if Counter(turns) != Counter(places):
        missing, extra = Counter(turns) - Counter(places), Counter(places) - Counter(turns)
        raise RecordError(
            f"captures: got {sum(extra.values())} that no turn names and {sum(missing.values())} turns without one,"
            " expected one a turn"
        )
    return {ref.capture_sha256: ref for ref in captures}


def record_group(
    *,
    plan_version: PlanVersion,
    run: Run | None,
    checkpoint: Checkpoint,
    collected: CollectedGroup,
    at: datetime | None = None,
    store: BlobStore | None = None,
) -> Group:
    """Insert document and rows of one group. Call inside ``transaction.atomic()``.

    ``run`` None: preflight, or the parent's evaluation. ``at`` is stored, never hashed. Raises
    ``RecordError`` where record, hashes and context disagree, ``BlobMissing`` without the capture
    file, ``AlreadyRecorded`` for a group that is stored.
    """
    data = collected.record_json.encode()
    if sha256_hex(data) != collected.record_sha256:
        raise RecordError(f"record_sha256: got {collected.record_sha256}, expected {sha256_hex(data)}")
    record = parse_group(data)
    task = _check_context(record, plan_version, run, checkpoint)
    places = match_captures(record, collected.captures)
    store = store or blob_store()
    size = store.size(collected.capture_blob_sha256)
    if size != collected.capture_blob_bytes:
        raise RecordError(f"capture_blob_bytes: got {collected.capture_blob_bytes}, expected {size}")
    if Group.objects.filter(uid=record.uid).exists():
        raise AlreadyRecorded(f"group {record.uid}: got it a second time, expected it once")
    reference_blobs({collected.capture_blob_sha256: "captures"}, store=store)
    store_document(GROUP, record.uid, data)
    group = Group.objects.create(
        **projection.group_columns(record),
        plan_version=plan_version,
        run=run,
        checkpoint=checkpoint,
        task=task,
        record_sha256=collected.record_sha256,
        capture_blob_sha256=collected.capture_blob_sha256,
        capture_blob_bytes=collected.capture_blob_bytes,
        created_at=at or timezone.now(),
    )
    trajectories = _insert_trajectories(group, record, places)
    if record.purpose == EVALUATE:
        EvaluationItem.objects.bulk_create(
            EvaluationItem(
                uid=projection.item_uid(str(row.uid)), plan_version=plan_version, checkpoint=checkpoint, run=run,
                condition=record.condition, split=record.split, task=task, repeat=row.slot, trajectory=row,
            )
            for row in trajectories
        )  # fmt: skip
    return group


def _insert_trajectories(group: Group, record: GroupRecord, places: dict[str, CaptureRef]) -> list[Trajectory]:
    given = zip(record.trajectories, projection.advantages(record), strict=True)
    trajectories = Trajectory.objects.bulk_create(
        Trajectory(group=group, **projection.trajectory_columns(item, advantage)) for item, advantage in given
    )
    of_uid = {row.uid: row for row in trajectories}
    records = [(of_uid[uuid.UUID(item.uid)], turn) for item in record.trajectories for turn in item.turns]
    turns = Turn.objects.bulk_create(
        Turn(
            trajectory=row,
            **projection.turn_columns(turn),
            **projection.place_columns(places[turn.capture_sha256]),
        )
        for row, turn in records
    )
    called = [(row, turn) for row, (_, turn) in zip(turns, records, strict=True) if turn.tool_call is not None]
    calls = ToolCall.objects.bulk_create(
        ToolCall(turn=row, **projection.call_columns(turn.tool_call)) for row, turn in called if turn.tool_call
    )
    Observation.objects.bulk_create(
        Observation(call=row, **projection.observation_columns(turn.observation))
        for row, (_, turn) in zip(calls, called, strict=True)
        if turn.observation is not None
    )
    RewardComponent.objects.bulk_create(
        RewardComponent(trajectory=of_uid[uuid.UUID(item.uid)], **projection.component_columns(part))
        for item in record.trajectories
        if item.reward is not None
        for part in item.reward.components
    )
    return trajectories
