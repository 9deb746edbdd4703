"""Recording groups, updates, metrics and task sets: round trips on both databases, and refusals."""

from __future__ import annotations

import dataclasses
import json
import math
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from evidence.verify import verify
from runs.actions.documents import AlreadyRecorded, store_document
from runs.actions.record_group import record_group
from runs.actions.record_metrics import read_series, write_points
from runs.actions.record_update import record_update
from runs.actions.tasks import store_task_set
from runs.actions.tombstones import tombstone_blob
from runs.models import (
    BlobRef,
    Checkpoint,
    ConsumedGroup,
    Document,
    EvaluationItem,
    Group,
    MetricSeries,
    Observation,
    Task,
    TaskSet,
    ToolCall,
    Trajectory,
    Turn,
    UpdateStep,
)
from tests.runs.builders import (
    AT,
    World,
    add_group,
    add_update,
    build_world,
    collect,
    group_of,
    task_set_bytes,
    update_of,
    update_result,
)
from workbench.blobs import BlobMissing, BlobStore
from workbench.contracts.canonical import canonical_bytes, parse_json, sha256_hex
from workbench.contracts.errors import CanonicalError, RecordError
from workbench.contracts.jobs import CollectedGroup
from workbench.contracts.records import EditCreditRecord, GroupRecord, MetricRecord
from workbench.contracts.wire import parse_record, to_wire
from workbench.db import drop_triggers

TASKS = parse_json(task_set_bytes())


@pytest.fixture
def world(db: None, store: BlobStore) -> World:
    return build_world(store=store, groups=1, updates=0)


def test_world_round_trip(database: BaseDatabaseWrapper, store: BlobStore) -> None:
    """Written on SQLite and on PostgreSQL, every row reads back as the documents say.

    Among the values: text with NUL (PostgreSQL refuses it: the row shows U+2400, the document keeps
    it), JSON floats, an infinite norm (NULL, named in ``nonfinite``), None beside 0.
    """
    with transaction.atomic():
        world = build_world(store=store, groups=3, updates=1)
        add_update(world, world.groups[1:2], batch=1, skipped="no_signal")
        add_group(world, purpose="evaluate", condition="stress", split="test", ordinal=1)
    report = verify(store=store)
    assert report.problems == []
    assert min(report.checked.values()) >= 0 and report.checked[4] > 100
    assert Observation.objects.filter(text__contains="\u2400").exists()
    step = UpdateStep.objects.get()
    assert (step.relative_update_norm, step.nonfinite, step.clip_low_share) == (
        None,
        {"relative_update_norm": "inf"},
        0.0,
    )


def test_group_rows(world: World) -> None:
    """Rewards 0.9, 0.5, 0, 0.3: mean 0.425, variance (0.475^2 + 0.075^2 + 0.425^2 + 0.125^2)/4 = 0.106875.

    Turns 3 + 5 + 1 + 2 = 11; calls 2 + 4 + 0 + 2 = 8; Observations 7 (the last call was not executed).
    """
    group = world.group
    assert (group.mean, group.sigma) == (pytest.approx(0.425), pytest.approx(math.sqrt(0.106875)))
    assert (Turn.objects.count(), ToolCall.objects.count(), Observation.objects.count()) == (11, 8, 7)
    first, fatal, broken, budget = Trajectory.objects.order_by("slot")
    assert [row.terminal for row in (first, fatal, broken, budget)] == [
        "finish",
        "finish",
        "policy_error",
        "budget_exhausted",
    ]
    assert (fatal.fatal_start, fatal.fatal_confirmed, fatal.continued_after_fatal) == (1, 3, True)
    assert (first.recovered, first.fatal_start, first.generated_tokens) == (None, None, 9)
    assert (broken.gate, broken.reward_total, budget.unmatched_final_action) == (0.0, 0.0, True)
    assert ToolCall.objects.get(turn__trajectory=budget, ordinal=1).is_productive is None
    assert sum(row.advantage for row in Trajectory.objects.all()) == pytest.approx(0, abs=1e-9)
    assert parse_record(GroupRecord, bytes(Document.objects.get(kind="group").bytes)).uid == str(group.uid)
    assert set(BlobRef.objects.values_list("kind", flat=True)) == {"task_set", "adapter", "captures"}


