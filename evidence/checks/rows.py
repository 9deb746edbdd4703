"""Step 4: every projected row equals its document, and none is missing or extra."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from evidence.report import StepLog
from runs import projection
from runs.actions.plans import plan_body
from runs.actions.record_group import GROUP, group_parent, parse_group
from runs.actions.record_update import UPDATE, parse_update
from runs.models import (
    Checkpoint,
    ConsumedGroup,
    Document,
    EvaluationItem,
    Group,
    Observation,
    PlanVersion,
    RewardComponent,
    ToolCall,
    TraceFrame,
    Trajectory,
    TrajectoryCredit,
    Turn,
    UpdateBatch,
    UpdateStep,
)
from workbench.contracts import layout
from workbench.contracts.canonical import derive_uid
from workbench.contracts.records import EVALUATE, GroupRecord, UpdateRecord

CHUNK = 50


def match(
    log: StepLog, table: str, owner: Any, expected: Mapping[Any, dict[str, Any]], rows: Iterable[tuple[Any, Any]]
) -> None:
    """Compare rows by natural key: each expected one is there and equal, no other is there."""
    left = dict(expected)
    for key, row in rows:
        log.count()
        label = f"{owner} {key}"
        if key not in left:
            log.problem(table, label, "id", expected=None, got=f"row {row.pk}")
        else:
            log.compare(table, label, left.pop(key), row)
    for key in left:
        log.problem(table, f"{owner} {key}", "id", expected="one row", got=None)


def check_rows(log: StepLog) -> None:
    """Groups with all below them, updates with all below them, checkpoints; then relations and extras."""
    for document in Document.objects.filter(kind=GROUP).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_group", document.subject_uid):
            _group(log, document)
    for document in Document.objects.filter(kind=UPDATE).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_updatebatch", document.subject_uid):
            _update(log, document)
    _extras(log)
    try:
        connection.check_constraints()
    except IntegrityError as error:
        log.problem("database", "foreign keys", "id", expected="rows that are there", got=str(error))


def _without_document(rows: QuerySet[Any], kind: str) -> QuerySet[Any]:
    return rows.exclude(Exists(Document.objects.filter(kind=kind, subject_uid=OuterRef("uid"))))


def _extras(log: StepLog) -> None:
    for table, rows, kind in (
        ("runs_group", Group.objects.all(), GROUP),
        ("runs_updatebatch", UpdateBatch.objects.all(), UPDATE),
    ):
        for row in _without_document(rows, kind).only("uid").iterator(chunk_size=CHUNK):
            log.problem(table, row.uid, "uid", expected=f"a document of kind {kind}", got=None)
    made = UpdateBatch.objects.filter(checkpoint_after=OuterRef("pk"), skipped__isnull=True)
    for row in Checkpoint.objects.filter(kind="update").exclude(Exists(made)).iterator(chunk_size=CHUNK):
        log.problem("runs_checkpoint", row.uid, "uid", expected="an update that made it", got=None)
    for row in EvaluationItem.objects.filter(~Q(trajectory__group__purpose=EVALUATE)).iterator(chunk_size=CHUNK):
        log.problem("runs_evaluationitem", row.uid, "trajectory", expected="an evaluation group", got=row.trajectory_id)
    _parents(log)


def _parents(log: StepLog) -> None:
    """Parent checkpoints equal what their plan version binds."""
    known = set()
    for version in PlanVersion.objects.iterator(chunk_size=CHUNK):
        with log.reading("runs_planversion", version.uid):
            body, uid = plan_body(version), layout.parent_checkpoint_uid(str(version.uid))
            bound = body["bindings"]["policy"]
            row = Checkpoint.objects.filter(uid=uid).first()
            if row is None:
                continue  # not started yet
            known.add(row.pk)
            log.count()
            expected = {
                "sha256": bound["parent_adapter_sha256"], "policy_version": 0, "kind": "parent", "run": None,
                "parent": None,
                "base_model_sha256": bound["base_model_sha256"], "tokenizer_sha256": bound["tokenizer_sha256"],
                "adaptation": body["plan"]["policy"]["adaptation"], "blob_bytes": bound["parent_adapter_bytes"],
            }  # fmt: skip
            log.compare("runs_checkpoint", row.uid, expected, row)
    for row in Checkpoint.objects.filter(kind="parent").exclude(pk__in=known):
        log.problem("runs_checkpoint", row.uid, "uid", expected="a plan version that binds it", got=None)


# --- groups ---------------------------------------------------------------------------------------


def _group(log: StepLog, document: Document) -> None:
    record = parse_group(bytes(document.bytes))
    row = (
        Group.objects.select_related("plan_version", "run", "checkpoint", "task")
        .filter(uid=document.subject_uid)
        .first()
    )
    log.count()
    if row is None:
        log.problem("runs_group", document.subject_uid, "uid", expected="one row", got=None)
        return
    expected = {
        **projection.group_columns(record),
        "record_sha256": document.sha256,
        "plan_version__sha256": record.plan_sha256,
        "checkpoint__sha256": record.identities.adapter,
        "checkpoint__policy_version": record.identities.policy_version,
        "task__uid": uuid.UUID(record.task_uid),
        "task__task_sha256": record.task_sha256,
        "task__family": record.family,
    }
    if row.run is not None:
        expected["run__uid"] = uuid.UUID(record.run_uid)
    log.compare("runs_group", row.uid, expected, row)
    parent, key = group_parent(record, row.plan_version, row.checkpoint)
    if derive_uid(parent, key) != row.uid:
        log.problem("runs_group", row.uid, "uid", expected=derive_uid(parent, key), got=row.uid)
    _below_group(log, record, row)
    _items(log, record, row)


def _below_group(log: StepLog, record: GroupRecord, row: Group) -> None:
    pairs = zip(record.trajectories, projection.advantages(record), strict=True)
    rows = list(Trajectory.objects.filter(group=row).order_by("slot"))
    match(
        log, "runs_trajectory", row.uid,
        {item.slot: projection.trajectory_columns(item, advantage) for item, advantage in pairs},
        ((item.slot, item) for item in rows),
    )  # fmt: skip
    turns = {(item.uid, turn.branch, turn.decision): turn for item in record.trajectories for turn in item.turns}
    stored = Turn.objects.filter(trajectory__group=row).select_related("trajectory")
    match(
        log, "runs_turn", row.uid,
        {key: projection.turn_columns(turn) for key, turn in turns.items()},
        ((_turn_key(item), item) for item in stored),
    )  # fmt: skip
    calls = ToolCall.objects.filter(turn__trajectory__group=row).select_related("turn__trajectory")
    match(
        log, "runs_toolcall", row.uid,
        {key: projection.call_columns(turn.tool_call) for key, turn in turns.items() if turn.tool_call},
        ((_turn_key(item.turn), item) for item in calls),
    )  # fmt: skip
    seen = Observation.objects.filter(call__turn__trajectory__group=row).select_related("call__turn__trajectory")
    match(
        log, "runs_observation", row.uid,
        {key: projection.observation_columns(turn.observation) for key, turn in turns.items() if turn.observation},
        ((_turn_key(item.call.turn), item) for item in seen),
    )  # fmt: skip
    parts = RewardComponent.objects.filter(trajectory__group=row).select_related("trajectory")
    match(
        log, "runs_rewardcomponent", row.uid,
        {
            (item.uid, part.name): projection.component_columns(part)
            for item in record.trajectories if item.reward for part in item.reward.components
        },
        (((str(part.trajectory.uid), part.name), part) for part in parts),
    )  # fmt: skip


def _turn_key(turn: Turn) -> tuple[str, str, int]:
    return str(turn.trajectory.uid), turn.branch, turn.decision


def _items(log: StepLog, record: GroupRecord, row: Group) -> None:
    expected = {}
    if record.purpose == EVALUATE:
        for item in record.trajectories:
            expected[item.slot] = {
                "uid": projection.item_uid(item.uid), "plan_version_id": row.plan_version_id,
                "checkpoint_id": row.checkpoint_id, "run_id": row.run_id, "condition": record.condition,
                "split": record.split, "task_id": row.task_id, "trajectory__uid": uuid.UUID(item.uid),
            }  # fmt: skip
    stored = EvaluationItem.objects.filter(trajectory__group=row).select_related("trajectory")
    match(log, "runs_evaluationitem", row.uid, expected, ((item.repeat, item) for item in stored))


# --- updates --------------------------------------------------------------------------------------


def _update(log: StepLog, document: Document) -> None:
    record = parse_update(bytes(document.bytes))
    row = (
        UpdateBatch.objects.select_related("run__plan_version", "checkpoint_before", "checkpoint_after")
        .filter(uid=document.subject_uid)
        .first()
    )
    log.count()
    if row is None:
        log.problem("runs_updatebatch", document.subject_uid, "uid", expected="one row", got=None)
        return
    expected = {
        **projection.update_columns(record),
        "record_sha256": document.sha256,
        "run__uid": uuid.UUID(record.run_uid),
        "run__plan_version__sha256": record.plan_sha256,
        "checkpoint_before__sha256": record.adapter_before,
        "checkpoint_before__policy_version": record.policy_version,
        "checkpoint_after__sha256": record.adapter_after,
    }
    log.compare("runs_updatebatch", row.uid, expected, row)
    uid = layout.update_uid(record.run_uid, record.batch)
    if str(row.uid) != uid:
        log.problem("runs_updatebatch", row.uid, "uid", expected=uid, got=row.uid)
    _checkpoint(log, record, row)
    _below_update(log, record, row)


def _checkpoint(log: StepLog, record: UpdateRecord, row: UpdateBatch) -> None:
    before, after = row.checkpoint_before, row.checkpoint_after
    if record.skipped is not None:
        if before.pk != after.pk:
            log.problem("runs_updatebatch", row.uid, "checkpoint_after", expected=before.uid, got=after.uid)
        return
    expected = {
        "uid": uuid.UUID(layout.checkpoint_uid(record.run_uid, record.policy_version + 1)), "run_id": row.run_id,
        "parent_id": before.pk, "policy_version": record.policy_version + 1, "kind": "update",
        "sha256": record.adapter_after,
        "base_model_sha256": before.base_model_sha256, "tokenizer_sha256": before.tokenizer_sha256,
        "adaptation": before.adaptation,
    }  # fmt: skip
    log.compare("runs_checkpoint", after.uid, expected, after)


def _below_update(log: StepLog, record: UpdateRecord, row: UpdateBatch) -> None:
    match(
        log, "runs_updatestep", row.uid,
        {item.step: projection.step_columns(item) for item in record.steps},
        ((item.step, item) for item in UpdateStep.objects.filter(update=row)),
    )  # fmt: skip
    credits = TrajectoryCredit.objects.filter(update=row).select_related("trajectory__group")
    match(
        log, "runs_trajectorycredit", row.uid,
        {
            item.trajectory_uid: {
                **projection.credit_columns(item), "trajectory__group__uid": uuid.UUID(item.group_uid),
            }
            for item in record.credits
        },
        ((str(item.trajectory.uid), item) for item in credits),
    )  # fmt: skip
    frames = TraceFrame.objects.filter(update=row).select_related("trajectory")
    match(
        log, "runs_traceframe", row.uid,
        {(item.step, item.trajectory_uid): projection.trace_columns(item) for item in record.traces},
        (((item.step, str(item.trajectory.uid)), item) for item in frames),
    )  # fmt: skip
    consumed = ConsumedGroup.objects.filter(update=row).select_related("group")
    match(
        log, "runs_consumedgroup", row.uid,
        {uid: {} for uid in record.group_uids},
        ((str(item.group.uid), item) for item in consumed),
    )  # fmt: skip
