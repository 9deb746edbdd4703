"""Step 5: every referenced blob is there and hashes to its name, or has a tombstone."""

from __future__ import annotations

from collections.abc import Iterator

from evidence.hashing import Held, hash_held
from evidence.report import TOMBSTONED, StepLog
from runs.actions.retention import kept_for_good
from runs.actions.tombstones import standing_tombstones
from runs.models import BlobRef, Checkpoint, Group, TaskSet, TrialSet, UpdateBatch
from workbench.blobs import BlobStore

CHUNK = 1000


def referenced() -> Iterator[tuple[str, str, int | None]]:
    """(sha256, table and column that names it, size that the row states)."""
    for table, rows, column, size in (
        ("runs_blobref", BlobRef.objects.all(), "sha256", "bytes"),
        ("runs_taskset", TaskSet.objects.all(), "blob_sha256", None),
        ("runs_group", Group.objects.all(), "capture_blob_sha256", "capture_blob_bytes"),
        ("runs_checkpoint", Checkpoint.objects.all(), "sha256", "blob_bytes"),
        ("runs_updatebatch", UpdateBatch.objects.all(), "optimizer_after", None),
        ("runs_updatebatch", UpdateBatch.objects.all(), "old_logprobs_sha256", None),
        ("runs_updatebatch", UpdateBatch.objects.all(), "trace_blob_sha256", None),
        ("runs_trialset", TrialSet.objects.all(), "snapshots_sha256", None),
    ):
        names = (column, size) if size else (column,)
        for found in rows.order_by("pk").values_list(*names).iterator(chunk_size=CHUNK):
            if found[0] is not None:
                yield found[0], f"{table}.{column}", found[1] if size else None


def check_blobs(log: StepLog, store: BlobStore, hashed: dict[str, Held] | None = None) -> None:
    """Hash each blob once, on every core; a missing one differs from a tombstoned one.

    ``hashed`` receives what lies under each name.
    """
    hashed = {} if hashed is None else hashed
    for held in hash_held(store, dict.fromkeys(sha256 for sha256, _where, _stated in referenced())):
        hashed[held.sha256] = held
    tombstoned, faults = judged_tombstones(store)
    log.count(len(tombstoned) + len(faults))
    for sha256, column, expected, got in faults:
        log.problem("runs_tombstone", sha256, column, expected=expected, got=got)
    ledger = set(BlobRef.objects.values_list("sha256", flat=True))
    sizes: dict[str, int | None] = {}
    for sha256, where, stated in referenced():
        table, column = where.split(".")
        if sha256 not in sizes:
            log.count()
            sizes[sha256] = _size(log, hashed.get(sha256), sha256, table, column, sha256 in tombstoned)
            if sha256 not in ledger:
                log.problem("runs_blobref", sha256, "sha256", expected=f"an entry, since {where} names it", got=None)
        size = sizes[sha256]
        if stated is not None and size is not None and stated != size:
            name = {"runs_blobref": "bytes", "runs_group": "capture_blob_bytes", "runs_checkpoint": "blob_bytes"}[table]
            log.problem(table, sha256, name, expected=size, got=stated)


def judged_tombstones(store: BlobStore) -> tuple[set[str], list[tuple[str, str, str, str]]]:
    """Blobs whose removal the retention rule allows, and (blob, column, expected, got) of every other tombstone.

    Only an adapter or optimizer state that nobody keeps may go, with the recipe of the update that wrote it.
    A tombstone of anything else is a fault and excuses nothing.
    """
    standing = standing_tombstones()  # not those whose bytes were produced again
    kept = kept_for_good() if standing else set()
    written: dict[str, set[str]] = {}
    rows = UpdateBatch.objects.values_list("uid", "checkpoint_after__sha256", "optimizer_after")
    for uid, adapter, optimizer in rows.iterator(chunk_size=CHUNK) if standing else ():
        written[str(uid)] = {sha256 for sha256 in (adapter, optimizer) if sha256 is not None}
    allowed, faults = set(), []
    for sha256, row in standing.items():
        recipe = row.recipe if isinstance(row.recipe, dict) else {}
        if recipe.get("replay") != "apply_update" or sha256 not in written.get(str(recipe.get("update_uid")), set()):
            expected = "the adapter or optimizer state of the update that its recipe names"
            faults.append((sha256, "recipe", expected, str(row.recipe)))
        elif sha256 in kept and not store.exists(sha256):
            faults.append((sha256, "sha256", "nothing that retention keeps", "a kept blob"))
        else:
            allowed.add(sha256)
    return allowed, faults


def _size(log: StepLog, held: Held | None, sha256: str, table: str, column: str, is_tombstoned: bool) -> int | None:
    """Size of an intact blob; None where it is absent, damaged or no name at all."""
    if held is None or (held.found is None and held.gone):
        severity = TOMBSTONED if is_tombstoned else "problem"
        log.problem(table, sha256, column, expected="a blob in the store", got=None, severity=severity)
    elif held.found is None:
        log.problem(table, sha256, column, expected="a SHA-256 with readable bytes", got=held.trouble)
    elif not held.intact:
        got = f"blob: got bytes that hash to {held.found}, expected {sha256}"
        log.problem(table, sha256, column, expected=sha256, got=got)
    else:
        return held.size
    return None