def test_invalid_slot_has_no_reward(world: World) -> None:
    """One infrastructure-invalid slot: the group is ineligible, its statistics and that slot's outcome are None."""
    group = add_group(world, ordinal=1, broken=True)
    assert (group.eligible, group.mean, group.signal) == (False, None, None)
    row = group.trajectories.get(slot=3)
    assert (row.reward_total, row.advantage, row.finished, row.gate) == (None, None, None, None)
    assert row.invalid_reason == "EnvironmentFault: gone"
    assert list(group.trajectories.values_list("advantage", flat=True)) == [None] * 4


def test_evaluation_items(world: World) -> None:
    """One item a repeat; a training group has none."""
    assert EvaluationItem.objects.count() == 0
    group = add_group(world, purpose="evaluate", condition="stress", split="test", ordinal=1)
    items = EvaluationItem.objects.order_by("repeat")
    assert [(item.repeat, item.trajectory.slot, item.condition) for item in items] == [
        (0, 0, "stress"),
        (1, 1, "stress"),
    ]
    assert (group.mean, group.eligible) == (None, True)


def attempt(world: World, change: Callable[[GroupRecord], GroupRecord]) -> None:
    record, captures = group_of(world, checkpoint=world.parent, ordinal=1)
    record_group(
        plan_version=world.version, run=world.run, checkpoint=world.parent, store=world.store, at=AT,
        collected=collect(world, change(record), captures),
    )  # fmt: skip


def slot(record: GroupRecord, **changes: Any) -> GroupRecord:
    return replace(record, trajectories=(replace(record.trajectories[0], **changes), *record.trajectories[1:]))


