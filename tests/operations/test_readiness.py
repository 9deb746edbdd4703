"""/healthz and /readyz, each check with the thing really broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client

from tests.runs import databases
from tests.servers import Postgres
from workbench.db import drop_triggers, install_triggers
from workbench.operations import readiness
from workbench.settings import postgres_database

NAMES = ["database", "migrations", "triggers", "broker", "blobs"]


@pytest.fixture
def serving(settings: Any, redis_url: str, tmp_path: Path) -> Any:
    """A broker that answers, a store of its own, and no answer kept."""
    settings.CELERY_BROKER_URL = redis_url
    settings.BLOB_ROOT = tmp_path / "blobs"
    settings.BLOB_ROOT.mkdir()
    settings.READINESS_KEPT_SECONDS = 0.0
    return settings


def asked(status: int) -> dict[str, Any]:
    """The checks of the answer, which has this status."""
    response = Client(headers={"host": "localhost"}).get("/readyz")
    body = response.json()
    assert response.status_code == status and body["ready"] is (status == 200), body
    assert response["Cache-Control"].startswith("max-age=0")
    assert list(body["checks"]) == NAMES
    return body["checks"]


def failing(status: int = 503) -> set[str]:
    return {name for name, check in asked(status).items() if not check["ok"]}


def test_a_server_in_order_is_ready(database: BaseDatabaseWrapper, serving: Any) -> None:
    """On SQLite and PostgreSQL; nothing is left in the store, and the answer needs few queries."""
    checks = asked(200)
    assert checks["database"]["detail"] == connection.vendor and "MiB are free" in checks["blobs"]["detail"]
    assert list(serving.BLOB_ROOT.iterdir()) == []


def test_missing_triggers_and_migrations_are_named(database: BaseDatabaseWrapper, serving: Any) -> None:
    drop_triggers(database)
    checks = asked(503)
    assert "append-only triggers are missing, the first " in checks["triggers"]["detail"]
    install_triggers(database)
    with database.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'runs' AND name = '0002_access'")
    checks = asked(503)
    assert "runs.0002_access" in checks["migrations"]["detail"] and checks["triggers"]["ok"]


def test_a_database_that_is_away(serving: Any, tmp_path: Path, django_db_blocker: Any) -> None:
    """A folder that does not exist; its path is not told. The schema is not looked at."""
    gone = databases.sqlite_settings(tmp_path / "private-folder" / "db.sqlite3")
    with django_db_blocker.unblock(), databases.as_default(gone):
        checks = asked(503)
        assert checks["database"]["detail"] == "does not work: OperationalError"
        assert failing() == {"database", "migrations", "triggers"}
        assert "private-folder" not in str(checks)


@pytest.mark.gate
@pytest.mark.postgres
def test_a_postgresql_server_that_is_gone(serving: Any, postgres_server: Postgres, django_db_blocker: Any) -> None:
    """The database is dropped under an open connection; its name and password are not told."""
    name = "soon_gone"
    url = postgres_server.create(name).replace("workbench@", "workbench:hunter2-secret@")
    with django_db_blocker.unblock(), databases.as_default(postgres_database(url)):
        databases.call_command("migrate", verbosity=0, skip_checks=True)
        asked(200)
        postgres_server.drop(name)
        checks = asked(503)
        assert not checks["database"]["ok"] and failing() == {"database", "migrations", "triggers"}
        assert "hunter2" not in str(checks) and name not in str(checks)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_broker_that_is_away(database: BaseDatabaseWrapper, serving: Any) -> None:
    serving.CELERY_BROKER_URL = "redis://user:hunter2-secret@127.0.0.1:1/0"
    checks = asked(503)
    assert checks["broker"] == {"ok": False, "detail": "the broker does not answer"} and failing() == {"broker"}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_store_that_cannot_be_written_or_is_full(database: BaseDatabaseWrapper, serving: Any, tmp_path: Path) -> None:
    """The folder is gone; a file stands in its place; less is free than asked for."""
    serving.MINIMUM_FREE_BYTES = 2**70
    assert "expected at least" in asked(503)["blobs"]["detail"]
    serving.MINIMUM_FREE_BYTES = 0
    serving.BLOB_ROOT.rmdir()
    assert asked(503)["blobs"]["detail"] == "does not work: FileNotFoundError"
    serving.BLOB_ROOT.write_text("")
    assert asked(503)["blobs"]["detail"] == "does not work: NotADirectoryError"
    serving.BLOB_ROOT = Path("/proc/self")  # a file system that refuses new files, root included
    assert asked(503)["blobs"]["ok"] is False and failing() == {"blobs"}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_one_answer_serves_everybody_for_a_while(
    database: BaseDatabaseWrapper, serving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may ask, so asking often must cost little; alive asks nothing at all."""
    looked: list[str] = []
    monkeypatch.setattr(readiness, "CHECKS", {"database": lambda: looked.append("x") or readiness.Check(True, "")})
    serving.READINESS_KEPT_SECONDS = 60.0
    monkeypatch.setattr(readiness, "_last", [float("-inf"), {}])
    for _ in range(5):
        assert Client(headers={"host": "localhost"}).get("/readyz").status_code == 200
        assert Client(headers={"host": "localhost"}).get("/healthz").content == b"ok\n"
    assert looked == ["x"]
    assert Client(headers={"host": "localhost"}).post("/readyz").status_code == 405
