"""A fresh home becomes usable: migrations, the first user, and the locks that keep two starts apart."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from workbench.paths import Home

ADMIN = "admin"
DATABASE_LOCK = 0x776F726B  # advisory lock of PostgreSQL during migration: any number that only we use


class AlreadyRunning(RuntimeError):
    """Another supervisor holds the home; the message names its pid and address."""


@dataclass(frozen=True)
class Initialised:
    """``migrated``: at least one migration was applied. ``password``: of the user made now, else None."""

    migrated: bool
    password: str | None


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold ``path`` exclusively; waits for another process. The kernel frees it when the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _database_lock() -> Iterator[None]:
    """Keep other machines out while the schema changes; SQLite is covered by the file lock."""
    from django.db import connection

    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [DATABASE_LOCK])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [DATABASE_LOCK])


def initialise(home: Home) -> Initialised:
    """Bring the database up to date and make the first user. Idempotent; safe to call from two processes.

    Raises ``CommandError`` where the database cannot be written: a full disk, or one that is mounted read-only.
    """
    from django.core.management import CommandError, call_command
    from django.db import OperationalError, connection
    from django.db.migrations.executor import MigrationExecutor

    home.prepare()
    try:
        with file_lock(home.initialise_lock), _database_lock():
            executor = MigrationExecutor(connection)
            pending = bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
            if pending:
                call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
            return Initialised(pending, _ensure_admin())
    except OperationalError as error:
        raise CommandError(f"database of {home.root}: {error}. Nothing was started.") from error


def _ensure_admin() -> str | None:
    """Make the user ``admin`` where nobody can administer; returns the password, which is stored nowhere."""
    from django.contrib.auth import get_user_model
    from django.db import transaction
    from django.utils import timezone

    from runs.actions.audit import record_change

    users: Any = get_user_model().objects
    if users.filter(is_superuser=True).exists() or users.filter(username=ADMIN).exists():
        return None
    password = secrets.token_urlsafe(12)
    with transaction.atomic():
        users.create_superuser(username=ADMIN, email="", password=password)
        record_change(
            "user.created", by=None, at=timezone.now(), subject=ADMIN, detail="site admin, at the first start"
        )
    return password


def _lock_soon(file: IO[str]) -> bool:
    """Lock without waiting for a supervisor; a reader that looks holds the lock for an instant only."""
    for attempt in range(10):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.02 * (attempt + 1))
    return False


def acquire_supervisor_lock(home: Home) -> IO[str]:
    """Take the home for this supervisor; keep the returned file open. Raises ``AlreadyRunning``."""
    home.root.mkdir(parents=True, exist_ok=True)
    file = home.supervisor_lock.open("a+")
    if not _lock_soon(file):
        file.seek(0)
        pid = file.read().strip() or "unknown"
        file.close()
        address = (_read_state(home) or {}).get("address")
        where = f" at {address}" if address else ""
        raise AlreadyRunning(
            f"Workbench is already running on {home.root}{where} (process {pid}). Stop it with Ctrl-C there, or give "
            "this one another folder: WORKBENCH_HOME=/path make run PORT=8001"
        )
    home.supervisor_state.unlink(missing_ok=True)  # of one that was killed: it would say "ready" for us
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def write_state(home: Home, state: dict[str, Any]) -> None:
    """Replace the state file at once, so that no reader sees half of it."""
    draft = home.supervisor_state.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(state, sort_keys=True))
    draft.replace(home.supervisor_state)


def _read_state(home: Home) -> dict[str, Any] | None:
    try:
        state = json.loads(home.supervisor_state.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return state if isinstance(state, dict) else None


def running_supervisor(home: Home) -> dict[str, Any] | None:
    """State of the supervisor that holds this home now (pid, address, ready, processes); None where there is none.

    The lock decides, not the file: a killed supervisor leaves its state behind.
    """
    try:
        with home.supervisor_lock.open("r") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _read_state(home) or {}
    except FileNotFoundError:
        pass
    return None
