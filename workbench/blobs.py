"""Content-addressed store of bytes on a local file system.

A name is the SHA-256 of the content, so a blob is never overwritten with anything else. ``put``
returns only after the file and its directory are on disk: a row that names a blob may then commit.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_NAME = re.compile(r"[0-9a-f]{64}")


class BlobError(OSError):
    """Base of the store's errors."""


class BlobMissing(BlobError):
    """No blob of that name lies in the store."""


class BlobTooLarge(BlobError):
    """More bytes than the caller allows; nothing of them is kept."""


class BlobCorrupt(BlobError):
    """The bytes under a name hash to something else."""


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class BlobStore:
    """Blobs under ``root``, laid out ab/cd/abcd...; names come from hashes alone."""

    def __init__(self, root: Path):
        self.root = Path(root)

    def path(self, sha256: str) -> Path:
        """Where the blob lies or would lie. Raises ``ValueError`` unless 64 lower-case hex digits."""
        if not isinstance(sha256, str) or not _NAME.fullmatch(sha256):
            raise ValueError(f"sha256: got {sha256!r}, expected 64 lower-case hexadecimal digits")
        return self.root / sha256[:2] / sha256[2:4] / sha256

    def exists(self, sha256: str) -> bool:
        """Whether a file of that name is there; its content is not read."""
        return self.path(sha256).is_file()

    def size(self, sha256: str) -> int:
        """Bytes on disk. Raises ``BlobMissing``."""
        try:
            return self.path(sha256).stat().st_size
        except FileNotFoundError as error:
            raise BlobMissing(f"blob: got no file for {sha256}, expected it in the store") from error

    def put(self, data: bytes) -> str:
        """Store ``data`` durably and return its SHA-256. Idempotent; repairs a torn or changed file."""
        name = hashlib.sha256(data).hexdigest()
        target = self.path(name)
        if self._holds(target, data):
            return name
        self._make_directories(target.parent)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".put-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o444)
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _sync_directory(target.parent)
        return name

    def put_stream(self, chunks: Iterable[bytes], limit: int) -> tuple[str, int]:
        """Store what ``chunks`` give, without holding it in memory; returns its SHA-256 and length.

        Raises ``BlobTooLarge`` once there are more than ``limit`` bytes; then nothing is kept.
        """
        self._make_directories(self.root)
        descriptor, temporary = tempfile.mkstemp(dir=self.root, prefix=".put-")
        found, size = hashlib.sha256(), 0
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in chunks:
                    size += len(chunk)
                    if size > limit:
                        raise BlobTooLarge(f"bytes: got more than {limit}, expected at most {limit}")
                    found.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            target = self.path(found.hexdigest())
            self._make_directories(target.parent)
            os.chmod(temporary, 0o444)
            os.replace(temporary, target)  # the same bytes where there were some: a torn file is repaired
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _sync_directory(target.parent)
        return found.hexdigest(), size

    def _holds(self, target: Path, data: bytes) -> bool:
        try:
            if target.stat().st_size != len(data) or target.read_bytes() != data:
                return False
        except FileNotFoundError:
            return False
        _sync_directory(target.parent)  # the writer of that file may not have reached its own fsync
        return True

    def _make_directories(self, path: Path) -> None:
        missing = []
        while not path.is_dir():
            missing.append(path)
            path = path.parent
        for item in reversed(missing):
            item.mkdir(exist_ok=True)
            _sync_directory(item.parent)

    def get(self, sha256: str) -> bytes:
        """The blob's bytes, hashed again. Raises ``BlobMissing`` or ``BlobCorrupt``."""
        try:
            data = self.path(sha256).read_bytes()
        except FileNotFoundError as error:
            raise BlobMissing(f"blob: got no file for {sha256}, expected it in the store") from error
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise BlobCorrupt(f"blob: got bytes that hash to {found}, expected {sha256}")
        return data

    def open_range(self, sha256: str, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``, not hashed: the caller checks the part by a hash of its own.

        Raises ``BlobMissing``, or ``BlobCorrupt`` where the file is too short.
        """
        if offset < 0 or length < 0:
            raise ValueError(f"range: got offset {offset} and length {length}, expected none below 0")
        try:
            with self.path(sha256).open("rb") as file:
                file.seek(offset)
                data = file.read(length)
        except FileNotFoundError as error:
            raise BlobMissing(f"blob: got no file for {sha256}, expected it in the store") from error
        if len(data) != length:
            raise BlobCorrupt(f"blob {sha256}: got {len(data)} bytes at {offset}, expected {length}")
        return data

    def delete(self, sha256: str) -> bool:
        """Remove the bytes (retention). False where there were none."""
        target = self.path(sha256)
        try:
            target.unlink()
        except FileNotFoundError:
            return False
        _sync_directory(target.parent)
        return True

    def iterate(self) -> Iterator[str]:
        """Every name in the store, in order. Unfinished writes are no blobs and are left out."""
        for first in sorted(self.root.glob("[0-9a-f][0-9a-f]")):
            for second in sorted(first.glob("[0-9a-f][0-9a-f]")):
                for file in sorted(second.iterdir()):
                    if _NAME.fullmatch(file.name) and file.name.startswith(first.name + second.name):
                        yield file.name
