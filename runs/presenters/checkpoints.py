"""Which adapters are held and which retention removed, with how to make them again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runs.actions.tombstones import standing_tombstones
from runs.models import Checkpoint, Tombstone, UpdateBatch


@dataclass(frozen=True)
class Holding:
    """One checkpoint; ``tombstone`` None while its bytes are held."""

    checkpoint: Checkpoint
    tombstone: Tombstone | None


def tombstones_of(hashes: Iterable[str]) -> dict[str, Tombstone]:
    """Tombstones that stand, by the hash of what was removed. One query, and one more where there are any."""
    return standing_tombstones(set(hashes))


def holdings(checkpoints: Iterable[Checkpoint]) -> list[Holding]:
    """Each checkpoint with its tombstone, in order."""
    rows = list(checkpoints)
    gone = tombstones_of(row.sha256 for row in rows)
    return [Holding(row, gone.get(row.sha256)) for row in rows]


def update_holdings(updates: Iterable[UpdateBatch]) -> list[tuple[UpdateBatch, Tombstone | None]]:
    """Each update with the tombstone of the adapter that it made."""
    rows = list(updates)
    gone = tombstones_of(row.checkpoint_after.sha256 for row in rows)
    return [(row, gone.get(row.checkpoint_after.sha256)) for row in rows]


def adapter_filename(checkpoint: Checkpoint) -> str:
    """Name of a download: run, policy version and the start of the hash."""
    owner = checkpoint.run.name if checkpoint.run is not None else "parent"
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in owner)
    return f"{safe}-v{checkpoint.policy_version}-{checkpoint.sha256[:12]}.safetensors"
