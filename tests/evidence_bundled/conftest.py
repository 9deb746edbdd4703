"""Both reference studies imported once, after an import that was interrupted; what a test adds is rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from evidence.actions import bundle_import
from runs.actions.actors import service_actor
from runs.models import Actor

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


@dataclass
class Records:
    """What the imports said. ``cut``: how many figures stood when the interrupted import ended."""

    by: Actor
    said: list[dict[str, Any]]
    cut: int
    blobs: Path


@pytest.fixture(scope="package")
def imported(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Records]:
    """The rows vanish with the outer transaction."""
    from django.conf import settings

    from evidence.models import Figure

    blobs = tmp_path_factory.mktemp("bundled") / "blobs"
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock(), transaction.atomic():
        patch.setattr(settings, "BLOB_ROOT", blobs)
        by = service_actor(bundle_import.ACTOR)
        with pytest.MonkeyPatch.context() as broken, pytest.raises(KeyError):
            broken.setattr(bundle_import, "_claim", lambda *args, **named: dict[str, int]()["no claim"])
            bundle_import.import_bundled(by=by, at=AT)
        cut = Figure.objects.count()
        yield Records(by, bundle_import.import_bundled(by=by, at=AT), cut, blobs)
        transaction.set_rollback(True)


@pytest.fixture
def records(imported: Records, db: None, settings: Any) -> Records:
    """The imported studies."""
    settings.BLOB_ROOT = imported.blobs
    return imported
