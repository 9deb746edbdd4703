"""A backup of runs in an environment that this machine lacks: restored, told as usual, status 3."""

from __future__ import annotations

import functools
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.backends.base.base import BaseDatabaseWrapper

from evidence.verify import verify
from runs.storage import blob_store
from tests.operations.archives import AT, sqlite_only
from tests.runs import databases
from tests.runs.scripted import Lab
from tests.runs.test_advance import ALONE
from workbench.management.commands import restore
from workbench.operations.backup import make_backup
from workbench.paths import Home

GONE = "gone_package.world:Gone"
SCRIPTED = (1, 2, 3, 4, 5, 9)  # steps that a scripted engine, whose numbers nobody can recompute, passes


def restored(archive: Path, root: Path, settings: Any, *arguments: str) -> tuple[int, list[str]]:
    """Exit status and printed lines of ``restore`` into an empty home."""
    home, out = Home(root), io.StringIO()
    home.root.mkdir()
    settings.HOME, settings.BLOB_ROOT = home, home.blobs
    status = 0
    with databases.as_default(databases.sqlite_settings(home.database)):
        try:
            call_command("restore", str(archive), *arguments, stdout=out, stderr=io.StringIO())
        except SystemExit as ended:
            status = int(str(ended.code))
    return status, out.getvalue().splitlines()


@sqlite_only
def test_an_absent_environment_is_told_beside_the_summary_and_the_key(
    database: BaseDatabaseWrapper, lab: Lab, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Printed: what was restored, the key that is missing, a line for the cause; --json lists it apart from faults."""
    lab.drive(lab.start(**ALONE, environment={"id": GONE}))
    archive = tmp_path / "x.tar.zst"
    make_backup(archive, store=blob_store(), at=AT)
    real = restore.restore_backup
    monkeypatch.setattr(
        restore, "restore_backup",
        lambda *a, **k: {**real(*a, **k), "signing_key": "missing", "signed_by": "5e5e"},
    )  # fmt: skip
    monkeypatch.setattr(restore, "verify", functools.partial(verify, steps=(*SCRIPTED, 10)))
    status, lines = restored(archive, tmp_path / "a", settings)
    assert status == 3 and " members (" in lines[0] and lines[1].startswith("signing key: missing. Heads so far")
    (cause,) = [line for line in lines if line.startswith("not checked here, ")]
    assert GONE in cause and "put its package on PYTHONPATH" in cause
    assert lines[-1].startswith("restored, but NOT verified: some of it could not be checked on this machine")
    status, lines = restored(archive, tmp_path / "b", settings, "--json")
    result = json.loads(lines[-1])
    assert status == 3 and not result["verified"] and result["faults"] == [] and result["unchecked"] == [cause]
    monkeypatch.setattr(restore, "verify", lambda *, store, recompute: verify(store=store, steps=SCRIPTED))
    status, lines = restored(archive, tmp_path / "c", settings, "--no-replay")
    assert status == 0 and lines[-1] == "verified"
    monkeypatch.setattr(restore, "verify", functools.partial(verify, steps=(*SCRIPTED, 7, 10)))
    status, lines = restored(archive, tmp_path / "d", settings)
    assert status == 1 and cause in lines and lines[-1] == "restored, but NOT verified; manage.py verify says more"
