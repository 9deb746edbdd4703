"""Retention of checkpoints: which bytes stay, and a tombstone with the recipe for each that goes.

Kept: the parent, evaluated checkpoints, every n-th, the final one of each run; optimizer state of the
latest checkpoint only. Equal bytes may serve several runs, so a blob goes only if nobody keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from runs.actions.plans import plan_body
from runs.actions.receipts import append_receipt
from runs.actions.tombstones import standing_tombstones, tombstone_blob
from runs.models import Actor, BlobRef, Checkpoint, ConsumedGroup, Execution, RunHead, UpdateBatch
from runs.storage import blob_store
from workbench.blobs import BlobStore

ENDED = ("closed", "cancelled", "stopped")  # nothing of these is needed to go on


@dataclass(frozen=True)
class Removal:
    """Bytes that a plan does not keep. ``what``: adapter or optimizer; ``bytes`` None: not in the ledger."""

    sha256: str
    what: str
    bytes: int | None
    update: UpdateBatch

    @property
    def recipe(self) -> dict[str, Any]:
        """How to make them again."""
        return {"replay": "apply_update", "update_uid": str(self.update.uid), "run_uid": str(self.update.run.uid)}


def kept_for_good() -> set[str]:
    """Adapters and optimizer states that no retention takes: parents, evaluated policies, each run's last."""
    kept: set[str] = set(Checkpoint.objects.filter(kind="parent").values_list("sha256", flat=True))
    kept |= set(Checkpoint.objects.filter(evaluation_items__isnull=False).values_list("sha256", flat=True))
    for head in RunHead.objects.select_related("checkpoint"):
        kept |= {sha for sha in (head.checkpoint and head.checkpoint.sha256, head.optimizer_sha256) if sha}
    return kept


def kept_blobs() -> set[str]:
    """Adapter and optimizer hashes that some execution still needs."""
    kept = kept_for_good()
    open_runs = Execution.objects.exclude(state__in=ENDED).values_list("pk", flat=True)
    kept |= set(Checkpoint.objects.filter(run__execution__in=open_runs).values_list("sha256", flat=True))
    kept |= {
        sha
        for sha in UpdateBatch.objects.filter(run__execution__in=open_runs).values_list("optimizer_after", flat=True)
        if sha
    }
    for execution in Execution.objects.select_related("plan_version"):
        every = plan_body(execution.plan_version)["plan"]["retention"]["checkpoint_every"]
        chosen = Checkpoint.objects.filter(run__execution=execution).values_list("policy_version", "sha256")
        kept |= {sha for version, sha in chosen if version % every == 0}
    return kept


def due(execution: Execution, *, kept: set[str] | None = None) -> list[Removal]:
    """What ``retain`` would remove now of an execution, in order; nothing of one that has not ended."""
    kept = kept_blobs() if kept is None else kept
    gone = set(standing_tombstones())
    updates = UpdateBatch.objects.filter(run__execution=execution, skipped=None)
    found: dict[str, Removal] = {}
    for update in updates.select_related("checkpoint_after", "run").order_by("pk"):
        for sha, what in ((update.checkpoint_after.sha256, "adapter"), (update.optimizer_after, "optimizer")):
            if sha is not None and sha not in kept and sha not in gone and sha not in found:
                found[sha] = Removal(sha, what, None, update)
    sizes = dict(BlobRef.objects.filter(sha256__in=found).values_list("sha256", "bytes"))
    return [Removal(item.sha256, item.what, sizes.get(item.sha256), item.update) for item in found.values()]


def retain(execution: Execution, *, actor: Actor, at: datetime) -> int:
    """Tombstone what the plan does not keep of an ended execution; returns how many blobs went."""
    with transaction.atomic():
        removed = due(execution)
        for item in removed:
            reason = f"retention: {item.what} not kept by the plan"
            tombstone_blob(item.sha256, reason, item.recipe, actor, at=at)
        if removed:
            append_receipt(
                f"execution:{execution.uid}",
                "retention.applied",
                str(execution.uid),
                {"removed": len(removed)},
                actor=actor,
                at=at,
            )
    return len(removed)


@dataclass(frozen=True)
class Removed:
    """One removed blob of the overview. ``missing``: what making it again needs and nobody has; None: nothing."""

    sha256: str
    bytes: int | None
    reason: str
    at: datetime
    recipe: dict[str, Any]
    missing: str | None

    def as_json(self) -> dict[str, Any]:
        """For the command's output."""
        return {
            "sha256": self.sha256, "bytes": self.bytes, "reason": self.reason, "at": self.at.isoformat(),
            "recipe": self.recipe, "can_be_made_again": self.missing is None, "missing": self.missing,
        }  # fmt: skip


def overview(store: BlobStore | None = None) -> Iterator[Removed]:
    """Everything that is removed now, and whether the inputs of its recipe are held or can be made themselves."""
    store = store or blob_store()
    rows = standing_tombstones()
    sizes = dict(BlobRef.objects.filter(sha256__in=rows).values_list("sha256", "bytes"))
    lacking = _lacking(store) if rows else {}
    for sha256, row in sorted(rows.items()):
        uid = row.recipe.get("update_uid") if isinstance(row.recipe, dict) else None
        missing = lacking.get(str(uid), "an update that is recorded")
        yield Removed(sha256, sizes.get(sha256), row.reason, row.at, row.recipe, missing)


def _lacking(store: BlobStore) -> dict[str, str | None]:
    """Update uid -> the first input that replaying it lacks; None: it has all of them.

    An update needs its groups' captures, its old log-probabilities, and the adapter and optimizer state before
    it; a removed one of these will do where the update before it can be replayed.
    """
    captures: dict[int, list[str]] = {}
    for pk, blob in ConsumedGroup.objects.values_list("update_id", "group__capture_blob_sha256"):
        captures.setdefault(pk, []).append(blob)
    found: dict[str, str | None] = {}
    makers: dict[tuple[int, str], str | None] = {}
    for update in UpdateBatch.objects.select_related("checkpoint_before", "checkpoint_after").order_by(
        "run_id", "batch"
    ):
        inputs: list[tuple[str, str | None]] = [("captures", sha) for sha in captures.get(update.pk, [])]
        inputs.append(("old log-probabilities", update.old_logprobs_sha256))
        missing = next((f"{name} {sha}" for name, sha in inputs if sha and not store.exists(sha)), None)
        for name, sha in (("adapter", update.checkpoint_before.sha256), ("optimizer", update.optimizer_before)):
            if missing is None and sha and not store.exists(sha):
                missing = makers.get((update.run_id, sha), f"{name} {sha}")
        found[str(update.uid)] = missing
        for sha in (update.checkpoint_after.sha256, update.optimizer_after):
            if sha and update.skipped is None:
                makers[update.run_id, sha] = missing
    return found
