"""verify on an empty database: in a module of its own, where no world of other tests is open."""

from __future__ import annotations

from evidence.verify import verify
from workbench.blobs import BlobStore


def test_empty_database_verifies(db: None, store: BlobStore) -> None:
    """Nothing stored, nothing wrong."""
    assert verify(store=store).problems == []