BAD_GROUPS: list[tuple[Callable[[GroupRecord], GroupRecord], str]] = [
    (lambda g: replace(g, uid=str(uuid.UUID(int=1))), r"trajectories\[0\]\.uid"),
    (lambda g: replace(g, ordinal=2), r"^uid: got"),
    (lambda g: replace(g, plan_sha256="0" * 64), r"plan_sha256: got 0{64}"),
    (lambda g: replace(g, task_uid=str(uuid.UUID(int=2))), r"trajectories\[0\]\.task_uid"),
    (lambda g: replace(g, task_sha256="0" * 64), "task_sha256"),
    (lambda g: replace(g, run_uid=str(uuid.UUID(int=3))), "uid"),
    (lambda g: replace(g, purpose="other"), "purpose: got 'other'"),
    (lambda g: replace(g, identities=replace(g.identities, adapter="0" * 64)), r"identities\.adapter"),
    (lambda g: replace(g, identities=replace(g.identities, policy_version=3)), r"identities\.policy_version"),
    (lambda g: replace(g, identities=replace(g.identities, tokenizer="x")), r"identities\.tokenizer"),
    (lambda g: replace(g, trajectories=g.trajectories[1:]), "slots"),
    (lambda g: replace(g, advantages_G=(1.0,)), "advantages_G: got 1 values"),
    (lambda g: replace(g, mean=math.nan), "mean: got nan"),
    (lambda g: slot(g, reward=None), "without facts, terminal or reward"),
    (lambda g: slot(g, status="infrastructure_invalid"), "an invalid slot with an outcome"),
    (lambda g: slot(g, failure_profile="control"), "failure_profile"),
    (lambda g: slot(g, turns=g.trajectories[0].turns[:-1]), "captures: got 1 that no turn names"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD_GROUPS)
def test_group_refusals(world: World, change: Callable[[GroupRecord], GroupRecord], message: str) -> None:
    """A record that contradicts itself or its context is refused by field, and nothing is stored."""
    before = Document.objects.count()
    with pytest.raises(RecordError, match=message), transaction.atomic():
        attempt(world, change)
    assert (Group.objects.count(), Document.objects.count()) == (1, before)


def test_group_hash_and_blob_refusals(world: World) -> None:
    """Wrong hash, wrong size, absent file, second time."""
    record, captures = group_of(world, checkpoint=world.parent, ordinal=1)
    good = collect(world, record, captures)

    def put(collected: CollectedGroup) -> Group:
        return record_group(
            plan_version=world.version, run=world.run, checkpoint=world.parent, collected=collected, store=world.store
        )

    with pytest.raises(RecordError, match="record_sha256"):
        put(replace(good, record_sha256="0" * 64))
    with pytest.raises(RecordError, match="capture_blob_bytes: got 1"):
        put(replace(good, capture_blob_bytes=1))
    with pytest.raises(BlobMissing):
        put(replace(good, capture_blob_sha256="0" * 64))
    with pytest.raises(CanonicalError, match="not in canonical form"):
        text = good.record_json + " "
        put(replace(good, record_json=text, record_sha256=sha256_hex(text.encode())))
    put(good)
    with pytest.raises(AlreadyRecorded, match="a second time"):
        put(good)


def test_update_rows_and_ledger(world: World) -> None:
    """A new checkpoint under policy version 1 whose parent is the one before; each group is taken once."""
    update = add_update(world, [world.group])
    after = update.checkpoint_after
    assert (after.policy_version, after.parent, after.run, after.kind) == (1, world.parent, world.run, "update")
    assert ConsumedGroup.objects.get().group == world.group
    assert update.credits.count() == 4 and update.trace_frames.count() == 4
    with pytest.raises(AlreadyRecorded, match="a second time"):
        record_update(run=world.run, result=update_result(update_of(world, [world.group])), store=world.store)
    with pytest.raises(AlreadyRecorded, match="in a second update"):
        again = update_of(world, [world.group], batch=1)
        record_update(run=world.run, result=update_result(again), store=world.store)


def test_credit_from_edits_stands_in_its_row_as_the_record_says(world: World) -> None:
    """A term in one trajectory, none in the others; what was altered is named by verify."""
    record = update_of(world, [world.group])
    term = EditCreditRecord("M", "applied", 0, 3, 1, 0.25, 1.0, False, 0.75, 0.75, 0.5625)
    first = replace(record.credits[0], edit=term)
    update = record_update(
        run=world.run, result=update_result(replace(record, credits=(first, *record.credits[1:]))), store=world.store
    )
    rows = update.credits.order_by("pk")
    assert [row.edit for row in rows] == [to_wire(term), None, None, None]
    assert update.credits.filter(edit__isnull=True).count() == 3
    problems = {(item.table, item.column) for item in verify(store=world.store, steps=(4,)).problems}
    assert ("runs_trajectorycredit", "edit") not in problems
    drop_triggers(connection)
    with connection.cursor() as cursor:
        forged = json.dumps({**to_wire(term), "difference": 0.5})
        cursor.execute("UPDATE runs_trajectorycredit SET edit = %s WHERE id = %s", [forged, rows[0].pk])
    problems = {(item.table, item.column) for item in verify(store=world.store, steps=(4,)).problems}
    assert ("runs_trajectorycredit", "edit") in problems


def test_skipped_update_makes_no_checkpoint(world: World) -> None:
    """Output equals input; the groups are taken all the same."""
    update = add_update(world, [world.group], skipped="no_signal")
    assert update.checkpoint_before == update.checkpoint_after == world.parent
    assert Checkpoint.objects.count() == 1 and ConsumedGroup.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 3}, "uid: got"), ({"plan_sha256": "0" * 64}, "plan_sha256"),
        ({"adapter_before": "0" * 64}, "adapter_before"),
        ({"policy_version": 4}, "policy_version: got 4"), ({"steps": ()}, "steps: got none"),
        ({"skipped": "no_signal"}, "skipped: got steps"), ({"group_uids": ()}, "trained_group_uids"),
        ({"run_uid": str(uuid.UUID(int=1))}, "run_uid"),
        ({"edit_only_group_uids": ("x",)}, "edit_only_group_uids"), ({"trials": {"x": "0" * 64}}, "trials: got"),
    ],
)  # fmt: skip
def test_update_refusals(world: World, changes: dict[str, Any], message: str) -> None:
    """An update that contradicts itself, its run or its checkpoint is refused by field."""
    record = dataclasses.replace(update_of(world, [world.group]), **changes)
    with pytest.raises(RecordError, match=message), transaction.atomic():
        record_update(run=world.run, result=update_result(record), store=world.store)
    assert ConsumedGroup.objects.count() == 0


def test_update_refuses_other_groups(world: World) -> None:
    """An ineligible group cannot be trained on; a missing blob stops the commit."""
    broken = add_group(world, ordinal=1, broken=True)
    with pytest.raises(RecordError, match="expected eligible groups only"), transaction.atomic():
        untrained = replace(update_of(world, [broken]), credits=(), traces=())
        record_update(run=world.run, result=update_result(untrained), store=world.store)
    record = update_of(world, [world.group])
    world.store.delete(record.adapter_after)
    with pytest.raises(BlobMissing), transaction.atomic():
        record_update(run=world.run, result=update_result(record), store=world.store)
    assert Checkpoint.objects.count() == 1


def point(value: float | None, update: int, **changes: Any) -> MetricRecord:
    base = MetricRecord("l1.loss/1", "train", "train", {"epoch": "0"}, value, 4, update, update, 4, 40, None)
    return replace(base, **changes)


