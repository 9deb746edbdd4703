"""Fixtures of the operations tests: the databases and the laboratory of the row tests, and a backup of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.models import Tombstone
from runs.storage import blob_store
from tests.operations.archives import AT
from tests.runs.conftest import database as database
from tests.runs.conftest import lab as lab
from tests.runs.conftest import postgres_template as postgres_template
from tests.runs.conftest import sqlite_template as sqlite_template
from tests.runs.scripted import Lab
from tests.runs.test_advance import ALONE
from workbench.operations.backup import make_backup


@pytest.fixture
def made(database: BaseDatabaseWrapper, lab: Lab, tmp_path: Path) -> Path:
    """A backup of one closed execution whose retention removed bytes; database and store are still there."""
    execution = lab.start(**{**ALONE, "retention": {"checkpoint_every": 100}})
    lab.drive(execution)
    assert Tombstone.objects.exists()
    target = tmp_path / "made.tar.zst"
    make_backup(target, store=blob_store(), at=AT, with_secret_key=True)
    return target


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the one backup lies that many tests read."""
    return tmp_path_factory.mktemp("archive") / "made.tar.zst"


@pytest.fixture
def archive(request: pytest.FixtureRequest, database: BaseDatabaseWrapper, kept: Path) -> Path:
    """A backup of SQLite as ``made`` has it, made once: for tests that need neither its database nor its store."""
    if not kept.exists():
        assert database.vendor == "sqlite"
        shutil.copyfile(request.getfixturevalue("made"), kept)
    return kept
