"""Retention: say that a blob's bytes are gone on purpose, how to make them again, and that they were.

A tombstone is a row for ever. Where later work produces the same bytes, a receipt on the stream
``blobs`` says so, and the tombstone no longer stands: the bytes are relied on like any others, and
absent ones are a fault. Removing them once more is another receipt.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from runs.actions.receipts import append_receipt, lock_stream
from runs.models import Actor, Receipt, Tombstone
from runs.storage import blob_store
from workbench.blobs import BlobStore
from workbench.contracts.canonical import canonical_bytes, derive_uid

STREAM = "blobs"
PRODUCED_AGAIN, REMOVED_AGAIN = "blob.produced_again", "blob.removed_again"


def blob_uid(sha256: str) -> UUID:
    """Subject of the receipts about a blob."""
    return derive_uid(None, f"blob:{sha256}")


def produced_again(hashes: Collection[str] | None = None) -> set[str]:
    """Blobs whose newest receipt on the stream says that they were produced again after a removal."""
    rows = Receipt.objects.filter(stream=STREAM, kind__in=(PRODUCED_AGAIN, REMOVED_AGAIN)).order_by("seq")
    if hashes is not None:
        rows = rows.filter(subject_uid__in=[blob_uid(sha256) for sha256 in hashes])
    newest = {json.loads(bytes(data))["body"]["sha256"]: kind for kind, data in rows.values_list("kind", "bytes")}
    return {sha256 for sha256, kind in newest.items() if kind == PRODUCED_AGAIN}


def standing_tombstones(hashes: Collection[str] | None = None) -> dict[str, Tombstone]:
    """Tombstones that hold now, by hash: those of all blobs, or of some."""
    return {row.sha256: row for row in standing_rows(hashes)}


def standing_rows(hashes: Collection[str] | None = None) -> QuerySet[Tombstone]:
    """The same as rows, for a condition of a query. One query, and one more where there are any."""
    rows = Tombstone.objects.all() if hashes is None else Tombstone.objects.filter(sha256__in=set(hashes))
    buried = None if hashes is None else list(rows.values_list("sha256", flat=True))
    back = set() if buried == [] else produced_again(buried)
    return rows.exclude(sha256__in=back) if back else rows


def tombstone_blob(
    sha256: str, reason: str, recipe: dict[str, Any], actor: Actor, *, at: datetime, store: BlobStore | None = None
) -> Tombstone:
    """Append the tombstone; the bytes go after the surrounding transaction has committed.

    A rolled-back transaction thus leaves the bytes where they are. A crash between the two leaves
    bytes with a tombstone, which is harmless: ``finish_removals`` takes them. Raises ``BlobMissing`` for a
    blob that is not there, ``IntegrityError`` for one whose tombstone stands.
    """
    store = store or blob_store()
    store.size(sha256)
    canonical_bytes(recipe)
    with transaction.atomic():
        tombstone = Tombstone.objects.filter(sha256=sha256).first()
        if tombstone is not None and sha256 in produced_again([sha256]):
            body = {"sha256": sha256, "reason": reason, "recipe": recipe}
            append_receipt(STREAM, REMOVED_AGAIN, blob_uid(sha256), body, actor=actor, at=at)
        else:
            tombstone = Tombstone.objects.create(sha256=sha256, reason=reason, recipe=recipe, at=at, actor=actor)
    transaction.on_commit(lambda: remove_bytes(sha256, store))
    return tombstone


def remove_bytes(sha256: str, store: BlobStore) -> bool:
    """Delete the bytes unless they were produced again meanwhile; whether any went.

    The stream's lock keeps out whoever is about to rely on them.
    """
    with transaction.atomic():
        lock_stream(STREAM)
        return sha256 in standing_tombstones([sha256]) and store.delete(sha256)


def finish_removals(store: BlobStore, *, dry_run: bool = False) -> list[str]:
    """Delete bytes that a standing tombstone has and a crash left behind; their hashes."""
    left = [sha256 for sha256 in sorted(standing_tombstones()) if store.exists(sha256)]
    return left if dry_run else [sha256 for sha256 in left if remove_bytes(sha256, store)]


def rely_again(hashes: Collection[str], *, actor: Actor, at: datetime) -> list[str]:
    """Say of those whose tombstone stands that their bytes were produced again; their hashes.

    Call in the transaction that relies on the bytes, before it looks whether they are there.
    """
    lock_stream(STREAM)
    back = sorted(standing_tombstones(hashes))
    for sha256 in back:
        append_receipt(STREAM, PRODUCED_AGAIN, blob_uid(sha256), {"sha256": sha256}, actor=actor, at=at)
    return back
