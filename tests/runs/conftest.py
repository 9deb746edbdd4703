"""Fixtures of the database tests."""

from __future__ import annotations

from pathlib import Path

import django
import pytest

django.setup()  # test modules import models when they are collected

from workbench.blobs import BlobStore  # noqa: E402


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    """An empty blob store of its own."""
    return BlobStore(tmp_path / "blobs")
