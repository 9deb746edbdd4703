"""verify: chains, anchors, blobs, traces, metrics and heads; damage as in ``test_verify``."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from evidence.report import TOMBSTONED
from evidence.verify import STEPS, verify
from runs.actions.receipts import anchor_heads, append_receipt
from runs.actions.tombstones import tombstone_blob
from runs.models import Group, Receipt, RunHead, StreamHead, Tombstone, Trajectory, Turn, UpdateBatch
from tests.evidence.test_verify import found, rewrite, sql
from tests.runs.builders import AT, World
from workbench.contracts.canonical import sha256_hex

Damage = Callable[[World], Any]


# --- chains ---------------------------------------------------------------------------------------


def chain(world: World, count: int = 4) -> None:
    with transaction.atomic():
        for number in range(count):
            append_receipt("stream", "thing", None, {"n": number}, actor=world.actor, at=AT)


def test_removed_tail_is_found_by_the_head(world: World) -> None:
    """The last receipt deleted: the stream's head is ahead."""
    chain(world)
    sql("DELETE FROM runs_receipt WHERE stream = 'stream' AND seq = 4")
    assert (1, "runs_streamhead", "seq") in found(verify(store=world.store))


def test_removed_tail_with_head_is_found_by_an_anchor(world: World) -> None:
    """Receipt deleted and head set back: the anchor still names it."""
    chain(world)
    with transaction.atomic():
        anchor_heads()
    assert verify(store=world.store).ok
    third = Receipt.objects.get(stream="stream", seq=3)
    sql("DELETE FROM runs_receipt WHERE stream = 'stream' AND seq = 4")
    StreamHead.objects.filter(stream="stream").update(seq=3, sha256=third.sha256)
    assert found(verify(store=world.store)) == {(1, "runs_receipt", "sha256")}


def test_removed_middle_and_changed_byte_are_found(world: World) -> None:
    """A hole breaks seq and prev; a changed byte breaks the hash."""
    chain(world)
    sql("DELETE FROM runs_receipt WHERE stream = 'stream' AND seq = 2")
    assert {(1, "runs_receipt", "seq"), (1, "runs_receipt", "prev")} <= found(verify(store=world.store))


def test_removed_head_is_found(world: World) -> None:
    """Receipts of a stream without a head."""
    chain(world)
    sql("DELETE FROM runs_streamhead WHERE stream = 'stream'")
    assert (1, "runs_streamhead", "seq") in found(verify(store=world.store))


def test_changed_anchor_is_found(world: World) -> None:
    """An anchor's bytes are hashed and chained."""
    with transaction.atomic():
        anchor_heads()
    sql("UPDATE runs_anchor SET bytes = %s", b"{}")
    assert (1, "runs_anchor", "sha256") in found(verify(store=world.store))


# --- blobs and captures ---------------------------------------------------------------------------


def damage(world: World, sha256: str, at: int) -> None:
    path = world.store.path(sha256)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.chmod(0o644)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("at", [0, 6, 60, -1])
def test_changed_blob_byte_is_found(world: World, at: int) -> None:
    """Any byte of a capture file."""
    damage(world, world.group.capture_blob_sha256, at)
    assert any(
        item.step == 5 and item.row == world.group.capture_blob_sha256 for item in verify(store=world.store).faults
    )


def test_missing_and_tombstoned_blobs_differ(world: World, django_capture_on_commit_callbacks: Any) -> None:
    """The optimizer state removed by retention is tombstoned; the adapter removed behind our back is missing."""
    update = UpdateBatch.objects.order_by("batch").first()
    assert update is not None and update.optimizer_after is not None
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        recipe = {"replay": "apply_update", "update_uid": str(update.uid), "run_uid": str(update.run.uid)}
        tombstone_blob(update.optimizer_after, "retention", recipe, world.actor, at=AT, store=world.store)
    RunHead.objects.update(optimizer_sha256=None)  # the run's last state is never removed
    report = verify(store=world.store)
    assert {item.severity for item in report.problems if item.step == 5} == {TOMBSTONED}
    os.unlink(world.store.path(update.checkpoint_after.sha256))
    report = verify(store=world.store)
    assert [item.row for item in report.faults if item.step == 5] == [update.checkpoint_after.sha256]


def test_forged_tombstone_excuses_nothing(world: World) -> None:
    """A capture file deleted, and a tombstone for it that names a real update: neither hides the other."""
    update, sha256 = UpdateBatch.objects.earliest("batch"), world.group.capture_blob_sha256
    recipe = {"replay": "apply_update", "update_uid": str(update.uid), "run_uid": str(update.run.uid)}
    Tombstone.objects.create(sha256=sha256, reason="retention", recipe=recipe, at=AT, actor=world.actor)
    os.unlink(world.store.path(sha256))
    assert {(5, "runs_tombstone", "recipe"), (5, "runs_blobref", "sha256")} <= found(verify(store=world.store))


def test_tombstone_of_a_kept_blob_is_found(world: World) -> None:
    """The optimizer state of the run's head: its own update's recipe, and still needed."""
    head = RunHead.objects.exclude(optimizer_sha256=None).get()
    update = UpdateBatch.objects.filter(optimizer_after=head.optimizer_sha256).latest("batch")
    recipe = {"replay": "apply_update", "update_uid": str(update.uid), "run_uid": str(update.run.uid)}
    sha256 = str(head.optimizer_sha256)
    Tombstone.objects.create(sha256=sha256, reason="retention", recipe=recipe, at=AT, actor=world.actor)
    os.unlink(world.store.path(sha256))
    assert (5, "runs_tombstone", "sha256") in found(verify(store=world.store))


