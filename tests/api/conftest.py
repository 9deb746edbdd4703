"""One world for the API's tests, and callers with tokens; every test begins with its whole rate limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from django.core.cache import cache
from django.db import transaction
from pytest_django import DjangoDbBlocker

from runs.actions.tokens import issue_token
from runs.models import Membership, Study, User
from tests.api.calls import Api
from tests.pages.state import World
from tests.pages.world import build

AT = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
SCOPES = ("read", "write", "log", "review", "admin")
Caller = Callable[..., Api]


@pytest.fixture(autouse=True)
def empty_buckets() -> None:
    """Every test begins with its whole rate limit."""
    cache.clear()


def make_caller(
    name: str = "",
    study: Study | None = None,
    role: str = Membership.RESEARCHER,
    scopes: tuple[str, ...] = SCOPES,
    superuser: bool = False,
) -> Api:
    """A client of a user with a new token: ``make_caller("mara", study, "researcher")``; without a name: nobody."""
    if not name:
        return Api("")
    user, _ = User.objects.get_or_create(username=name, defaults={"is_superuser": superuser})
    if study is not None:
        Membership.objects.get_or_create(study=study, user=user, role=role)
    return Api(issue_token(user, name="test", scopes=scopes, expires_at=None, at=AT)[1])


@pytest.fixture
def caller(db: None) -> Caller:
    """Make clients."""
    return make_caller


@pytest.fixture(scope="package")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Two batches of e3 and its pair, evaluated; the rows vanish with the outer transaction."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield build(batches=2)
        transaction.set_rollback(True)


@pytest.fixture
def mara(world: World, caller: Caller) -> Api:
    """A researcher of the world's study."""
    return caller("mara", world.study)
