"""What a restore refuses: damaged, foreign and unfitting archives; and a home in use."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.storage import blob_store
from tests.operations.archives import AT, members_of, refused, sqlite_only, write
from tests.runs import databases
from workbench.blobs import BlobStore
from workbench.operations import dumps
from workbench.operations.archive import BackupError
from workbench.operations.backup import make_backup
from workbench.operations.restore import restore_backup
from workbench.paths import Home


@sqlite_only
def test_a_truncated_archive_is_refused_naming_the_member(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    (tmp_path / "half.tar.zst").write_bytes(whole[: len(whole) // 2])
    refused(tmp_path / "half.tar.zst", tmp_path / "a", r"(member blobs/../../[0-9a-f]{64}|member database.sqlite3)")
    members = members_of(archive)
    assert members[-1][0] == "manifest.json"
    refused(write(tmp_path / "b.tar.zst", members[:-1]), tmp_path / "b", "cut short after secret_key")
    refused(write(tmp_path / "c.tar.zst", members[1:]), tmp_path / "c", f"member {members[0][0]}: got none")


@sqlite_only
def test_a_changed_member_is_refused_by_name(archive: Path, tmp_path: Path) -> None:
    """A flipped byte in the container, a changed blob, a changed database, a member too many, twice or unlisted."""
    members = members_of(archive)
    bits = bytearray(archive.read_bytes())
    bits[len(bits) // 3] ^= 1
    (tmp_path / "0.tar.zst").write_bytes(bytes(bits))
    refused(tmp_path / "0.tar.zst", tmp_path / "f0", r"member [\w./]+: damaged|at or after member")
    blob, data = members[0]
    refused(write(tmp_path / "1.tar.zst", [(blob, data + b"!"), *members[1:]]), tmp_path / "f1", f"member {blob}: got")
    changed = [(name, data[:-1] + b"!" if name == "database.sqlite3" else data) for name, data in members]
    refused(write(tmp_path / "2.tar.zst", changed), tmp_path / "f2", "member database.sqlite3: got")
    refused(write(tmp_path / "3.tar.zst", [members[0], *members]), tmp_path / "f3", f"member {blob}: got it twice")
    sha = "0" * 64
    foreign = (f"blobs/00/00/{sha}", b"")
    refused(write(tmp_path / "4.tar.zst", [foreign, *members]), tmp_path / "f4", f"member blobs/00/00/{sha}: got bytes")
    refused(archive, tmp_path / "f5", "manifest: got SHA-256", expected_manifest="0" * 64)


@sqlite_only
@pytest.mark.parametrize(
    "name",
    ["../escaped", "/tmp/escaped", "blobs/../../escaped", "blobs/aa/bb/" + "c" * 64, "blobs/aa/bb/x", "", "a\x01"],
)
def test_names_outside_the_list_are_refused(archive: Path, tmp_path: Path, name: str) -> None:
    """Nothing is written beside the staging folder."""
    info = tarfile.TarInfo(name)
    info.size = 1
    refused(
        write(tmp_path / "x.tar.zst", members_of(archive), info), tmp_path / "home", "got a name that no backup has"
    )
    assert not list(tmp_path.rglob("escaped")) and not Path("/tmp/escaped").exists()


@sqlite_only
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_links_and_devices_are_refused(made: Path, tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("secret_key")
    info.type, info.linkname = kind, "/etc/passwd"
    refused(write(tmp_path / "x.tar.zst", members_of(made), info), tmp_path / "home", "got a link or device")
    folder = tmp_path / "folder"
    make_backup(folder, store=blob_store(), at=AT)
    (folder / "secret_key").symlink_to("/etc/passwd")
    refused(folder, tmp_path / "home2", "secret_key.*got a link or device")


@sqlite_only
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"schema": "workbench.backup/9"}, "got another form"),
        ({"database": "postgresql"}, "member database.pgdump: got none"),
        ({"migrations": ["runs.9999_future"]}, "runs.9999_future, which this version does not know"),
        ({"tables": {"runs_receipt": 1}}, "table runs_receipt: got .* rows after loading, expected 1"),
        ({"tables": {"no_such": 1}}, "table 'no_such': got none"),
        ({"heads_sha256": "0" * 64}, "other stream heads"),
        ({"members": "all"}, "got another form"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(
    archive: Path, tmp_path: Path, change: dict[str, Any], match: str
) -> None:
    """Also where only the loaded database shows it: then the database goes again."""
    members = members_of(archive)
    manifest = json.dumps({**json.loads(members[-1][1]), **change}).encode()
    refused(write(tmp_path / "x.tar.zst", [*members[:-1], ("manifest.json", manifest)]), tmp_path / "home", match)


@sqlite_only
def test_a_home_with_blobs_is_refused(archive: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "used")
    kept = BlobStore(home.blobs).put(b"somebody's")
    with databases.as_default(databases.sqlite_settings(home.database)), pytest.raises(BackupError, match="got blobs"):
        restore_backup(archive, home)
    assert BlobStore(home.blobs).exists(kept) and not home.database.exists()


@pytest.mark.postgres
@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_postgresql_without_its_programs_says_what_to_install(
    database: BaseDatabaseWrapper, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also: a backup of PostgreSQL is not restored into SQLite."""
    refused(made, tmp_path / "sqlite", "got a backup of postgresql, expected sqlite as configured")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackupError, match=r"pg_dump: got no such program on PATH.*postgresql-client"):
        make_backup(tmp_path / "x", store=blob_store(), at=AT)
    with pytest.raises(BackupError, match="pg_restore: got no such program"):
        dumps.load(made)
    assert not (tmp_path / "x").exists()
