"""Same-state branches: ask for them as a job, and record what came of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from runs import projection_branches as projection
from runs.actions.documents import store_document
from runs.actions.jobs import ensure_job, finish
from runs.actions.plans import plan_body
from runs.actions.receipts import append_receipt
from runs.errors import DomainError
from runs.models import Actor, BranchContinuation, Checkpoint, Job, StateBranch, Study, Trajectory
from runs.storage import blob_store, reference_blobs
from workbench.blobs import BlobStore
from workbench.contracts.branches import BRANCH, MOST_CONTINUATIONS, BranchResult, parse_branch, valid_counts
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import RecordError
from workbench.contracts.records import VALID

BRANCH_JOB, BRANCH_QUEUE = "branch_state", "rollout"
BRANCH_RECORDED = "branch.recorded"  # kind of receipt
ATTEMPTS = 3
OPEN = ("queued", "leased")


def _key(trajectory: Trajectory, decision: int) -> str:
    return f"branch:{trajectory.uid}:{decision}:"


def jobs_of(trajectory: Trajectory) -> Any:
    """Jobs that branch a trajectory, newest first."""
    return Job.objects.filter(kind=BRANCH_JOB, key__startswith=f"branch:{trajectory.uid}:").order_by("-pk")


def request_branch(
    trajectory: Trajectory,
    decision: int,
    count: int,
    *,
    by: Actor,
    at: datetime,
    checkpoint: Checkpoint | None = None,
) -> Job:
    """Ask a worker for ``count`` continuations from each point of a decision; one under way is returned as it is.

    ``checkpoint`` None: the one that the trajectory was sampled from. Raises ``DomainError`` for a trajectory that is
    not valid or was not sampled here, a decision that it does not have, a number outside its bounds, and a checkpoint
    of another base model.
    """
    turns = trajectory.turns.count()
    if trajectory.status != VALID or trajectory.grade != "A":
        raise DomainError(f"trajectory {trajectory.uid}: it is {trajectory.status}, expected a valid one with captures")
    if not 0 <= decision < turns:
        raise DomainError(f"decision: got {decision}, expected 0 to {turns - 1}")
    if not 1 <= count <= MOST_CONTINUATIONS:
        raise DomainError(f"continuations: got {count}, expected 1 to {MOST_CONTINUATIONS}")
    used = checkpoint or trajectory.group.checkpoint
    if used.base_model_sha256 != trajectory.group.checkpoint.base_model_sha256:
        raise DomainError(f"checkpoint: got one of base model {used.base_model_sha256[:12]}, expected the trajectory's")
    study, key = trajectory.group.plan_version.plan.study, _key(trajectory, decision)
    with transaction.atomic():
        Study.objects.select_for_update().get(pk=study.pk)
        known = Job.objects.filter(kind=BRANCH_JOB, key__startswith=key).order_by("-pk")
        newest = known.first()
        if newest is not None and newest.state in OPEN:
            return newest
        return ensure_job(
            key=f"{key}{known.count() + 1}",
            kind=BRANCH_JOB,
            queue=BRANCH_QUEUE,
            execution=None,
            run=None,
            study=study,
            spec={
                "trajectory": str(trajectory.uid),
                "decision": decision,
                "count": count,
                "checkpoint": str(used.uid),
                "ordinal": StateBranch.objects.filter(trajectory=trajectory, decision=decision).count() + 1,
                "threads": plan_body(trajectory.group.plan_version)["plan"]["runtime"]["threads"],
                "requested_by": str(by.uid),
            },
            max_attempts=ATTEMPTS,
            at=at,
        )


def record_branch(result: BranchResult, *, by: Actor, at: datetime, store: BlobStore | None = None) -> StateBranch:
    """Insert document, rows and receipt. Call inside ``transaction.atomic()``.

    Raises ``RecordError`` where record, hashes and the recorded trajectory disagree.
    """
    data = result.record_json.encode()
    if sha256_hex(data) != result.record_sha256:
        raise RecordError(f"record_sha256: got {result.record_sha256}, expected {sha256_hex(data)}")
    record = parse_branch(data)
    rows = Trajectory.objects.select_related("group__plan_version__plan__study")
    trajectory = rows.filter(uid=record.trajectory_uid).first()
    if trajectory is None:
        raise RecordError(f"trajectory_uid: got {record.trajectory_uid}, expected a recorded trajectory")
    turn = trajectory.turns.filter(decision=record.decision).first()
    before, after = record.points
    # where the turn ended the episode there is no state after it to go on from: the hashes are those before it
    ends = None if turn is None else turn.state_before if after.terminal is not None else turn.state_after
    for name, got, expected in (
        ("group_sha256", record.group_sha256, trajectory.group.record_sha256),
        ("reward", record.reward, trajectory.reward_total),
        ("state before", before.recorded_state_sha256, None if turn is None else turn.state_before),
        ("state after", after.recorded_state_sha256, ends),
    ):
        if got != expected:
            raise RecordError(f"{name}: got {got}, expected {expected}")
    reference_blobs({point.snapshot_sha256: "snapshot" for point in record.points}, store=store or blob_store())
    store_document(BRANCH, record.uid, data)
    made = StateBranch.objects.create(
        **projection.branch_columns(record), trajectory=trajectory, record_sha256=result.record_sha256, created_at=at
    )
    BranchContinuation.objects.bulk_create(
        BranchContinuation(branch=made, **projection.continuation_columns(point.point, item))
        for point in record.points
        for item in point.continuations
    )
    body = {
        "branch": record.uid,
        "record_sha256": result.record_sha256,
        "trajectory": record.trajectory_uid,
        "decision": record.decision,
        "ordinal": record.ordinal,
        "count": record.count,
        "valid": valid_counts(record.points),
        "timing": result.timing,
    }
    study = trajectory.group.plan_version.plan.study
    append_receipt(f"study:{study.uid}", BRANCH_RECORDED, record.uid, body, actor=by, at=at)
    return made


def commit_branch(job: Job, result: BranchResult, *, by: Actor, at: datetime) -> StateBranch:
    """End the job with its record; nothing of a lost lease is kept. Raises ``StaleLease`` then."""
    with transaction.atomic():
        finish(job, "succeeded", at=at)
        made = record_branch(result, by=by, at=at)
        Job.objects.filter(pk=job.pk).update(result={"branch": str(made.uid)})
    return made
