"""Appends an evidence record together with the receipt that tells of it."""

from __future__ import annotations

import uuid
from typing import TypeVar

from django.db import transaction

from evidence.models import EvidenceRecord, stream_of
from runs.actions.receipts import append_receipt, lock_stream
from workbench.contracts.canonical import derive_uid

R = TypeVar("R", bound=EvidenceRecord)


def lock_evidence(study: object) -> None:
    """Hold a study's evidence until the transaction ends: numbers and projections then cannot cross."""
    lock_stream(stream_of(study))


def record_uid(parent: uuid.UUID | str, kind: str, natural_key: str) -> uuid.UUID:
    """Uid of a record: the same content has the same uid in every database."""
    return derive_uid(parent, f"{kind}:{natural_key}")


def append(row: R) -> R:
    """Save a record and its receipt, whose body is ``row.body()``. Call inside ``transaction.atomic()``."""
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError("append: got no transaction, expected transaction.atomic()")
    row.save()
    append_receipt(stream_of(row.study), f"evidence.{row.KIND}", row.uid, row.body(), actor=row.actor, at=row.at)
    return row
