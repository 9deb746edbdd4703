"""Fixtures of the verification tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from tests.runs.builders import World, add_group, add_update, build_world
from workbench.blobs import BlobStore


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    """An empty blob store of its own."""
    return BlobStore(tmp_path / "blobs")


@pytest.fixture(scope="module")
def built_world(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Three training groups (one of them broken), two updates (one skipped), two evaluation cells."""
    with django_db_blocker.unblock(), transaction.atomic():
        made = build_world(store=BlobStore(tmp_path_factory.mktemp("world")), groups=2, updates=1)
        add_group(made, ordinal=2, broken=True)
        add_update(made, made.groups[1:3], batch=1, skipped="no_signal")
        for ordinal in (0, 1):
            add_group(made, purpose="evaluate", condition="stress", split="test", ordinal=ordinal)
        yield made
        transaction.set_rollback(True)


@pytest.fixture
def world(built_world: World, db: None, tmp_path: Path) -> Iterator[World]:
    """The built world with a store of its own; everything that a test does to it is rolled back."""
    shutil.copytree(built_world.store.root, tmp_path / "blobs")
    with transaction.atomic():
        yield replace(built_world, store=BlobStore(tmp_path / "blobs"))
        transaction.set_rollback(True)
