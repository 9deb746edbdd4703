"""The inventory example as a user has it: a copy outside the product, on the import path."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own.example import EXAMPLE, SOURCES


@pytest.fixture(scope="session", autouse=True)
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The copy's folder; its package can be imported for the whole session."""
    folder = tmp_path_factory.mktemp("own") / "inventory"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    sys.path.insert(0, str(folder / SOURCES))
    yield folder
    sys.path.remove(str(folder / SOURCES))
