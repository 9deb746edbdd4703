"""Retention: say that a blob's bytes are gone on purpose, and how to make them again."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from runs.models import Actor, Tombstone
from runs.storage import blob_store
from workbench.blobs import BlobStore
from workbench.contracts.canonical import canonical_bytes


def tombstone_blob(
    sha256: str, reason: str, recipe: dict[str, Any], actor: Actor, *, at: datetime, store: BlobStore | None = None
) -> Tombstone:
    """Append the tombstone; the bytes go after the surrounding transaction has committed.

    A rolled-back transaction thus leaves the bytes where they are. A crash between the two leaves
    bytes with a tombstone, which is harmless. Raises ``BlobMissing`` for a blob that is not there.
    """
    store = store or blob_store()
    store.size(sha256)
    canonical_bytes(recipe)
    tombstone = Tombstone.objects.create(sha256=sha256, reason=reason, recipe=recipe, at=at, actor=actor)
    transaction.on_commit(lambda: store.delete(sha256))
    return tombstone
