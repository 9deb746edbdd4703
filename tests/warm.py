"""The embedded base model for tests: the product's own recipe and cache, built once per machine.

Import the fixture where it is needed (``from tests.warm import warm_base_model``) and mark the test
``slow``: a cold cache costs about a minute.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from worker.engine.warmstart import BaseModel, ensure_base_model


def warm_cache() -> Path:
    """``WORKBENCH_CACHE_HOME``, else the user's cache folder."""
    chosen = os.environ.get("WORKBENCH_CACHE_HOME")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "workbench"


@pytest.fixture(scope="session")
def warm_base_model() -> BaseModel:
    """The standard base model of ``evidence_search``."""
    return ensure_base_model("evidence_search", {}, warm_cache())
