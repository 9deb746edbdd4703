"""Session fixtures of the end-to-end and the kill tests: one warm start, one closed tiny home."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.tiny import EDIT_CREDIT, Ran, run_tiny, shared_cache


@pytest.fixture(scope="session")
def cache(request: pytest.FixtureRequest) -> Path:
    """Folder of the warm start, kept between test runs: its content is named by the hash of its recipe."""
    kept = request.config.cache
    assert kept is not None
    return shared_cache(kept.mkdir("warm-start"))


@pytest.fixture(scope="session")
def undisturbed(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The tiny study, run to its closure by ``study run`` alone. Nobody may change its home."""
    return run_tiny(tmp_path_factory.mktemp("undisturbed") / "home", cache)


@pytest.fixture(scope="session")
def tried(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The tiny study of edit credit, run to its closure in the same way. Nobody may change its home."""
    return run_tiny(tmp_path_factory.mktemp("tried") / "home", cache, EDIT_CREDIT)
