"""Any single changed byte is found by ``verify``, which names its row.

The attacker has the files: triggers are dropped, one byte is changed, the triggers are put back as
they were.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoDbBlocker

from evidence.report import Problem
from evidence.verify import verify
from tests.e2e.tiny import Ran, last_object, rows
from tests.runs.databases import as_default, sqlite_settings
from tests.workbench.processes import manage
from workbench.blobs import BlobStore

pytestmark = pytest.mark.slow

# What: table, its stored bytes' rows as (id, name that verify prints), or blobs by (sha256).
ROWS = {
    "receipt": ("runs_receipt", "SELECT id, stream || '#' || seq FROM runs_receipt ORDER BY id"),
    "anchor": ("runs_anchor", "SELECT id, seq FROM runs_anchor ORDER BY id"),
    "plan": ("runs_planversion", "SELECT id, uid FROM runs_planversion"),
    "failure schedule": ("runs_failureschedule", "SELECT id, uid FROM runs_failureschedule"),
    "group record": ("runs_document", "SELECT id, subject_uid FROM runs_document WHERE kind = 'group' ORDER BY id"),
    "update record": ("runs_document", "SELECT id, subject_uid FROM runs_document WHERE kind = 'update' ORDER BY id"),
    "manifest": (
        "runs_document",
        "SELECT id, subject_uid FROM runs_document WHERE kind NOT IN ('group', 'update') ORDER BY id",
    ),
}
BLOBS = {
    "capture": "SELECT DISTINCT capture_blob_sha256 FROM runs_group ORDER BY 1",
    "adapter": "SELECT sha256 FROM runs_blobref WHERE kind = 'adapter'"
    " AND sha256 NOT IN (SELECT sha256 FROM runs_tombstone) ORDER BY 1",
    "trace": "SELECT trace_blob_sha256 FROM runs_updatebatch WHERE trace_blob_sha256 IS NOT NULL ORDER BY 1",
    "task set": "SELECT blob_sha256 FROM runs_taskset",
}
EXAMPLES = settings(
    max_examples=5, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A place of one byte: ``row`` is how ``verify`` names it, without hyphens."""

    table: str
    row: str
    change: Any  # context manager function(position, mask)


@pytest.fixture(scope="module")
def victim(undisturbed: Ran, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the closed home that may be damaged; every change is taken back."""
    home = tmp_path_factory.mktemp("victim") / "home"
    home.mkdir()
    stored, copy = sqlite3.connect(undisturbed.home / "db.sqlite3"), sqlite3.connect(home / "db.sqlite3")
    with closing(stored), closing(copy):
        stored.backup(copy)
    shutil.copytree(undisturbed.home / "blobs", home / "blobs")
    return home


def flipped(data: bytes, position: int, mask: int) -> bytes:
    """``data`` with one byte changed. ``mask`` is not 0."""
    place = position % len(data)
    return data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


def write_past_triggers(home: Path, table: str, key: int, data: bytes) -> None:
    """Change history as somebody with the file can: the schema is afterwards as it was before."""
    with closing(sqlite3.connect(home / "db.sqlite3", timeout=20)) as database, database:
        triggers = database.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", [table]
        ).fetchall()
        assert len(triggers) == 3, "an append-only table has its triggers"
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            database.execute(f"UPDATE {table} SET bytes = ? WHERE id = ?", [data, key])
        for name, _ in triggers:
            database.execute(f'DROP TRIGGER "{name}"')
        assert database.execute(f"UPDATE {table} SET bytes = ? WHERE id = ?", [data, key]).rowcount == 1
        for _, statement in triggers:
            database.execute(statement)


@contextmanager
def damaged(home: Path, what: str, choice: int, position: int, mask: int) -> Iterator[tuple[str, str]]:
    """One byte changed; yields (table, row) of the report; taken back at the end."""
    if what in BLOBS:
        names = [str(name) for (name,) in rows(home, BLOBS[what])]
        name = names[choice % len(names)]
        file = BlobStore(home / "blobs").path(name)
        original = file.read_bytes()
        file.chmod(0o644)
        try:
            file.write_bytes(flipped(original, position, mask))
            yield "runs_blobref", name
        finally:
            file.write_bytes(original)
        return
    table, statement = ROWS[what]
    found = rows(home, statement)
    key, name = found[choice % len(found)]
    original = bytes(rows(home, f"SELECT bytes FROM {table} WHERE id = {key}")[0][0])
    write_past_triggers(home, table, key, flipped(original, position, mask))
    try:
        yield table, str(name)
    finally:
        write_past_triggers(home, table, key, original)


def plain(text: str) -> str:
    """A uid as SQLite stores it."""
    return text.replace("-", "")


def names_it(problems: list[Problem], table: str, row: str) -> bool:
    """Whether one of the problems is of this row."""
    return any(item.table == table and plain(row) in plain(item.row) for item in problems)


@pytest.mark.parametrize("what", [*ROWS, *BLOBS])
def test_any_changed_byte_is_found_and_its_row_is_named(
    victim: Path, django_db_blocker: DjangoDbBlocker, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Positions, rows and values are drawn; every step runs in this process."""
    tried = []
    monkeypatch.setattr(django_settings, "BLOB_ROOT", victim / "blobs")  # where evidence finds its sources

    @EXAMPLES
    @given(st.integers(0, 2**20), st.integers(0, 2**24), st.integers(1, 255))
    def check(choice: int, position: int, mask: int) -> None:
        with damaged(victim, what, choice, position, mask) as (table, row):
            report = verify(store=BlobStore(victim / "blobs"))
            tried.append(row)
            assert not report.ok, f"{what} {row}: byte {position} ^ {mask} was not found"
            assert names_it(report.faults, table, row), [str(item) for item in report.faults][:10]

    with django_db_blocker.unblock(), as_default(sqlite_settings(victim / "db.sqlite3")):
        check()
        assert len(tried) >= 5
        assert verify(store=BlobStore(victim / "blobs")).ok, "every change was taken back"


@pytest.mark.parametrize("what", ["receipt", "plan", "manifest", "capture", "adapter"])
def test_command_exits_with_1_and_prints_the_row(victim: Path, cache: Path, what: str) -> None:
    with damaged(victim, what, 3, 1234, 1) as (table, row):
        done = manage(victim, "verify", timeout_s=300, WORKBENCH_CACHE_HOME=str(cache))
        as_json = manage(victim, "verify", "--json", "--no-replay", timeout_s=300, WORKBENCH_CACHE_HOME=str(cache))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    lines = [line for line in done.stdout.splitlines() if table in line and plain(row) in plain(line)]
    assert lines and done.stdout.splitlines()[-1] == "NOT verified"
    assert as_json.returncode == 1
    report = last_object(as_json.stdout)
    assert report["ok"] is False
    assert any(item["table"] == table and plain(row) in plain(item["row"]) for item in report["problems"])