def test_points_round_trip(world: World) -> None:
    """None, NaN, infinity and 0 are four values; natural order is by policy version and update."""
    values = [0.0, None, math.nan, math.inf, -math.inf]
    count = write_points(world.run, [point(v, i) for i, v in enumerate(values)], segment="", at=AT, wall_seconds=None)
    assert count == 5
    [(series, points)] = read_series(
        world.run, "l1.loss/1", phase="train", split="train", labels={"epoch": "0"}, segment=""
    )
    assert series.labels_key == '{"epoch":"0"}'
    assert [(p.value, p.nonfinite) for p in points] == [
        (0.0, ""),
        (None, ""),
        (None, "nan"),
        (None, "inf"),
        (None, "-inf"),
    ]
    assert [p.update for p in points] == [0, 1, 2, 3, 4]
    assert read_series(world.run, "l1.loss/1", labels={"epoch": "1"}) == []
    assert read_series(None, "l1.loss/1") == []


def test_series_identity_and_second_write(world: World) -> None:
    """Labels, segment and run make other series; the same records twice are refused; none is no write."""
    first = [point(1.0, 0), point(1.0, 0, labels={"epoch": "1"})]
    write_points(world.run, first, segment="", at=AT, wall_seconds=1.0)
    write_points(world.run, first, segment="2", at=AT, wall_seconds=1.0)
    write_points(None, first, segment="", at=AT, wall_seconds=None)
    assert MetricSeries.objects.filter(definition="l1.loss/1").count() == 6
    with pytest.raises(AlreadyRecorded):
        write_points(world.run, first, segment="", at=AT, wall_seconds=9.0)
    assert write_points(world.run, [], segment="", at=AT, wall_seconds=None) == 0


def test_task_sets_share_equal_tasks(world: World) -> None:
    """A larger set of the same environment version shares its tasks; in another split they are refused."""
    larger = canonical_bytes([*TASKS, {**TASKS[0], "key": "new", "prompt": "New?"}])
    with transaction.atomic():
        second = store_task_set(larger, environment="evidence_search", version="1", store=world.store)
    assert (Task.objects.count(), second.all_tasks().count(), second.tasks.count()) == (5, 5, 1)
    assert store_task_set(larger, environment="evidence_search", version="1", store=world.store) == second
    moved = canonical_bytes([{**TASKS[0], "split": "test"}])
    with pytest.raises(AlreadyRecorded, match="got split test"), transaction.atomic():
        store_task_set(moved, environment="evidence_search", version="1", store=world.store)
    with transaction.atomic():  # another version is another set of tasks
        store_task_set(moved, environment="evidence_search", version="2", store=world.store)
    assert TaskSet.objects.count() == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (canonical_bytes([]), "tasks: got list"), (canonical_bytes({"tasks": 3}), "tasks: got int"),
        (canonical_bytes([{"key": "a"}]), r"tasks\[0\]: got fields \['key'\]"),
        (canonical_bytes([{**TASKS[0], "uid": "x", "prompt": "Other?"}]), r"tasks\[0\]\.uid: got x"),
    ],
)  # fmt: skip
def test_task_set_refusals(world: World, data: bytes, message: str) -> None:
    """Malformed tasks, and a uid that does not follow from the content."""
    with pytest.raises(RecordError, match=message), transaction.atomic():
        store_task_set(data, environment="evidence_search", version="1", store=world.store)


def test_documents(world: World) -> None:
    """Canonical bytes once for a kind and subject."""
    subject = uuid.UUID(int=5)
    document = store_document("note", subject, b'{"a":1}')
    assert bytes(document.bytes) == b'{"a":1}'
    with pytest.raises(AlreadyRecorded):
        store_document("note", str(subject), b'{"a":2}')
    with pytest.raises(CanonicalError):
        store_document("other", subject, b'{"a": 1}')


def test_tombstone_removes_bytes_on_commit(world: World, django_capture_on_commit_callbacks: Any) -> None:
    """The bytes go only after the commit; a blob that is not there cannot be removed."""
    sha256 = world.store.put(b"old adapter")
    with django_capture_on_commit_callbacks(execute=True):
        tombstone_blob(sha256, "retention", {"replay": "x"}, world.actor, at=AT, store=world.store)
        assert world.store.exists(sha256)
    assert not world.store.exists(sha256)
    with pytest.raises(BlobMissing):
        tombstone_blob("0" * 64, "retention", {}, world.actor, at=AT, store=world.store)
