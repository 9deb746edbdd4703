"""Evidence of every kind in the API's world, for the modules that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from runs.models import User
from tests.api.conftest import AT
from tests.evidence_rows import add_evidence
from tests.pages.state import World


@pytest.fixture(scope="module")
def evidence(world: World, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Written once for a module; the rows vanish with its transaction."""
    with django_db_blocker.unblock(), transaction.atomic():
        author, reviewer = (User.objects.create(username=f"evidence-{name}") for name in ("author", "reviewer"))
        add_evidence(world.study, author, reviewer, AT)
        yield
        transaction.set_rollback(True)
