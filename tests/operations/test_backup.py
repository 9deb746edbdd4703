"""Backup and restore: under load, elsewhere, verified; and what is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from evidence.verify import verify
from runs.actions.actors import service_actor
from runs.actions.receipts import append_receipt
from runs.actions.tombstones import tombstone_blob
from runs.models import BlobRef, Document, Group, Receipt, StreamHead, Tombstone
from runs.storage import blob_store
from tests.evidence.test_verify import sql
from tests.operations.archives import AT, members_of, sqlite_only
from tests.runs import databases
from tests.runs.builders import add_group, build_world
from tests.runs.scripted import Lab
from tests.runs.test_advance import ALONE
from tests.sweeps import sweep
from workbench import db
from workbench.blobs import BlobStore
from workbench.home import initialise
from workbench.operations import backup as backup_module
from workbench.operations.archive import BackupError
from workbench.operations.backup import make_backup
from workbench.operations.restore import restore_backup
from workbench.paths import Home
from workbench.settings import postgres_database

SCRIPTED = (1, 2, 3, 4, 5, 9)  # steps that a scripted engine, whose numbers nobody can recompute, passes
Facts = tuple[list[Any], list[Any], list[Any]]


def facts() -> Facts:
    """Closures, receipts and stream heads of the default database."""
    closures = sorted(Document.objects.filter(kind="closure").values_list("subject_uid", "sha256"))
    return closures, sorted(Receipt.objects.values_list("stream", "seq", "sha256")), sorted(
        StreamHead.objects.values_list("stream", "seq", "sha256")
    )  # fmt: skip


@contextmanager
def elsewhere(request: pytest.FixtureRequest, vendor: str, home: Home) -> Iterator[None]:
    """An empty database of the same kind as the default connection."""
    if vendor == "sqlite":
        home.root.mkdir(parents=True, exist_ok=True)
        with databases.as_default(databases.sqlite_settings(home.database)):
            yield
        return
    with databases.as_default(postgres_database(request.getfixturevalue("fresh_postgres_url"))):
        yield


@contextmanager
def writing(work: Callable[[int], None]) -> Iterator[list[int]]:
    """Another thread that works until the block ends; the list holds what it has done."""
    done: list[int] = []
    stop = threading.Event()
    failed: list[BaseException] = []

    def loop() -> None:
        try:
            while not stop.is_set():
                work(len(done))
                done.append(len(done))
        except BaseException as error:
            failed.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive() and not failed, failed


@pytest.mark.parametrize("name", sweep(["backup.tar.zst", "folder"], 1))
def test_backup_under_load_restored_elsewhere_verifies(
    request: pytest.FixtureRequest, database: BaseDatabaseWrapper, lab: Lab, tmp_path: Path, settings: Any, name: str
) -> None:
    """Receipts and groups are written meanwhile: the backup is one moment, whose chains and closure are equal."""
    closed = lab.start(**ALONE)
    lab.drive(closed)
    assert closed.state == "closed"
    open_one = lab.start(**{**ALONE, "name": "open", "budget": {"batches": 40, "max_steps": 99}})
    before = facts()

    def work(position: int) -> None:
        with transaction.atomic():
            append_receipt("load", "note", None, {"position": position}, actor=service_actor("tester"), at=AT)
        lab.step(open_one)

    with writing(work) as done:
        while len(done) < 2:
            pass
        first = len(done)
        result = make_backup(tmp_path / name, store=blob_store(), at=AT)
        while len(done) < first + 2:  # the writer was never shut out
            pass
    later = facts()
    vendor = connection.vendor
    home = Home(tmp_path / "elsewhere")
    settings.BLOB_ROOT = home.blobs
    with elsewhere(request, vendor, home):
        told = restore_backup(tmp_path / name, home, expected_manifest=result["manifest_sha256"])
        report = verify(store=blob_store(), steps=SCRIPTED)
        assert report.ok, report.faults
        assert db.missing_triggers(connection) == []
        restored = facts()
        with pytest.raises(BackupError, match="got tables, expected an empty one"):
            restore_backup(tmp_path / name, home)
    assert restored[0] == before[0] != []
    assert set(before[1]) < set(restored[1]) < set(later[1])
    assert told["streams"] == result["streams"] and told["rows"] == result["rows"]
    assert not list(home.root.glob(".restore-*")) and not list(tmp_path.glob(".*"))


def test_every_step_of_the_verification_passes_on_a_backup_made_under_load(
    request: pytest.FixtureRequest, database: BaseDatabaseWrapper, tmp_path: Path, settings: Any
) -> None:
    """Groups with real captures are recorded meanwhile; what was restored is recomputed whole."""
    settings.BLOB_ROOT = tmp_path / "blobs"
    world = build_world(store=blob_store(), groups=2, updates=1)

    with writing(lambda position: add_group(world, ordinal=2 + position) and None) as done:
        while not done:
            pass
        make_backup(tmp_path / "x.tar.zst", store=blob_store(), at=AT)
    groups = Group.objects.count()
    vendor, home = connection.vendor, Home(tmp_path / "elsewhere")
    settings.BLOB_ROOT = home.blobs
    with elsewhere(request, vendor, home):
        restore_backup(tmp_path / "x.tar.zst", home)
        assert 3 <= Group.objects.count() <= groups
        report = verify(store=blob_store())
        assert report.ok, report.faults


@sqlite_only
def test_tombstones_are_kept_and_their_bytes_stay_away(made: Path, tmp_path: Path, settings: Any) -> None:
    """The manifest names them, no member holds them; the secret key comes with its own flag only."""
    members = dict(members_of(made))
    manifest = json.loads(members["manifest.json"])
    gone = set(Tombstone.objects.values_list("sha256", flat=True))
    assert set(manifest["tombstoned"]) == gone
    assert not {name for name in members if name.rpartition("/")[2] in gone}
    assert members["secret_key"].decode() == settings.SECRET_KEY
    assert manifest["tables"]["runs_tombstone"] == len(gone)
    make_backup(tmp_path / "plain", store=blob_store(), at=AT)
    assert not (tmp_path / "plain" / "secret_key").exists()
    home = Home(tmp_path / "other")
    settings.BLOB_ROOT = home.blobs
    home.root.mkdir()
    with databases.as_default(databases.sqlite_settings(home.database)):
        restore_backup(made, home)
        assert verify(store=blob_store(), steps=SCRIPTED).ok
        assert set(Tombstone.objects.values_list("sha256", flat=True)) == gone
    assert home.secret_key.read_text() == settings.SECRET_KEY and home.secret_key.stat().st_mode & 0o777 == 0o600


@sqlite_only
def test_a_backup_of_a_damaged_store_is_refused(database: BaseDatabaseWrapper, lab: Lab, tmp_path: Path) -> None:
    """Missing and changed bytes are named, and no file is left."""
    lab.drive(lab.start(**ALONE))
    store = blob_store()
    victim = BlobRef.objects.filter(kind="captures").order_by("pk")[0].sha256
    kept = store.path(victim).read_bytes()
    store.path(victim).unlink()
    with pytest.raises(BackupError, match=f"blob {victim}: got no bytes in the store"):
        make_backup(tmp_path / "x.tar.zst", store=store, at=AT)
    store.path(victim).write_bytes(kept[:-1] + b"!")
    with pytest.raises(BackupError, match=f"blob {victim}: got bytes that hash to"):
        make_backup(tmp_path / "x", store=store, at=AT)
    assert not list(tmp_path.glob("*x*")) and not list(tmp_path.glob(".*"))
    store.path(victim).unlink()
    store.put(kept)
    make_backup(tmp_path / "x", store=store, at=AT)
    with pytest.raises(BackupError, match="nothing is overwritten"):
        make_backup(tmp_path / "x", store=store, at=AT)
    with pytest.raises(BackupError, match="got no folder"):
        make_backup(tmp_path / "no" / "x", store=store, at=AT)


@sqlite_only
def test_retention_in_the_middle_of_a_backup(
    database: BaseDatabaseWrapper, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """A blob goes after the rows were copied: rows are copied again, so that its tombstone is in the backup."""
    lab.drive(lab.start(**ALONE))
    store = blob_store()
    victim = BlobRef.objects.filter(kind="captures").order_by("-sha256")[0].sha256
    real, rounds = backup_module.take, []

    def take(target: Path, store: BlobStore) -> Any:
        found = real(target, store)
        if not rounds:
            tombstone_blob(victim, "test", {"replay": "none"}, lab.actor, at=AT, store=store)
        rounds.append(found)
        return found

    monkeypatch.setattr(backup_module, "take", take)
    result = make_backup(tmp_path / "x.tar.zst", store=store, at=AT)
    assert len(rounds) == 2 and victim in rounds[0].blobs and victim not in rounds[0].gone and victim in rounds[1].gone
    names = [name for name, _ in members_of(tmp_path / "x.tar.zst")]
    assert len(names) == len(set(names)) and result["blobs"] == len(names) - 2
    home = Home(tmp_path / "other")
    settings.BLOB_ROOT = home.blobs
    home.root.mkdir()
    with databases.as_default(databases.sqlite_settings(home.database)):
        restore_backup(tmp_path / "x.tar.zst", home)
        assert Tombstone.objects.filter(sha256=victim).exists()
        # Retention never takes captures, and verify says so of the victim; every other blob is there.
        assert {item.row for item in verify(store=blob_store(), steps=(5,)).faults} == {victim}


@sqlite_only
def test_a_changed_row_shows_in_the_verification_after_a_restore(
    database: BaseDatabaseWrapper, lab: Lab, tmp_path: Path, settings: Any
) -> None:
    """A backup is faithful, damage included: what was wrong before is named afterwards."""
    lab.drive(lab.start(**ALONE))
    sql("UPDATE runs_group SET mean = 0.123 WHERE id = (SELECT MIN(id) FROM runs_group)")  # drops the triggers
    make_backup(tmp_path / "x", store=blob_store(), at=AT)
    home = Home(tmp_path / "other")
    settings.BLOB_ROOT = home.blobs
    home.root.mkdir()
    with databases.as_default(databases.sqlite_settings(home.database)):
        told = restore_backup(tmp_path / "x", home)
        assert "mean" in {item.column for item in verify(store=blob_store()).faults}
        assert "runs_group_no_update" in told["triggers_installed_again"] and not db.missing_triggers(connection)


@sqlite_only
def test_an_older_schema_is_backed_up_and_brought_up_to_date(
    database: BaseDatabaseWrapper, lab: Lab, tmp_path: Path, settings: Any
) -> None:
    """A table of a later migration is absent: made before an upgrade, restored and migrated after it."""
    lab.drive(lab.start(**ALONE))
    call_command("migrate", "account", "zero", verbosity=0, skip_checks=True)
    result = make_backup(tmp_path / "x", store=blob_store(), at=AT)
    home = Home(tmp_path / "other")
    settings.BLOB_ROOT = home.blobs
    home.root.mkdir()
    with databases.as_default(databases.sqlite_settings(home.database)):
        assert restore_backup(tmp_path / "x", home)["rows"] == result["rows"]
        assert "account_emailaddress" not in connection.introspection.table_names()
        assert initialise(home).migrated
        assert "account_emailaddress" in connection.introspection.table_names()
        assert verify(store=blob_store(), steps=SCRIPTED).ok


@sqlite_only
def test_a_database_that_cannot_be_read_is_named(tmp_path: Path, database: BaseDatabaseWrapper) -> None:
    """No table at all: a message, no traceback, and no file."""
    with (
        databases.as_default(databases.sqlite_settings(tmp_path / "empty.sqlite3")),
        pytest.raises(BackupError, match=r"database: cannot be read \(no such table"),
    ):
        make_backup(tmp_path / "x", store=BlobStore(tmp_path / "blobs"), at=AT)
    assert not (tmp_path / "x").exists()
