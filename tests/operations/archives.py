"""Backups as the tests take them apart, change them and have them refused."""

from __future__ import annotations

import io
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.runs import databases
from workbench.operations.archive import BackupError
from workbench.operations.restore import restore_backup
from workbench.paths import Home

AT = datetime(2030, 1, 1, tzinfo=UTC)
sqlite_only = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def members_of(archive: Path) -> list[tuple[str, bytes]]:
    """Name and content of each member, in order."""
    plain = zstandard.ZstdDecompressor().stream_reader(archive.read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        return [(info.name, tar.extractfile(info).read()) for info in tar]  # type: ignore[union-attr]


def write(archive: Path, members: list[tuple[str, bytes]], extra: tarfile.TarInfo | None = None) -> Path:
    """An archive with these members, sound as a container."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        if extra is not None:
            tar.addfile(extra, io.BytesIO(b"x" * extra.size))
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    archive.write_bytes(zstandard.ZstdCompressor().compress(plain.getvalue()))
    return archive


def refused(archive: Path, folder: Path, match: str, **options: Any) -> None:
    """Restoring is refused with this message, and leaves neither a database nor a blob."""
    home = Home(folder)
    home.root.mkdir(exist_ok=True)
    with databases.as_default(databases.sqlite_settings(home.database)), pytest.raises(BackupError, match=match):
        restore_backup(archive, home, **options)
    assert not home.database.exists() and not list(home.root.glob(".restore-*"))
    assert not [path for path in home.root.rglob("*") if path.is_file()]
