"""A study with one logged run."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from runs.actions.actors import service_actor
from runs.models import Run, Study, TrackedRun

AT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


def logged_run(study: Study, name: str = "logged") -> Run:
    """A run that a trainer logs into."""
    run = Run.objects.create(uid=uuid.uuid4(), origin=Run.TRACKED, name=name, seed="0", created_at=AT)
    TrackedRun.objects.create(
        run=run, study=study, external_id=run.uid.hex, name=name, started_at=AT, updated_at=AT, framework="trl"
    )
    return run


@pytest.fixture
def study(db: None) -> Study:
    return Study.objects.create(
        uid=uuid.uuid4(), slug="logs", title_en="Logs", created_at=AT, created_by=service_actor("tests")
    )


@pytest.fixture
def run(study: Study) -> Run:
    return logged_run(study)
