"""The content-addressed store of this installation, and the ledger of what rows rely on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from workbench.blobs import BlobStore

from .models import BlobRef, Tombstone


@lru_cache(maxsize=8)
def _store(root: Path) -> BlobStore:
    return BlobStore(root)


def blob_store() -> BlobStore:
    """The store under ``settings.BLOB_ROOT``."""
    return _store(Path(settings.BLOB_ROOT))


def reference_blobs(blobs: Mapping[str, str], *, store: BlobStore) -> None:
    """Enter blobs (sha256 -> kind) into the ledger once. Raises ``BlobMissing`` for one not in the store.

    One that retention had removed, and that was produced again, is relied on again from here.
    """
    with transaction.atomic():
        _rely_again(blobs)
        _enter(blobs, store)


def _rely_again(blobs: Mapping[str, str]) -> None:
    from runs.actions.actors import service_actor
    from runs.actions.tombstones import rely_again

    if Tombstone.objects.filter(sha256__in=blobs).exists():
        rely_again(blobs.keys(), actor=service_actor("retention"), at=timezone.now())


def _enter(blobs: Mapping[str, str], store: BlobStore) -> None:
    for sha256, kind in blobs.items():
        size = store.size(sha256)
        if BlobRef.objects.filter(sha256=sha256).exists():
            continue
        try:
            with transaction.atomic():
                BlobRef.objects.create(sha256=sha256, bytes=size, kind=kind)
        except IntegrityError:
            if not BlobRef.objects.filter(sha256=sha256).exists():
                raise  # else another writer entered the same bytes first
