"""One frozen plan for all tests of this folder; what a test adds is rolled back with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.cache import cache
from django.db import transaction
from pytest_django import DjangoDbBlocker

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
