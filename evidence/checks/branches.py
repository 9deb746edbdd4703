"""Step 4, same-state branches: rows against documents and receipts, means and proofs computed again."""

from __future__ import annotations

from typing import Any

from evidence.report import StepLog
from runs import projection_branches as projection
from runs.actions.record_branches import BRANCH_RECORDED
from runs.models import BranchContinuation, Document, Receipt, StateBranch
from workbench.contracts.branches import BRANCH, parse_branch
from workbench.contracts.canonical import parse_canonical

CHUNK = 50


def check_branch_rows(log: StepLog) -> None:
    """Every document has its rows and its receipt, every row its document, and the state of the recorded turn."""
    rows = Receipt.objects.filter(kind=BRANCH_RECORDED).values_list("bytes", flat=True)
    told = {parse_canonical(bytes(data))["body"]["branch"] for data in rows.iterator(chunk_size=CHUNK)}
    for document in Document.objects.filter(kind=BRANCH).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_statebranch", document.subject_uid):
            _branch(log, document, str(document.subject_uid) in told)
    known = Document.objects.filter(kind=BRANCH).values("subject_uid")
    for row in StateBranch.objects.exclude(uid__in=known).only("uid").iterator(chunk_size=CHUNK):
        log.problem("runs_statebranch", row.uid, "uid", expected=f"a document of kind {BRANCH}", got=None)


def _branch(log: StepLog, document: Document, is_told: bool) -> None:
    from evidence.checks.rows import match

    record = parse_branch(bytes(document.bytes))  # refuses a proof that does not hold
    row = StateBranch.objects.select_related("trajectory__group").filter(uid=document.subject_uid).first()
    log.count()
    if row is None:
        log.problem("runs_statebranch", document.subject_uid, "uid", expected="one row", got=None)
        return
    log.compare(
        "runs_statebranch", row.uid, {**projection.branch_columns(record), "record_sha256": document.sha256}, row
    )
    turn = row.trajectory.turns.filter(decision=record.decision).first()
    group = Document.objects.filter(kind="group", subject_uid=row.trajectory.group.uid).first()
    pairs: list[tuple[str, Any, Any]] = [
        ("trajectory", record.trajectory_uid, str(row.trajectory.uid)),
        ("group_sha256", record.group_sha256, None if group is None else group.sha256),
        ("reward", record.reward, row.trajectory.reward_total),
        ("state", record.points[0].recorded_state_sha256, None if turn is None else turn.state_before),
    ]
    if record.points[1].terminal is None:
        pairs.append(
            ("state_after", record.points[1].recorded_state_sha256, None if turn is None else turn.state_after)
        )
    for name, got, expected in pairs:
        if got != expected:
            log.problem("runs_statebranch", row.uid, name, expected=expected, got=got)
    if not is_told:
        log.problem("runs_receipt", row.uid, "kind", expected=f"a receipt of kind {BRANCH_RECORDED}", got=None)
    expected_rows = {
        (point.point, item.index): projection.continuation_columns(point.point, item)
        for point in record.points
        for item in point.continuations
    }
    found = BranchContinuation.objects.filter(branch=row).order_by("point", "index").iterator(chunk_size=CHUNK)
    match(log, "runs_branchcontinuation", row.uid, expected_rows, (((item.point, item.index), item) for item in found))
