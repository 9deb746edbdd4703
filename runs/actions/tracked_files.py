"""Files that logged runs bring: bytes into the store, a row that names them; the newest of a path counts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from runs.actions.tracking import locked, must_be_active
from runs.errors import DomainError
from runs.models import Run, RunArtifact
from runs.storage import blob_store, reference_blobs

PATH_LENGTH, PART_LENGTH = 1000, 255
KIND = "artifact"  # in the ledger of blobs


@dataclass(frozen=True)
class Entry:
    """A file or folder below a path. ``bytes`` and ``sha256`` None: a folder."""

    path: str
    bytes: int | None
    sha256: str | None

    @property
    def is_folder(self) -> bool:
        """Whether it holds others."""
        return self.sha256 is None


def checked_path(path: str) -> str:
    """A relative path of plain parts with ``/`` between them. Raises ``DomainError`` for any other.

    Paths name rows and never files of this machine; what would lead out is refused all the same,
    since whoever downloads the tree writes it to a disk.
    """
    shown = path[:120].encode("utf-8", "backslashreplace").decode()
    if not path or len(path) > PATH_LENGTH:
        raise DomainError(f"path: got {len(path)} characters, expected 1 to {PATH_LENGTH}")
    if any(unicodedata.category(item) in ("Cc", "Cs", "Zl", "Zp") for item in path) or "\\" in path:
        raise DomainError(f"path: got {shown!r}, expected no control character and no backslash")
    parts = path.split("/")
    if any(part in ("", ".", "..") or len(part) > PART_LENGTH for part in parts) or ":" in parts[0]:
        raise DomainError(f"path: got {shown!r}, expected a relative path without empty parts, . and ..")
    return path


def put_artifact(run: Run, path: str, chunks: Iterable[bytes], *, limit: int, at: datetime) -> RunArtifact:
    """Store a file of at most ``limit`` bytes under a path; the same bytes again store nothing.

    Raises ``DomainError`` for a bad path, for one that is a folder already, and for more bytes.
    """
    checked_path(path)
    sha256, size = blob_store().put_stream(chunks, limit)
    with transaction.atomic():
        head = locked(run)
        must_be_active(head)
        _fits(run, path)
        last = RunArtifact.objects.filter(run=run, path=path).order_by("-id").first()
        if last is not None and last.sha256 == sha256:
            return last
        reference_blobs({sha256: KIND}, store=blob_store())
        row = RunArtifact(run=run, path=path, sha256=sha256, bytes=size, at=at)
        row.save()
    return row


def _fits(run: Run, path: str) -> None:
    """A name is a file or a folder, not both: a download could not write both."""
    rows = RunArtifact.objects.filter(run=run)
    if rows.filter(path__startswith=f"{path}/").exists():
        raise DomainError(f"path: got {path[:120]!r}, which is a folder of this run, expected the path of a file")
    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts))]
    taken = rows.filter(path__in=above).values_list("path", flat=True).first()
    if taken is not None:
        raise DomainError(f"path: got {path[:120]!r} below {taken[:120]!r}, which is a file of this run")


def artifact_of(run: Run, path: str) -> RunArtifact | None:
    """The newest file of a path."""
    return RunArtifact.objects.filter(run=run, path=path).order_by("-id").first()


def entries(run: Run, folder: str = "") -> list[Entry]:
    """Files and folders directly below a folder ("" the top), by path."""
    prefix = f"{folder}/" if folder else ""
    rows = RunArtifact.objects.filter(run=run)
    if prefix:
        rows = rows.filter(path__startswith=prefix)
    found: dict[str, Entry] = {}
    for path, size, sha256 in rows.order_by("id").values_list("path", "bytes", "sha256"):
        if not path.startswith(prefix):
            continue  # SQLite compares letters of a prefix without their case
        name, _, below = path[len(prefix) :].partition("/")
        full = prefix + name
        found[full] = Entry(full, None, None) if below else Entry(full, size, sha256)
    return [found[path] for path in sorted(found)]
