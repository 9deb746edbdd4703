"""The attacked world, built once; what an attack does to it is rolled back and its blobs are put back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import LazySettings, settings
from django.db import transaction
from pytest_django import DjangoDbBlocker

from evidence.attacks.world import AttackWorld, build
from workbench.blobs import BlobStore


@pytest.fixture(scope="module")
def built(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AttackWorld]:
    root, before = tmp_path_factory.mktemp("attacked"), settings.BLOB_ROOT
    with django_db_blocker.unblock(), transaction.atomic():
        settings.BLOB_ROOT = str(root)
        made = build(BlobStore(root))
        settings.BLOB_ROOT = before
        yield made
        transaction.set_rollback(True)


@pytest.fixture
def world(built: AttackWorld, db: None, tmp_path: Path, settings: LazySettings) -> Iterator[AttackWorld]:
    """The world with a store of its own."""
    shutil.copytree(built.store.root, tmp_path / "blobs")
    settings.BLOB_ROOT = str(tmp_path / "blobs")
    with transaction.atomic():
        yield replace(built, store=BlobStore(tmp_path / "blobs"), changed={})
        transaction.set_rollback(True)
