"""One closed study with evidence of every kind, built once; and its bundle, which file tests share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from evidence.actions.signing import anchor_now
from evidence.outward.bundle import Written, write_bundle
from runs.models import Execution, Study
from runs.storage import blob_store
from tests.evidence_outward.world import AT, add_evidence
from tests.runs.conftest import sqlite_template
from tests.runs.engine_double import Engine
from tests.runs.scripted import Lab
from tests.runs.test_advance import ALONE
from worker import lifecycle

__all__ = ["sqlite_template"]


@dataclass
class World:
    """The study, its closed execution, its store and where files go."""

    study: Study
    execution: Execution
    blobs: Path
    folder: Path
    made: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="package")
def built(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """The rows vanish with the outer transaction."""
    folder = tmp_path_factory.mktemp("outward")
    lab = Lab()
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock(), transaction.atomic():
        from django.conf import settings

        patch.setattr(settings, "BLOB_ROOT", folder / "blobs")
        patch.setattr(lifecycle, "engine_client", lambda threads: Engine(blob_store(), lab.script))
        patch.setattr("runs.dispatch.app.send_task", lambda name, args, **_: lab.sent.append(args[0]))
        execution = lab.start(**ALONE)
        lab.drive(execution)
        assert execution.state == "closed"
        world = World(execution.plan_version.plan.study, execution, folder / "blobs", folder)
        world.made = add_evidence(world.study, execution)
        anchor_now(at=AT)
        yield world
        transaction.set_rollback(True)


@pytest.fixture
def world(built: World, db: None, settings: Any) -> World:
    """The built world; what a test does to it is rolled back."""
    settings.BLOB_ROOT = built.blobs
    return built


@pytest.fixture(scope="package")
def bundle(built: World, django_db_blocker: DjangoDbBlocker) -> tuple[Path, Written]:
    """The world's bundle without captures, and what writing it said."""
    file = built.folder / "study.bundle"
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        from django.conf import settings

        patch.setattr(settings, "BLOB_ROOT", built.blobs)
        return file, write_bundle(built.study, file)
