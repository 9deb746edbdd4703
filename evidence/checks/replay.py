"""Step 10: what only the environment can compute again, through a callback."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from evidence.checks.captures import group_turns
from evidence.report import PROBLEM, UNAVAILABLE, NotChecked, StepLog
from runs.actions.record_group import GROUP, parse_group
from runs.models import Document, Group
from workbench.blobs import BlobError, BlobStore
from workbench.capturefile import read_trajectory
from workbench.contracts.errors import ContractError
from workbench.contracts.records import CaptureRef, GroupRecord

# (record, capture bytes by hash) -> (uid of the group or of one of its trajectories, column, expected, got) of every
# disagreement; ``NotChecked`` in place of got where it could not be computed again here
Recompute = Callable[[GroupRecord, dict[str, bytes]], Iterable[tuple[str, str, object, object]]]
CHUNK = 20


def check_replay(log: StepLog, store: BlobStore, recompute: Recompute) -> None:
    """Hand every group with its captures to the callback and note what it finds."""
    for document in Document.objects.filter(kind=GROUP).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_group", document.subject_uid):
            group = Group.objects.filter(uid=document.subject_uid).first()
            captures = None if group is None else _captures(group, store)
            if captures is None:
                continue  # steps 4 and 5 name what is missing
            log.count()
            record = parse_group(bytes(document.bytes))
            for uid, column, expected, got in recompute(record, captures):
                table = "runs_group" if uid == record.uid else "runs_trajectory"
                severity = UNAVAILABLE if isinstance(got, NotChecked) else PROBLEM
                log.problem(table, uid, column, expected=expected, got=got, severity=severity)


def _captures(group: Group, store: BlobStore) -> dict[str, bytes] | None:
    refs: dict[str, list[CaptureRef]] = {}
    for turn in group_turns(group):
        if turn.capture_sha256 is None or turn.offset is None or turn.length is None:
            return None  # step 6 names it
        uid = str(turn.trajectory.uid)
        refs.setdefault(uid, []).append(CaptureRef(turn.capture_sha256, uid, turn.decision, turn.offset, turn.length))
    try:
        blob = store.get(group.capture_blob_sha256)
        found = {uid: read_trajectory(blob, chosen) for uid, chosen in refs.items()}
    except (BlobError, ContractError, ValueError):
        return None  # steps 5 and 6 name it
    return {
        ref.capture_sha256: data for uid, chosen in refs.items() for ref, data in zip(chosen, found[uid], strict=True)
    }
