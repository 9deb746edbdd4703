"""Reads a stored version of a study's notes: the document's exact bytes, never written again."""

from __future__ import annotations

from typing import Any

from evidence.models import NotesVersion
from runs.errors import DomainError
from runs.models import Study
from runs.storage import blob_store
from workbench.blobs import BlobError
from workbench.contracts.canonical import parse_canonical

KIND = "notes"  # of the blob, in the ledger


def current(study: Study) -> NotesVersion | None:
    """The newest version, or None where nobody has written notes."""
    return NotesVersion.objects.filter(study=study).select_related("actor").order_by("-number").first()


def version(study: Study, number: int) -> NotesVersion | None:
    """One version by its number."""
    return NotesVersion.objects.filter(study=study, number=number).select_related("actor").first()


def document_of(notes: NotesVersion) -> dict[str, Any]:
    """The document of a version. Raises ``DomainError`` where its bytes are gone or are not those of the hash."""
    try:
        found: dict[str, Any] = parse_canonical(blob_store().get(notes.document_sha256))
    except (BlobError, ValueError) as error:
        raise DomainError(
            f"document: got version {notes.number} whose bytes {notes.document_sha256[:12]} cannot be read ({error}), "
            "expected the stored document; restore the blob from a backup, then run verify"
        ) from error
    return found
