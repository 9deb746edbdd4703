"""Step 6: every capture hashes to what its turn says, and its lengths agree."""

from __future__ import annotations

from collections.abc import Iterator

from evidence.report import StepLog
from runs.models import Group, Turn
from workbench.blobs import BlobError, BlobStore
from workbench.capturefile import read_index, read_trajectory
from workbench.contracts.capture import Capture
from workbench.contracts.errors import ContractError

CHUNK = 50


def check_captures(log: StepLog, store: BlobStore) -> None:
    """Read each group file once: its own index against the rows, then each capture against its turn."""
    for group in Group.objects.order_by("pk").iterator(chunk_size=CHUNK):
        try:
            blob = store.get(group.capture_blob_sha256)
        except (BlobError, ValueError):
            continue  # step 5 names it
        with log.reading("runs_group", group.uid, "capture_blob_sha256"):
            _group(log, group, blob)


def group_turns(group: Group) -> Iterator[Turn]:
    """Turns of a group that have a capture, by trajectory and decision."""
    turns = Turn.objects.filter(trajectory__group=group, capture_sha256__isnull=False).select_related("trajectory")
    return turns.order_by("trajectory__slot", "branch", "decision").iterator(chunk_size=500)


def _group(log: StepLog, group: Group, blob: bytes) -> None:
    turns = {turn.capture_sha256: turn for turn in group_turns(group)}
    refs = read_index(blob)
    for ref in refs:
        turn = turns.get(ref.capture_sha256)
        if turn is None:
            log.problem("runs_turn", f"{group.uid} {ref.trajectory_uid} {ref.decision}", "capture_sha256",
                        expected=ref.capture_sha256, got=None)  # fmt: skip
            continue
        expected = {"offset": ref.offset, "length": ref.length, "decision": ref.decision}
        log.compare("runs_turn", _name(turn), expected, turn)
    known = {ref.capture_sha256 for ref in refs}
    for sha256, turn in turns.items():
        if sha256 not in known:
            log.problem("runs_turn", _name(turn), "capture_sha256", expected="a capture of the group file", got=sha256)
    for uid in sorted({ref.trajectory_uid for ref in refs}):
        chosen = [ref for ref in refs if ref.trajectory_uid == uid]
        try:
            captures = read_trajectory(blob, chosen)
        except ContractError as error:
            log.problem("runs_group", group.uid, "capture_blob_sha256", expected="intact frames", got=str(error))
            continue
        for ref, data in zip(chosen, captures, strict=True):
            if ref.capture_sha256 in turns:
                log.count()
                _capture(log, turns[ref.capture_sha256], Capture.from_bytes(data))


def _name(turn: Turn) -> str:
    return f"{turn.trajectory.uid} {turn.branch} {turn.decision}"


def _capture(log: StepLog, turn: Turn, capture: Capture) -> None:
    expected = {
        "trajectory__seed": capture.seed,
        "branch": capture.branch,
        "decision": capture.decision,
        "parent_decision": capture.parent_decision,
        "policy_version": capture.policy_version,
        "state_before": capture.state_sha256,
        "prompt_tokens": len(capture.prompt_ids),
        "generated_tokens": len(capture.generated_ids),
        "policy_tokens": sum(capture.is_policy_token),
    }
    log.compare("runs_turn", _name(turn), expected, turn)
    if capture.trajectory_uid != str(turn.trajectory.uid):
        log.problem("runs_turn", _name(turn), "trajectory", expected=capture.trajectory_uid, got=turn.trajectory.uid)
