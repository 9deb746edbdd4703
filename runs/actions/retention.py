"""Retention of checkpoints: which bytes stay, and a tombstone with the recipe for each that goes.

Kept: the parent, evaluated checkpoints, every n-th, the final one of each run; optimizer state of the
latest checkpoint only. Equal bytes may serve several runs, so a blob goes only if nobody keeps it.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from runs.actions.plans import plan_body
from runs.actions.receipts import append_receipt
from runs.actions.tombstones import tombstone_blob
from runs.models import Actor, Checkpoint, Execution, RunHead, Tombstone, UpdateBatch


def kept_blobs() -> set[str]:
    """Adapter and optimizer hashes that some execution still needs."""
    kept: set[str] = set(Checkpoint.objects.filter(kind="parent").values_list("sha256", flat=True))
    kept |= set(Checkpoint.objects.filter(evaluation_items__isnull=False).values_list("sha256", flat=True))
    for head in RunHead.objects.select_related("checkpoint"):
        kept |= {sha for sha in (head.checkpoint and head.checkpoint.sha256, head.optimizer_sha256) if sha}
    open_runs = Execution.objects.exclude(state__in=("closed", "cancelled", "stopped")).values_list("pk", flat=True)
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


def retain(execution: Execution, *, actor: Actor, at: datetime) -> int:
    """Tombstone what the plan does not keep of a closed execution; returns how many blobs went."""
    kept = kept_blobs()
    gone = set(Tombstone.objects.values_list("sha256", flat=True))
    updates = UpdateBatch.objects.filter(run__execution=execution, skipped=None).select_related(
        "checkpoint_after", "run"
    )
    removed: dict[str, str] = {}
    with transaction.atomic():
        for update in updates.order_by("pk"):
            for sha, what in ((update.checkpoint_after.sha256, "adapter"), (update.optimizer_after, "optimizer")):
                if sha is None or sha in kept or sha in gone or sha in removed:
                    continue
                recipe = {"replay": "apply_update", "update_uid": str(update.uid), "run_uid": str(update.run.uid)}
                tombstone_blob(sha, f"retention: {what} not kept by the plan", recipe, actor, at=at)
                removed[sha] = what
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
