"""Append-only history: every way round it is refused, on SQLite and on PostgreSQL.

The model refuses (``AppendOnlyViolation``); below it the database refuses (``IntegrityError``), also
after a migration that rebuilds the table, and also on a connection that never saw our settings.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import IntegrityError, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import ProtectedError
from django.db.models.deletion import Collector

from runs.actions.actors import service_actor
from runs.models import Actor, PlanTransition, Receipt, Run, Task, User
from tests.runs.builders import build_world
from workbench.db import (
    AppendOnlyModel,
    AppendOnlyViolation,
    append_only_models,
    check_protect,
    drop_triggers,
    install_triggers,
    missing_triggers,
)


@pytest.fixture
def actor(database: BaseDatabaseWrapper) -> Actor:
    return service_actor("one")


def save(actor: Actor) -> None:
    actor.name = "other"
    actor.save()


def save_fields(actor: Actor) -> None:
    actor.save(update_fields=["name"])


def save_copy(actor: Actor) -> None:
    """A new instance with a stored key must not become an UPDATE."""
    Actor(pk=actor.pk, uid=actor.uid, kind="service", family="x", name="other").save(force_update=True)


def bulk_update(actor: Actor) -> None:
    actor.name = "other"
    Actor.objects.bulk_update([actor], ["name"])


def upsert(actor: Actor) -> None:
    row = Actor(uid=actor.uid, kind="service", family="x", name="other")
    Actor.objects.bulk_create([row], update_conflicts=True, update_fields=["name"], unique_fields=["uid"])


def ignore(actor: Actor) -> None:
    Actor.objects.bulk_create([Actor(uid=actor.uid, kind="service", family="x", name="n")], ignore_conflicts=True)


WAYS: list[Callable[[Actor], Any]] = [
    save, save_fields, save_copy, bulk_update, upsert, ignore,
    lambda actor: actor.delete(),
    lambda actor: Actor.objects.update(name="other"),
    lambda actor: Actor.objects.filter(pk=actor.pk).delete(),
    lambda actor: Actor._base_manager.filter(pk=actor.pk).update(name="other"),
    lambda actor: Actor._default_manager.all()._raw_delete("default"),
    lambda actor: Actor.objects.update_or_create(uid=actor.uid, defaults={"name": "other"}),
    lambda actor: actor.receipts.update(kind="x"),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_code_refuses(actor: Actor, way: Callable[[Actor], Any]) -> None:
    """Models and managers raise before any statement is sent."""
    with pytest.raises(AppendOnlyViolation, match=r"expected an insert \(append-only\)"):
        way(actor)
    assert list(Actor.objects.values_list("name", flat=True)) == ["one"]


def test_code_inserts_and_reads(actor: Actor) -> None:
    """What history is for still works: create, bulk_create, get_or_create, in_bulk."""
    other = service_actor("two")
    Actor.objects.bulk_create([Actor(uid="00000000-0000-5000-8000-000000000001", kind="service", name="b")])
    assert Actor.objects.get_or_create(uid=other.uid, defaults={})[1] is False
    assert len(Actor.objects.in_bulk()) == 3


def test_same_key_is_an_error(actor: Actor) -> None:
    """Saving a new instance under a stored key is refused, never an UPDATE."""
    with pytest.raises(IntegrityError), transaction.atomic():
        Actor(pk=actor.pk, uid=actor.uid, kind="service", family="x", name="other").save()
    with pytest.raises(IntegrityError), transaction.atomic():
        Actor.objects.create(uid=actor.uid, kind="service", family="x", name="other")
    assert Actor.objects.get().name == "one"


RAW = [
    "UPDATE runs_actor SET name = 'other'",
    "UPDATE runs_actor SET name = name",
    "DELETE FROM runs_actor",
    "INSERT INTO runs_actor (uid, kind, family, name) SELECT uid, kind, family, 'other' FROM runs_actor"
    " WHERE true ON CONFLICT (uid) DO UPDATE SET name = 'other'",
]
RAW_SQLITE = [
    "REPLACE INTO runs_actor (id, uid, kind, family, name) SELECT id, uid, kind, family, 'other' FROM runs_actor",
    "REPLACE INTO runs_actor (uid, kind, family, name) SELECT uid, kind, family, 'other' FROM runs_actor",
    "UPDATE OR REPLACE runs_actor SET name = 'other'",
]
RAW_POSTGRES = ["TRUNCATE runs_actor CASCADE", "TRUNCATE runs_study, runs_actor CASCADE",
                "SET session_replication_role = replica; UPDATE runs_actor SET name = 'other'"]  # fmt: skip


def test_database_refuses(actor: Actor, database: BaseDatabaseWrapper) -> None:
    """Raw SQL on the product's own connection."""
    statements = RAW + (RAW_SQLITE if database.vendor == "sqlite" else RAW_POSTGRES)
    for statement in statements:
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic(), database.cursor() as cursor:
            cursor.execute(statement)
        assert list(Actor.objects.values_list("name", flat=True)) == ["one"], statement


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_sqlite_refuses_a_plain_connection(actor: Actor, database: BaseDatabaseWrapper) -> None:
    """A client without recursive triggers and without foreign keys, as the sqlite3 shell is."""
    plain = sqlite3.connect(database.settings_dict["NAME"])
    assert plain.execute("PRAGMA recursive_triggers").fetchone() == (0,)
    for statement in RAW + RAW_SQLITE:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            plain.execute(statement)
        plain.rollback()
    assert plain.execute("SELECT name FROM runs_actor").fetchall() == [("one",)]
    plain.close()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_recursive_triggers_are_on(database: BaseDatabaseWrapper) -> None:
    """Each new connection of the product has them: a REPLACE then fires the DELETE trigger too."""
    with database.cursor() as cursor:
        cursor.execute("DROP TRIGGER IF EXISTS runs_actor_no_replace")
    service_actor("one")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic(), database.cursor() as cursor:
        cursor.execute(RAW_SQLITE[0])


