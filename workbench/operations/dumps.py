"""The database as one file and back: SQLite by its online backup, PostgreSQL by pg_dump and pg_restore.

Both are taken inside an open reading transaction, so that what the ORM reads there is what the file holds.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from django.db import connection

from workbench.logs import redact
from workbench.operations.archive import POSTGRESQL, SQLITE, BackupError
from workbench.settings import child_environment

MEMBERS = {"sqlite": SQLITE, "postgresql": POSTGRESQL}


def dump(target: Path) -> None:
    """Write the database as this transaction sees it to ``target``; writers go on meanwhile."""
    if connection.vendor == "sqlite":
        _dump_sqlite(target)
    else:
        _dump_postgresql(target)


def _dump_sqlite(target: Path) -> None:
    """All pages in one step: the step reads the snapshot that the transaction holds, and no writer restarts it."""
    source: Any = connection.connection
    copy = sqlite3.connect(target)
    try:
        source.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
        problem = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    finally:
        copy.close()
    if problem != "ok":
        raise BackupError(f"database: the copy is damaged ({problem}), expected a sound one; run manage.py verify")


def program(name: str) -> str:
    """A program of PostgreSQL on PATH. Raises ``BackupError`` that says what to install."""
    found = shutil.which(name)
    if found is None:
        raise BackupError(
            f"{name}: got no such program on PATH, expected PostgreSQL's client programs "
            "(Debian: apt-get install postgresql-client), at least as new as the server"
        )
    return found


def _address() -> tuple[str, dict[str, str]]:
    """(conninfo without the password, environment with it): a command line is visible to every user."""
    from psycopg.conninfo import make_conninfo

    given = connection.settings_dict
    parts = {"dbname": given["NAME"], "user": given["USER"], "host": given["HOST"], "port": given["PORT"]}
    options = {name: value for name, value in given["OPTIONS"].items() if isinstance(value, str)}
    secret = options.pop("password", given["PASSWORD"])
    text = make_conninfo(**{**options, **{name: value for name, value in parts.items() if value}})
    return text, child_environment({"PGPASSWORD": secret} if secret else {})


def _run(name: str, *arguments: str) -> None:
    address, environment = _address()
    command = [program(name), *arguments, f"--dbname={address}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackupError(f"{name}: ended with status {done.returncode}: {redact(done.stderr.strip())[-1000:]}")


def _dump_postgresql(target: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_export_snapshot()")
        snapshot = cursor.fetchone()[0]
    options = ("--format=custom", "--compress=0", "--no-owner", "--no-privileges", "--no-password")
    _run("pg_dump", *options, f"--snapshot={snapshot}", f"--file={target}")


def is_empty() -> bool:
    """Whether the configured database holds no table. SQLite: whether its file is not there, or holds none."""
    if connection.vendor == "sqlite" and not Path(connection.settings_dict["NAME"]).exists():
        return True
    return not connection.introspection.table_names()


def load(source: Path) -> None:
    """Fill the configured, empty database from the dump, at once or not at all."""
    if connection.vendor == "sqlite":
        target = Path(connection.settings_dict["NAME"])
        connection.close()
        for leftover in (target, *(target.with_name(target.name + suffix) for suffix in ("-wal", "-shm"))):
            leftover.unlink(missing_ok=True)  # of a database without tables: is_empty() was asked before
        source.rename(target)
        return
    connection.close()
    options = ("--no-owner", "--no-privileges", "--no-password", "--exit-on-error", "--single-transaction")
    _run("pg_restore", *options, str(source))


def unload() -> None:
    """Undo ``load`` where what follows it failed: SQLite's file goes; PostgreSQL's tables are left for a look."""
    if connection.vendor == "sqlite":
        connection.close()
        Path(connection.settings_dict["NAME"]).unlink(missing_ok=True)
