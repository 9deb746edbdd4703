"""Two starts at once on an empty home or database: one migrates, both come up, one user is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.tiny import postgres_rows, rows
from tests.sweeps import sweep
from tests.workbench.processes import environment
from workbench.settings import BASE_DIR

START = """
import sys, time, pathlib, django
django.setup()
from django.conf import settings
from django.db import connection
from workbench.db import missing_triggers
from workbench.home import initialise
here, both = pathlib.Path(sys.argv[1]), int(sys.argv[2])
(here / f"at-the-line-{sys.argv[3]}").touch()
while len(list(here.glob("at-the-line-*"))) < both:
    time.sleep(0.002)
made = initialise(settings.HOME)
print(int(made.migrated), made.password or "-", len(missing_triggers(connection)))
"""
STARTS = 4


def start_together(tmp_path: Path, homes: list[Path], **extra: str) -> list[tuple[int, str, int]]:
    """(migrated, password, missing triggers) of each; all leave the line at the same moment."""
    (tmp_path / "line").mkdir()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", START, str(tmp_path / "line"), str(len(homes)), str(position)],
            env=environment(home, DJANGO_SETTINGS_MODULE="workbench.settings", **extra),
            cwd=BASE_DIR, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for position, home in enumerate(homes)
    ]  # fmt: skip
    found = []
    for process in started:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        migrated, password, missing = out.split()
        found.append((int(migrated), password, int(missing)))
    return found


def check(found: list[tuple[int, str, int]]) -> None:
    """Exactly one migrated and made the user; nobody saw history unprotected."""
    assert sum(migrated for migrated, _, _ in found) == 1
    assert len([password for _, password, _ in found if password != "-"]) == 1
    assert [missing for _, _, missing in found] == [0] * len(found)


@pytest.mark.parametrize("starts", sweep([2, STARTS], 1))
def test_on_sqlite(tmp_path: Path, starts: int) -> None:
    home = tmp_path / "home"
    check(start_together(tmp_path, [home] * starts))
    assert rows(home, "SELECT COUNT(*) FROM runs_user") == [(1,)]
    names = rows(home, "SELECT app, name FROM django_migrations")
    assert len(names) == len(set(names))


@pytest.mark.gate
@pytest.mark.postgres
def test_on_postgresql_from_different_homes(tmp_path: Path, fresh_postgres_url: str) -> None:
    """Homes of their own share no file lock: the database's own lock keeps them apart."""
    homes = [tmp_path / f"home-{position}" for position in range(STARTS)]
    check(start_together(tmp_path, homes, DATABASE_URL=fresh_postgres_url))
    assert postgres_rows(fresh_postgres_url, "SELECT COUNT(*) FROM runs_user") == [(1,)]
    names = postgres_rows(fresh_postgres_url, "SELECT app, name FROM django_migrations")
    assert len(names) == len(set(names))
