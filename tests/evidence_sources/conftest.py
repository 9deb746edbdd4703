"""A study, a person who may write evidence, a blob store and a root of their own for every test."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from evidence.models import Source, SourceVersion
from runs.actions.actors import person_actor, service_actor
from runs.actions.plans import ensure_study
from runs.models import Actor, Membership, Study, User

AT = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)


def newest(source: Source) -> SourceVersion:
    """The current version of a source, which every stored one has."""
    assert source.current is not None
    return source.current


@pytest.fixture
def root(tmp_path: Path, settings: Any) -> Path:
    """The one allowed root, ``papers``; blobs lie beside it."""
    settings.BLOB_ROOT = tmp_path / "blobs"
    folder = tmp_path / "papers"
    folder.mkdir()
    settings.WATCH_ROOTS = {"papers": folder}
    return folder


@pytest.fixture
def study(db: None, root: Path) -> Study:
    """An empty study."""
    title, summary = {"en": "Edit credit", "zh": "编辑归因"}, {"en": "", "zh": ""}
    return ensure_study("edit-credit", title=title, summary=summary, by=service_actor("tests"), at=AT)


@pytest.fixture
def person(study: Study) -> User:
    """A researcher of the study."""
    found = User.objects.create(username="mara")
    Membership.objects.create(study=study, user=found, role=Membership.RESEARCHER)
    return found


@pytest.fixture
def by(person: User) -> Actor:
    """The researcher, as records name them."""
    return person_actor(person)


@pytest.fixture
def signed_in(client: Client, person: User) -> Client:
    """The researcher's browser."""
    client.force_login(person)
    return client


@pytest.fixture
def acting(by: Actor) -> dict[str, Any]:
    """Keywords of every action."""
    return {"by": by, "at": AT}
