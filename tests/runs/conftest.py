"""Fixtures of the database tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from pytest_django import DjangoDbBlocker

from tests import template
from tests.runs import databases
from tests.runs.scripted import lab as lab
from tests.servers import Postgres
from workbench.blobs import BlobStore
from workbench.settings import postgres_database


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    """An empty blob store of its own."""
    return BlobStore(tmp_path / "blobs")


@pytest.fixture(scope="session")
def sqlite_template(django_db_blocker: DjangoDbBlocker) -> Path:
    """A migrated SQLite file; nobody writes to it."""
    with django_db_blocker.unblock():
        return template.migrated_file()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: Postgres, django_db_blocker: DjangoDbBlocker) -> Postgres:
    """The server, with a migrated template database on it."""
    if not postgres_server.has(databases.TEMPLATE):  # several folders use this fixture, each with one of its own
        with django_db_blocker.unblock():
            databases.migrate(postgres_database(postgres_server.create(databases.TEMPLATE)))
    return postgres_server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> Iterator[BaseDatabaseWrapper]:
    """An empty migrated database of this test's own as the default connection; commits are real."""
    if request.param == "sqlite":
        own = databases.copied_sqlite(request.getfixturevalue("sqlite_template"), tmp_path)
    else:
        own = databases.copied_postgres(request.getfixturevalue("postgres_template"))
    with django_db_blocker.unblock(), own as connection:
        yield connection
