"""The container of a backup: members with names from a closed list, in one ``.tar.zst`` or a plain folder.

Writing hashes each member while it is copied. Reading accepts no name outside the list, no link, no
device, no member twice, so that nothing can be written beside the staging folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import zstandard

MANIFEST = "manifest.json"
SECRET_KEY = "secret_key"
SIGNING_KEY = "signing_key"
SQLITE, POSTGRESQL = "database.sqlite3", "database.pgdump"
SUFFIX = ".tar.zst"
CHUNK = 1024 * 1024
LEVEL = 1  # most blobs are compressed already
_BLOB = re.compile(r"blobs/([0-9a-f]{2})/([0-9a-f]{2})/(\1\2[0-9a-f]{60})")


class BackupError(Exception):
    """A backup that cannot be made or restored; the message names the member or file and what was expected."""


@dataclass(frozen=True)
class Member:
    """What was copied: name, bytes, SHA-256."""

    name: str
    bytes: int
    sha256: str

    def as_json(self) -> dict[str, object]:
        """Entry of the manifest."""
        return {"name": self.name, "bytes": self.bytes, "sha256": self.sha256}


def blob_name(sha256: str) -> str:
    """Name of the member that holds a blob."""
    return f"blobs/{sha256[:2]}/{sha256[2:4]}/{sha256}"


def blob_of(name: str) -> str | None:
    """The blob that a member of this name must hold; None for other members."""
    match = _BLOB.fullmatch(name)
    return match[3] if match else None


def check_name(name: str) -> str:
    """The name. Raises ``BackupError`` for one that no backup has, such as ``../etc/passwd``."""
    if name in (MANIFEST, SECRET_KEY, SIGNING_KEY, SQLITE, POSTGRESQL) or blob_of(name) is not None:
        return name
    raise BackupError(f"member {name[:200]!r}: got a name that no backup has; nothing was written")


class Sink(Protocol):
    """Where members go."""

    def add(self, name: str, size: int, source: IO[bytes]) -> Member:
        """Copy ``size`` bytes. Raises ``BackupError`` where the source holds another number."""

    def close(self) -> None:
        """End the container and wait until it is on disk."""


class _Hashing:
    """A reader that hashes what passes through it."""

    def __init__(self, source: IO[bytes]) -> None:
        self.source, self.hash, self.count = source, hashlib.sha256(), 0

    def read(self, size: int = -1) -> bytes:
        data = self.source.read(size)
        self.hash.update(data)
        self.count += len(data)
        return data


class TarSink:
    """One compressed file with checksums of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._zstd = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).stream_writer(file, closefd=False)
        self._tar = tarfile.TarFile.open(  # closed by close()
            fileobj=self._zstd, mode="w|", format=tarfile.PAX_FORMAT
        )

    def add(self, name: str, size: int, source: IO[bytes]) -> Member:
        """Append one member."""
        info = tarfile.TarInfo(check_name(name))
        info.size, info.mode, info.mtime = size, 0o600, 0
        reader = _Hashing(source)
        try:
            self._tar.addfile(info, reader)  # it calls nothing but read
        except OSError as error:
            raise BackupError(f"member {name}: got {reader.count} bytes, expected {size} ({error})") from error
        return Member(name, size, reader.hash.hexdigest())

    def close(self) -> None:
        """Write the end marks and sync."""
        self._tar.close()
        self._zstd.close()
        self._file.flush()
        os.fsync(self._file.fileno())


class FolderSink:
    """The same members as files below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, name: str, size: int, source: IO[bytes]) -> Member:
        """Write one file."""
        return write_member(self.root, name, size, source)

    def close(self) -> None:
        """Sync the folders; the files are synced already."""
        for folder, _, _ in os.walk(self.root):
            _sync(Path(folder))


def write_member(root: Path, name: str, size: int, source: IO[bytes]) -> Member:
    """Copy one member below ``root``, new and synced. Raises ``BackupError`` for a short or a doubled one."""
    target = root / check_name(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    reader = _Hashing(source)
    try:
        file = target.open("xb")
    except FileExistsError as error:
        raise BackupError(f"member {name}: got it twice, expected it once") from error
    with file:
        while reader.count < size and (data := reader.read(min(CHUNK, size - reader.count))):
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if reader.count != size:
        raise BackupError(f"member {name}: got {reader.count} bytes, expected {size}")
    target.chmod(0o444 if blob_of(name) else 0o600)
    return Member(name, size, reader.hash.hexdigest())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def new_container(target: Path) -> Iterator[Sink]:
    """A container that appears under ``target`` complete or not at all. Raises ``BackupError`` where it exists."""
    target = target.absolute()
    if target.exists() or target.is_symlink():
        raise BackupError(f"{target}: got an existing file or folder, expected a new name; nothing is overwritten")
    if not target.parent.is_dir():
        raise BackupError(f"{target.parent}: got no folder, expected one to write the backup into")
    draft = target.parent / f".{target.name}.partial-{os.getpid()}"
    try:
        if target.name.endswith(SUFFIX):
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                tar = TarSink(file)
                yield tar
                tar.close()
        else:
            draft.mkdir(mode=0o700)
            folder = FolderSink(draft)
            yield folder
            folder.close()
        draft.rename(target)
        _sync(target.parent)
    finally:
        if draft.is_dir():
            shutil.rmtree(draft)
        draft.unlink(missing_ok=True)


def read_members(source: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """(name, bytes, reader) of each member. Raises ``BackupError`` naming the member where the container is damaged."""
    if source.is_dir():
        yield from _folder_members(source)
    elif source.is_file():
        yield from _tar_members(source)
    else:
        raise BackupError(f"{source}: got no file or folder, expected a backup")


def _folder_members(source: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise BackupError(f"member {name[:200]!r}: got a link or device, expected a file")
        if path.is_file():
            with path.open("rb") as file:
                yield check_name(name), path.stat().st_size, file


class _Guarded(io.RawIOBase):
    """A member's reader whose errors name it."""

    def __init__(self, name: str, source: IO[bytes]) -> None:
        self.name_of_member, self.source = name, source

    def read(self, size: int = -1) -> bytes:
        """As the source; damage is a ``BackupError``."""
        try:
            return self.source.read(size)
        except (tarfile.TarError, zstandard.ZstdError, EOFError, OSError) as error:
            raise BackupError(f"member {self.name_of_member}: damaged or cut short ({error})") from error


def _tar_members(source: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    last = "the start"
    with source.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as plain:
        try:
            with tarfile.open(fileobj=plain, mode="r|") as tar:
                for info in tar:
                    last = check_name(info.name)
                    if not info.isreg():
                        raise BackupError(f"member {last}: got a link or device, expected a file")
                    content = tar.extractfile(info)
                    assert content is not None
                    yield last, info.size, _Guarded(last, content)  # type: ignore[misc]
        except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
            raise BackupError(f"{source}: damaged or cut short at or after member {last} ({error})") from error
