"""Databases of a test's own, SQLite and PostgreSQL, put in the place of the default connection.

A migrated template is made once a test run and copied for each test, so that a test may commit,
use threads and damage what it likes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.servers import Postgres
from workbench.paths import Home
from workbench.settings import postgres_database, sqlite_database

TEMPLATE = "template_migrated"


def sqlite_settings(file: Path) -> dict[str, Any]:
    """The product's own SQLite settings on another file, without waiting for the disk."""
    own = sqlite_database(Home(file.parent))
    pragmas = own["OPTIONS"]["init_command"].replace("synchronous=FULL", "synchronous=OFF")
    return {**own, "NAME": str(file), "OPTIONS": {**own["OPTIONS"], "init_command": pragmas}}


@contextmanager
def as_default(settings: dict[str, Any]) -> Iterator[BaseDatabaseWrapper]:
    """Make ``settings`` the default database of this process, new threads included."""
    old_settings, old_connection = connections.settings["default"], connections["default"]
    complete = connections.configure_settings({"default": settings})["default"]
    connections.settings["default"] = complete
    connections["default"] = connections.create_connection("default")
    try:
        yield connections["default"]
    finally:
        connections["default"].close()
        connections.settings["default"] = old_settings
        connections["default"] = old_connection


def migrate(settings: dict[str, Any]) -> None:
    """Bring an empty database to the newest schema."""
    with as_default(settings):
        call_command("migrate", verbosity=0, skip_checks=True)


@contextmanager
def copied_sqlite(template: Path, folder: Path) -> Iterator[BaseDatabaseWrapper]:
    """A copy of the migrated template file."""
    file = folder / "own.sqlite3"
    shutil.copy(template, file)
    with as_default(sqlite_settings(file)) as connection:
        yield connection


@contextmanager
def copied_postgres(server: Postgres) -> Iterator[BaseDatabaseWrapper]:
    """A database made from the migrated template."""
    name = f"own_{os.urandom(4).hex()}"
    server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"')
    try:
        with as_default(postgres_database(server.url(name))) as connection:
            yield connection
    finally:
        server.drop(name)
