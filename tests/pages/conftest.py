"""One world for all page tests of this folder, built once and rolled back when the folder is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from runs.models import Membership, User
from tests.pages.state import World
from tests.pages.world import build


@pytest.fixture(scope="package")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Two batches of e3 and its pair, evaluated; the rows vanish with the outer transaction."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield build(batches=2)
        transaction.set_rollback(True)


@pytest.fixture
def person(world: World, db: None) -> User:
    """Someone with a login, and with the right to work in the world's study."""
    found = User.objects.create(username="mara")
    Membership.objects.create(study=world.study, user=found, role=Membership.RESEARCHER)
    return found


@pytest.fixture
def signed_in(client: Client, person: User) -> Client:
    """A client that has signed in."""
    client.force_login(person)
    return client