def test_text_where_bytes_belong_is_a_problem_and_no_crash(world: World) -> None:
    sql("UPDATE runs_document SET bytes = CAST(bytes AS TEXT) WHERE id = (SELECT MIN(id) FROM runs_document)")
    assert (3, "runs_document", "bytes") in found(verify(store=world.store))


def test_swapped_capture_file_is_found(world: World) -> None:
    """A group that names another group's intact file: no capture of its turns is in it."""
    other = world.groups[1].capture_blob_sha256
    sql("UPDATE runs_group SET capture_blob_sha256 = %s WHERE id = %s", other, world.group.pk)
    assert (6, "runs_turn", "capture_sha256") in found(verify(store=world.store))


def test_callback_reports_through_step_10(world: World) -> None:
    """The callback sees every group with all its captures, and what it returns becomes problems."""
    seen: list[tuple[str, int]] = []

    def recompute(record: Any, captures: dict[str, bytes]) -> list[tuple[str, str, object, object]]:
        seen.append((record.uid, len(captures)))
        assert all(sha256_hex(data) == sha256 for sha256, data in captures.items())
        return [(record.trajectories[0].uid, "success", True, False)] if record.uid == str(world.group.uid) else []

    report = verify(store=world.store, recompute=recompute)
    assert sorted(seen) == sorted(
        (str(group.uid), Turn.objects.filter(trajectory__group=group).count()) for group in Group.objects.all()
    )
    assert [(item.step, item.table, item.column) for item in report.faults] == [(10, "runs_trajectory", "success")]
    assert STEPS[10] == "replay"


def test_unreadable_document_does_not_stop_the_rest(world: World) -> None:
    """Bytes that are no JSON are one problem among others; later rows are still compared."""
    sql("UPDATE runs_document SET bytes = %s WHERE kind = 'group' AND subject_uid = %s", b"\xff", world.group.uid.hex)
    last = Trajectory.objects.order_by("-id").first()
    assert last is not None
    sql("UPDATE runs_trajectory SET success = NULL WHERE id = %s", last.pk)
    assert {(3, "runs_document", "bytes"), (4, "runs_group", "bytes"), (4, "runs_trajectory", "success")} <= found(
        verify(store=world.store)
    )


def test_world_captures_have_the_magic(world: World) -> None:
    """The world's files are real capture files: else the blob tests would show nothing."""
    assert struct.unpack_from("4s", world.store.get(world.group.capture_blob_sha256)) == (b"WBG1",)


# --- updates, metrics, heads, the reading itself --------------------------------------------------


def test_forged_trace_is_found(world: World) -> None:
    """A trace file whose own hash was made to fit: its frames still have theirs."""
    update = UpdateBatch.objects.get(batch=0)
    data = bytearray(world.store.get(str(update.trace_blob_sha256)))
    data[-10] ^= 1
    forged = world.store.put(bytes(data))

    def change(value: dict[str, Any]) -> None:
        value["trace_blob_sha256"] = forged

    rewrite(world, change, "update")
    assert (6, "runs_traceframe", "frame_sha256") in found(verify(store=world.store, steps=[6]))


def test_forged_capture_digest_and_old_values_are_found(world: World) -> None:
    """The digest follows from the captures; the old log-probabilities have one float32 a trained token."""
    short = world.store.put(b"\0" * 8)

    def change(value: dict[str, Any]) -> None:
        value["capture_digest"], value["old_logprobs_sha256"] = "0" * 64, short

    rewrite(world, change, "update")
    columns = {(6, "runs_updatebatch", "capture_digest"), (6, "runs_updatebatch", "old_logprobs_sha256")}
    assert columns <= found(verify(store=world.store, steps=[6]))


def test_forged_metric_is_recomputed(world: World) -> None:
    """A metrics document with another mean reward than its group has."""

    def change(value: dict[str, Any]) -> None:
        value["metrics"][0]["value"] = 0.75

    rewrite(world, change, "metrics")
    report = verify(store=world.store, steps=[8])
    assert any("l3.reward_mean/1" in item.row and item.got == "(0.75, 4)" for item in report.faults)


@pytest.mark.parametrize(
    ("table", "change", "column"),
    [
        ("runs_runhead", "steps = 9", "steps"), ("runs_runhead", "trajectories = 1", "trajectories"),
        ("runs_runhead", "state = 'completed'", "state"), ("runs_execution", "state = 'closed'", "state"),
        ("runs_plan", "state = 'draft'", "state"), ("runs_runtransition", "from_state = 'paused'", "from_state"),
        ("runs_runhead", "optimizer_sha256 = NULL", "optimizer_sha256"),
    ],
)  # fmt: skip
def test_head_that_its_history_does_not_give(world: World, table: str, change: str, column: str) -> None:
    """States are the fold of transitions, counters are sums: a head set by hand is named."""
    sql(f"UPDATE {table} SET {change}")
    assert (4, table, column) in found(verify(store=world.store, steps=[4]))


def test_steps_are_chosen(world: World) -> None:
    """Only the wanted steps run; an unknown one, or the tenth without a callback, is refused."""
    report = verify(store=world.store, steps=[1, 5])
    assert (sorted(report.checked), sorted(report.steps)) == ([1, 5], [1, 5])
    for steps in ([18], [10]):
        with pytest.raises(ValueError, match=r"expected some of \[1, 2"):
            verify(store=world.store, steps=steps)
