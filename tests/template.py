"""A migrated SQLite file, made once a test run and copied for each database that a test needs."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from django.conf import settings

from tests.runs import databases

FOLDER = "WORKBENCH_TEST_TEMPLATES"  # the first process of a run names it; its workers and servers inherit it


def migrated_file() -> Path:
    """The template; whoever needs it first makes it, the others wait."""
    folder = Path(os.environ.get(FOLDER) or settings.HOME.root / "templates")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "migrated.sqlite3"
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            draft = folder / "draft" / "migrated.sqlite3"
            draft.parent.mkdir(exist_ok=True)
            databases.migrate(databases.sqlite_settings(draft))
            draft.rename(file)
    return file


def copy_to_home() -> None:
    """The default database of this process's home, as ``migrate`` would leave it."""
    file = Path(settings.HOME.database)
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        shutil.copy(migrated_file(), file)
