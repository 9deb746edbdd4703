"""One study with its plan for all tests of this folder; people with logins besides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from runs.models import Membership, User
from tests.evidence_claims.build import Desk
from tests.evidence_claims.build import desk as make


@pytest.fixture(scope="package")
def study(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Desk]:
    """The study with its plan; the rows vanish with the outer transaction."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield make()
        transaction.set_rollback(True)


@pytest.fixture
def desk(study: Desk, db: None) -> Desk:
    """The study with a clock of its own."""
    cache.clear()
    return replace(study, people={})


def signed_in(desk: Desk, name: str, role: str = Membership.REVIEWER) -> Client:
    """A browser in which this person of the study is signed in."""
    user = User.objects.get_or_create(username=name)[0]
    Membership.objects.get_or_create(study=desk.study, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client
