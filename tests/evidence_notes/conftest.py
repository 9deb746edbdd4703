"""The study of ``build``, made once for all tests of this folder; each test changes it and takes that back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.cache import cache
from django.db import transaction
from pytest_django import DjangoDbBlocker

from .build import Desk, make_desk


@pytest.fixture(scope="package")
def made(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Desk]:
    """The study without notes; the rows vanish with the outer transaction."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_desk()
        transaction.set_rollback(True)


@pytest.fixture
def desk(made: Desk, db: None) -> Desk:
    """The study without notes, with a clock of its own."""
    cache.clear()
    return replace(made)


@pytest.fixture
def written(desk: Desk) -> Desk:
    """The study with its first notes."""
    desk.save()
    return desk
