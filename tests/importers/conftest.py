"""A study to import into."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from runs.actions.actors import service_actor
from runs.models import Actor, Study

AT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def by(db: None) -> Actor:
    return service_actor("tests")


@pytest.fixture
def study(by: Actor) -> Study:
    return Study.objects.create(uid=uuid.uuid4(), slug="foreign", title_en="Foreign logs", created_at=AT, created_by=by)
