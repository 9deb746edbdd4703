"""A study with held sources of each kind, and one source of which only the hash is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings

from tests.evidence_figures.desk import Desk, bind_share, make_desk


@pytest.fixture
def desk(db: None, tmp_path: Path, settings: LazySettings) -> Desk:
    """A desk with a store of its own."""
    settings.BLOB_ROOT = tmp_path / "blobs"
    return make_desk()


@pytest.fixture
def bound(desk: Desk) -> Desk:
    """The desk with three figures: ``bind_share``."""
    bind_share(desk)
    return desk
