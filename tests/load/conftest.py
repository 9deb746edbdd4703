"""A hundredth of the large world, rolled back after each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from tests.load.evidence import add_evidence
from tests.load.generate import SMALL, generate
from tests.load.points import add_logged


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock(), transaction.atomic():
        generate(SMALL)
        add_logged(30)
        add_evidence(60, 60)
        yield
        transaction.set_rollback(True)
