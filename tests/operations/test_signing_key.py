"""The private signing key in backups: only where it is asked for, put back as it was, and said where it is missing."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from evidence.actions.signing import anchor_now
from evidence.outward.keys import fingerprint, signing_key
from runs.actions.actors import service_actor
from runs.actions.receipts import append_receipt
from runs.storage import blob_store
from tests.operations.archives import AT, sqlite_only
from tests.runs import databases
from workbench.management.commands.restore import _key_words
from workbench.operations.archive import BackupError
from workbench.operations.backup import make_backup
from workbench.operations.restore import restore_backup
from workbench.paths import Home

pytestmark = sqlite_only


@pytest.fixture
def old(database: BaseDatabaseWrapper, tmp_path: Path, settings: Any) -> Home:
    """A home whose key has signed one anchor."""
    settings.HOME = Home(tmp_path / "old")
    settings.BLOB_ROOT = settings.HOME.blobs
    by = service_actor("command line")
    with transaction.atomic():
        append_receipt("blobs", "test.told", by.uid, {"what": "told"}, actor=by, at=AT)
    anchor_now(at=AT)
    return settings.HOME


def restored(source: Path, home: Home) -> dict[str, Any]:
    """Restore into an empty database of its own."""
    home.root.mkdir(mode=0o700, exist_ok=True)
    with databases.as_default(databases.sqlite_settings(home.database)):
        return restore_backup(source, home)


def test_the_key_comes_along_where_it_is_asked_for(old: Home, tmp_path: Path) -> None:
    name = fingerprint(signing_key(old).public_key())
    told = make_backup(tmp_path / "with.tar.zst", store=blob_store(), at=AT, with_signing_key=True)
    assert told["signing_key_included"] and not told["secret_key_included"]
    home = Home(tmp_path / "new")
    result = restored(tmp_path / "with.tar.zst", home)
    assert (result["signing_key"], result["signed_by"], result["signing_key_included"]) == ("there", name, True)
    assert fingerprint(signing_key(home).public_key()) == name
    assert home.signing_key.stat().st_mode & 0o777 == 0o600


def test_without_it_restore_says_whose_signatures_end(old: Home, tmp_path: Path, settings: Any) -> None:
    """The file is in no member; the home without a key, with the old one and with another are told apart."""
    name = fingerprint(signing_key(old).public_key())
    make_backup(tmp_path / "plain", store=blob_store(), at=AT)
    assert not list((tmp_path / "plain").rglob("signing_key"))
    assert json.loads((tmp_path / "plain" / "manifest.json").read_text())["signing_key_included"] is False
    result = restored(tmp_path / "plain", Home(tmp_path / "none"))
    assert (result["signing_key"], result["signed_by"]) == ("missing", name)
    settings.HOME = Home(tmp_path / "none")
    said = _key_words(result)
    assert name in said and str(settings.HOME.signing_key) in said and "manage.py heads key" in said
    other, copied = Home(tmp_path / "other"), Home(tmp_path / "copied")
    signing_key(other)
    assert restored(tmp_path / "plain", other)["signing_key"] == "another"
    copied.root.mkdir(mode=0o700)
    copied.signing_key.write_bytes(old.signing_key.read_bytes())
    assert restored(tmp_path / "plain", copied)["signing_key"] == "there"


def test_no_key_is_overwritten(old: Home, tmp_path: Path) -> None:
    """Another key in the new home stops the restore before anything moves."""
    make_backup(tmp_path / "with", store=blob_store(), at=AT, with_signing_key=True)
    home = Home(tmp_path / "new")
    signing_key(home)
    before = home.signing_key.read_bytes()
    with pytest.raises(BackupError, match=r"signing_key: got another key than the backup's, expected none"):
        restored(tmp_path / "with", home)
    assert home.signing_key.read_bytes() == before
    assert not home.blobs.exists() or not any(home.blobs.iterdir())


def test_the_command_says_that_the_key_stays_behind(old: Home, tmp_path: Path) -> None:
    out = StringIO()
    call_command("backup", str(tmp_path / "a"), stdout=out)
    assert f"keep a copy of {old.signing_key} elsewhere" in out.getvalue()
    out = StringIO()
    call_command("backup", str(tmp_path / "b"), "--with-signing-key", stdout=out)
    assert "signing key" not in out.getvalue()
