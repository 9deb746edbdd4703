"""A study, and callers of the tracking endpoint by role."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.core.cache import cache

from runs.actions.actors import service_actor
from runs.actions.tokens import issue_token
from runs.models import Membership, Study, User
from tests.mlflow.calls import Mlflow

AT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
SCOPES = ("read", "write", "log")


@pytest.fixture(autouse=True)
def empty_buckets() -> None:
    """Every test begins with its whole rate limit."""
    cache.clear()


def make_study(slug: str = "logs", **more: str) -> Study:
    """A private study."""
    return Study.objects.create(
        uid=uuid.uuid4(), slug=slug, title_en=slug.title(), created_at=AT, created_by=service_actor("tests"), **more
    )


def secret_of(name: str, study: Study | None, role: str, scopes: tuple[str, ...] = SCOPES) -> str:
    """A token of a member."""
    user, _ = User.objects.get_or_create(username=name)
    if study is not None:
        Membership.objects.get_or_create(study=study, user=user, role=role)
    return issue_token(user, name="test", scopes=scopes, expires_at=None, at=AT)[1]


@pytest.fixture
def study(db: None) -> Study:
    return make_study()


@pytest.fixture
def caller(db: None) -> Callable[..., Mlflow]:
    """``caller("mara", study, "researcher")``."""

    def make(
        name: str, study: Study | None = None, role: str = "researcher", scopes: tuple[str, ...] = SCOPES
    ) -> Mlflow:
        return Mlflow(secret_of(name, study, role, scopes))

    return make


@pytest.fixture
def mara(study: Study, caller: Callable[..., Mlflow]) -> Mlflow:
    """A researcher of the study."""
    return caller("mara", study)
