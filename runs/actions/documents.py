"""Documents: canonical bytes of records, one per kind and subject."""

from __future__ import annotations

import uuid

from runs.errors import DomainError
from runs.models import Document
from workbench.contracts.canonical import parse_canonical, sha256_hex


class AlreadyRecorded(DomainError):
    """A record of this kind and subject is stored; the first one stands."""


def store_document(kind: str, subject_uid: uuid.UUID | str, data: bytes) -> Document:
    """Store canonical bytes. Raises ``CanonicalError`` for others, ``AlreadyRecorded`` for a second time."""
    parse_canonical(data)
    subject = uuid.UUID(str(subject_uid))
    if Document.objects.filter(kind=kind, subject_uid=subject).exists():
        raise AlreadyRecorded(f"document {kind} {subject}: got a second one, expected it once")
    return Document.objects.create(kind=kind, subject_uid=subject, sha256=sha256_hex(data), bytes=data)
