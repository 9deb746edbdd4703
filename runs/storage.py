"""The content-addressed store of this installation, and the ledger of what rows rely on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction

from workbench.blobs import BlobStore

from .models import BlobRef


@lru_cache(maxsize=8)
def _store(root: Path) -> BlobStore:
    return BlobStore(root)


def blob_store() -> BlobStore:
    """The store under ``settings.BLOB_ROOT``."""
    return _store(Path(settings.BLOB_ROOT))


def reference_blobs(blobs: Mapping[str, str], *, store: BlobStore) -> None:
    """Enter blobs (sha256 -> kind) into the ledger once. Raises ``BlobMissing`` for one not in the store."""
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
