"""The file of a bundle: a zip whose every byte follows from its contents. No database here.

Nothing is compressed and no time or machine is named, so the same contents give the same bytes anywhere, and a
reader proves each byte by writing the contents again.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from workbench.contracts.errors import ContractError

CHUNK = 1024 * 1024
MOST_FILES = 200_000
MOST_PART = 256 * 1024 * 1024  # bytes of a part that is parsed; blobs are only hashed
_PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_EPOCH = (1980, 1, 1, 0, 0, 0)


class BundleError(ContractError):
    """A file that is no bundle, or not the one that its manifest tells of."""


class Part(Protocol):
    """One file of a bundle: its path, size, and bytes from the beginning."""

    @property
    def path(self) -> str:
        """Where it lies."""

    @property
    def size(self) -> int:
        """Bytes."""

    def open(self) -> IO[bytes]:
        """A stream of the bytes."""


def check_path(path: str) -> str:
    """A path within a bundle. Raises ``BundleError`` for one that could lead out of a folder."""
    if not _PATH.fullmatch(path) or ".." in path.split("/") or len(path) > 250:
        raise BundleError(f"path: got {path[:120]!r}, expected letters, digits, dots, dashes and slashes")
    return path


def _info(path: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(check_path(path), _EPOCH)
    info.create_system, info.external_attr = 3, 0o100644 << 16
    info.compress_type, info.file_size = zipfile.ZIP_STORED, size
    return info


def write_zip(file: IO[bytes], parts: Iterable[Part]) -> None:
    """Write parts in their order into a seekable file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for part in parts:
            with part.open() as source, archive.open(_info(part.path, part.size), "w") as sink:
                while data := source.read(CHUNK):
                    sink.write(data)


class BundleReader:
    """The contents of a bundle file, read by path."""

    def __init__(self, archive: zipfile.ZipFile, names: dict[str, int]):
        self._archive, self.sizes = archive, names

    def paths(self, folder: str = "") -> list[str]:
        """Paths below a folder, sorted."""
        return sorted(path for path in self.sizes if path.startswith(folder))

    def open(self, path: str) -> IO[bytes]:
        """A stream. Raises ``BundleError`` where there is no such path."""
        if path not in self.sizes:
            raise BundleError(f"{path}: got nothing, expected it in the bundle")
        return self._archive.open(path)

    def read(self, path: str, most: int = MOST_PART) -> bytes:
        """All bytes of a path. Raises ``BundleError`` where it is absent or larger than ``most``."""
        with self.open(path) as source:
            if self.sizes[path] > most:
                raise BundleError(f"{path}: got {self.sizes[path]} bytes, expected at most {most}")
            return source.read()

    def sha256(self, path: str) -> str:
        """Digest of a path's bytes."""
        with self.open(path) as source:
            return hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]


class _Again:
    """A part as it lies in an open bundle."""

    def __init__(self, reader: BundleReader, path: str):
        self._reader, self.path = reader, path

    @property
    def size(self) -> int:
        return self._reader.sizes[self.path]

    def open(self) -> IO[bytes]:
        return self._reader.open(self.path)


@contextmanager
def open_bundle(file: Path) -> Iterator[BundleReader]:
    """Read a bundle. Raises ``BundleError`` for what is no zip, and for names that are unsafe or given twice."""
    try:
        with zipfile.ZipFile(file) as archive:
            names: dict[str, int] = {}
            entries = archive.infolist()
            if len(entries) > MOST_FILES:
                raise BundleError(f"files: got {len(entries)}, expected at most {MOST_FILES}")
            for entry in entries:
                check_path(entry.filename)
                if entry.filename in names:
                    raise BundleError(f"{entry.filename}: got it twice, expected each path once")
                if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 0x1:
                    raise BundleError(f"{entry.filename}: got a compressed or encrypted entry, expected stored bytes")
                names[entry.filename] = entry.file_size
            yield BundleReader(archive, names)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, UnicodeDecodeError, RuntimeError) as error:
        raise BundleError(f"{file.name}: {error}, expected a bundle that can be read") from error


def written_again(file: Path, reader: BundleReader) -> bool:
    """Whether the file is, byte for byte, what its contents give when they are written again in their order."""
    order = [entry.filename for entry in reader._archive.infolist()]
    with tempfile.TemporaryFile() as again, file.open("rb") as given:
        write_zip(again, (_Again(reader, path) for path in order))
        again.seek(0)
        while True:
            first, second = again.read(CHUNK), given.read(CHUNK)
            if first != second:
                return False
            if not first:
                return True
