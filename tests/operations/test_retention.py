"""Bytes that are produced again after a removal, removed again, and the command that applies retention."""

from __future__ import annotations

import io
import json
import threading
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from evidence.verify import verify
from runs.actions.retention import due, overview, retain
from runs.actions.tombstones import finish_removals, standing_tombstones, tombstone_blob
from runs.models import AuditEntry, BlobRef, Receipt, Tombstone
from runs.presenters.checkpoints import tombstones_of
from runs.storage import blob_store, reference_blobs
from tests.runs.scripted import AT, Lab
from tests.runs.test_retention import LONG

DATA = b"some adapter"
SPARSE = {**LONG, "retention": {"checkpoint_every": 100}}


def steps() -> list[str]:
    """Kinds of receipts about blobs."""
    return list(Receipt.objects.filter(stream="blobs").order_by("seq").values_list("kind", flat=True))


def severity(sha256: str) -> str | None:
    """What verify says about the bytes of a blob; None: nothing."""
    found = [item for item in verify(store=blob_store(), steps=(1, 5)).problems if item.row == sha256]
    return found[0].severity if found else None


def test_removed_produced_again_and_removed_again(
    database: BaseDatabaseWrapper, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tombstone stands, then does not, then stands; absent bytes are a fault only while it does not.

    What may be removed at all is another rule, with tests of its own (``tests/evidence``): here any blob may.
    """
    for module in ("evidence.checks.blobs", "evidence.verify"):
        monkeypatch.setattr(f"{module}.judged_tombstones", lambda store: (set(standing_tombstones()), []))
    store = blob_store()
    sha = store.put(DATA)
    reference_blobs({sha: "adapter"}, store=store)
    tombstone_blob(sha, "first", {"replay": "x"}, lab.actor, at=AT)
    assert not store.exists(sha) and set(standing_tombstones()) == {sha} == set(tombstones_of([sha]))
    assert severity(sha) == "tombstoned" and steps() == []

    store.put(DATA)
    reference_blobs({sha: "adapter"}, store=store)
    assert standing_tombstones() == {} == tombstones_of([sha]) and steps() == ["blob.produced_again"]
    assert severity(sha) is None
    reference_blobs({sha: "adapter"}, store=store)
    assert steps() == ["blob.produced_again"], "once is enough"
    store.delete(sha)
    assert severity(sha) == "problem", "bytes that somebody relies on again must not be excused by an old tombstone"

    store.put(DATA)
    tombstone_blob(sha, "second", {"replay": "y"}, lab.actor, at=AT)
    assert not store.exists(sha) and set(standing_tombstones([sha])) == {sha} and severity(sha) == "tombstoned"
    assert steps() == ["blob.produced_again", "blob.removed_again"] and Tombstone.objects.count() == 1
    store.put(DATA)
    with pytest.raises(IntegrityError):
        tombstone_blob(sha, "third", {"replay": "z"}, lab.actor, at=AT)


def test_bytes_relied_on_before_the_removal_ends_stay(database: BaseDatabaseWrapper, lab: Lab) -> None:
    """Between the commit of a tombstone and the deletion another transaction relies on the same bytes."""
    store = blob_store()
    sha = store.put(DATA)
    reference_blobs({sha: "adapter"}, store=store)

    def other() -> None:
        try:
            reference_blobs({sha: "adapter"}, store=store)
        finally:
            connections.close_all()

    def in_between() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(20)

    with transaction.atomic():
        transaction.on_commit(in_between)
        tombstone_blob(sha, "first", {"replay": "x"}, lab.actor, at=AT)
    assert store.exists(sha) and standing_tombstones() == {} and severity(sha) is None


def test_a_removal_that_a_crash_cut_off_is_finished(database: BaseDatabaseWrapper, lab: Lab) -> None:
    store = blob_store()
    sha, other = store.put(DATA), store.put(b"other")
    Tombstone.objects.create(sha256=sha, reason="r", recipe={}, at=AT, actor=lab.actor)
    assert finish_removals(store, dry_run=True) == [sha] and store.exists(sha)
    assert finish_removals(store) == [sha] and not store.exists(sha) and store.exists(other)
    assert finish_removals(store) == []


def command(*options: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("retention", "--json", *options, stdout=out)
    result: dict[str, Any] = json.loads(out.getvalue())
    call_command("retention", "--dry-run", stdout=io.StringIO())  # the text of people has no other path
    return result


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_command_removes_tells_and_repeats_without_effect(
    database: BaseDatabaseWrapper, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five versions: the final one stays. A dry run changes nothing; a second run finds nothing."""
    monkeypatch.setattr("worker.recorder.retain", lambda *args, **more: 0)
    execution = lab.start(**SPARSE)
    assert command()["removed"] == [], "a running execution keeps everything"
    lab.drive(execution)
    expected = {item.sha256 for item in due(execution)}
    assert len(expected) == 8
    assert {item["sha256"] for item in command("--dry-run")["removed"]} == expected
    assert not Tombstone.objects.exists() and all(blob_store().exists(sha) for sha in expected)
    done = command()
    assert {item["sha256"] for item in done["removed"]} == expected == set(standing_tombstones())
    assert done["removed_bytes"] == sum(BlobRef.objects.get(sha256=sha).bytes for sha in expected)
    assert not any(blob_store().exists(sha) for sha in expected)
    assert done["can_be_made_again"] == len(done["tombstones"]) == 8
    again = command()
    assert again["removed"] == [] and len(again["tombstones"]) == 8
    said = AuditEntry.objects.filter(route="manage.py retention").order_by("pk").values_list("detail", flat=True)
    assert list(said) == ["0 blobs removed", "8 blobs removed", "0 blobs removed"]  # the dry runs left none


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_cannot_be_made_again_says_what_is_missing(database: BaseDatabaseWrapper, lab: Lab) -> None:
    """Without the captures of the second batch, versions 2 to 4 are lost; version 1 is not."""
    execution = lab.start(**SPARSE)
    lab.drive(execution)
    assert all(item.missing is None for item in overview())
    second = execution.runs.get().updates.order_by("batch")[1]
    blob = second.consumed_groups.get().group.capture_blob_sha256
    blob_store().delete(blob)
    lost = {item.recipe["update_uid"] for item in overview() if item.missing is not None}
    updates = execution.runs.get().updates.order_by("batch")
    assert lost == {str(update.uid) for update in updates[1:4]}
    assert {item.missing for item in overview() if item.missing} == {f"captures {blob}"}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_same_plan_run_again_brings_its_bytes_back(database: BaseDatabaseWrapper, lab: Lab) -> None:
    """A second execution that makes equal adapters relies on them until it has ended; then they go again."""
    lab.script.adapter = lambda spec: f"adapter {spec.batch}"
    first = lab.start(**SPARSE)
    lab.drive(first)
    gone = set(standing_tombstones())
    second = lab.start(**{**SPARSE, "name": "second"})
    lab.drive(second, only="collect:0")
    lab.drive(second, only="update:0")
    back = gone - set(standing_tombstones())
    assert back and all(blob_store().exists(sha) for sha in back)
    assert retain(first, actor=lab.actor, at=AT) == 0
    lab.drive(second)
    assert back <= set(standing_tombstones()) and not any(blob_store().exists(sha) for sha in back)
    assert [item for item in verify(store=blob_store(), steps=(1, 5)).faults] == []