def test_cascade_refuses(database: BaseDatabaseWrapper) -> None:
    """Deleting what history points to is refused: by PROTECT in code, by the database below it."""
    user = User.objects.create(username="ada")
    Actor.objects.create(uid="00000000-0000-5000-8000-000000000002", kind="person", family="f", name="ada", user=user)
    with pytest.raises(ProtectedError):
        user.delete()
    collector = Collector(using="default", origin=user)
    with pytest.raises(ProtectedError):
        collector.collect([user])
    with pytest.raises(IntegrityError), transaction.atomic(), database.cursor() as cursor:
        cursor.execute("DELETE FROM runs_user")
        database.check_constraints()
    assert Actor.objects.get().user == user


def test_every_history_table_refuses(database: BaseDatabaseWrapper, tmp_path: Any) -> None:
    """A row of each append-only table that the small world fills: UPDATE and DELETE are refused."""
    from workbench.blobs import BlobStore

    with transaction.atomic():
        build_world(store=BlobStore(tmp_path / "world"))
    filled = [model for model in append_only_models() if model.objects.exists()]  # type: ignore[attr-defined]
    assert len(filled) >= 24
    for model in filled:
        table = model._meta.db_table
        for statement in (f"UPDATE {table} SET id = id + 1000000", f"DELETE FROM {table}"):
            with pytest.raises(IntegrityError, match=f"append-only: {table}"), transaction.atomic():
                database.cursor().execute(statement)


def test_triggers_survive_a_table_rebuild(actor: Actor, database: BaseDatabaseWrapper) -> None:
    """A migration that rebuilds the table drops SQLite's triggers; the end of migrate installs them again.

    The check in between shows that the rebuild did drop them on SQLite, so that the test can fail.
    """
    with database.schema_editor() as editor:
        old = Actor._meta.get_field("family")
        new = models.CharField(max_length=99)
        new.set_attributes_from_name("family")
        editor.alter_field(Actor, old, new)
    if database.vendor == "sqlite":
        assert missing_triggers(database) == ["runs_actor_no_update", "runs_actor_no_delete", "runs_actor_no_replace"]
    call_command("migrate", "runs", verbosity=0)
    assert missing_triggers(database) == []
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        database.cursor().execute("UPDATE runs_actor SET name = 'other'")


def test_missing_triggers_are_named(database: BaseDatabaseWrapper) -> None:
    """Absent, replaced or disabled: the function and the system check name the trigger."""
    assert missing_triggers(database) == []
    assert run_checks(tags=["database"], databases=["default"], include_deployment_checks=False) == []
    name = "runs_receipt_no_update" if database.vendor == "sqlite" else "runs_receipt_no_change"
    with database.cursor() as cursor:
        if database.vendor == "sqlite":
            cursor.execute(f"DROP TRIGGER {name}")
            cursor.execute(f"CREATE TRIGGER {name} BEFORE UPDATE ON runs_receipt WHEN 0 BEGIN SELECT 1; END")
        else:
            cursor.execute(f"ALTER TABLE runs_receipt DISABLE TRIGGER {name}")
    assert missing_triggers(database) == [name]
    found = [item for item in run_checks(tags=["database"], databases=["default"]) if item.id == "workbench.E001"]
    assert len(found) == 1 and name in found[0].msg
    install_triggers(database)
    assert missing_triggers(database) == []
    drop_triggers(database)
    assert len(missing_triggers(database)) == len(append_only_models()) * (3 if database.vendor == "sqlite" else 2)


def test_history_is_declared_as_history() -> None:
    """Managers refuse through every path, and every foreign key from and to history is PROTECT."""
    assert check_protect(None) == []
    found = append_only_models()
    assert {Receipt, Run, Task, PlanTransition} <= set(found)
    for model in found:
        assert model._meta.base_manager_name == "objects", model
        assert isinstance(model._base_manager.all(), type(Actor.objects.all())), model
        assert issubclass(model, AppendOnlyModel)


def test_unprotected_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check fails for a foreign key that cascades."""
    monkeypatch.setattr(Actor._meta.get_field("user").remote_field, "on_delete", models.CASCADE)
    assert [(item.id, "Actor.user" in item.msg) for item in check_protect(None)] == [("workbench.E002", True)]
