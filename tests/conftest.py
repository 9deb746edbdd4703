"""Fixtures shared by all tests: an isolated data directory, and real PostgreSQL and Redis servers."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

# Before Django reads its settings: no test may touch the user's data directory or services.
_home = tempfile.mkdtemp(prefix="workbench-tests-")
os.environ["WORKBENCH_HOME"] = _home
os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
os.environ.setdefault("OMP_NUM_THREADS", "1")
for _name in ("WORKBENCH_BROKER_URL", "REDIS_URL", "DATABASE_URL", "WORKBENCH_SECRET_KEY", "WORKBENCH_DEBUG"):
    os.environ.pop(_name, None)


def pytest_unconfigure(config: object) -> None:
    """Remove the data directory of this test run."""
    shutil.rmtree(Path(_home), ignore_errors=True)
