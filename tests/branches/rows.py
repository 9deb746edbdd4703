"""A branch of a recorded trajectory, as an engine would answer."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from runs.actions.actors import service_actor
from runs.actions.record_branches import record_branch
from runs.models import StateBranch, Trajectory
from runs.storage import blob_store
from workbench.contracts.branches import (
    AFTER,
    BEFORE,
    BranchPoint,
    BranchRecord,
    BranchResult,
    Continuation,
    branch_seed,
    branch_uid,
    continuation_seed,
)
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.wire import record_bytes

REWARDS = {BEFORE: (0.25, 0.75, None), AFTER: (1.0, 0.5, 0.5)}  # None: infrastructure-invalid


def branch_record(
    trajectory: Trajectory, decision: int = 0, ordinal: int = 1, *, is_last: bool = False
) -> BranchRecord:
    """Three continuations from each point; where the turn ended the episode (``is_last``) none after it."""
    turn = trajectory.turns.get(decision=decision)
    seed, group = branch_seed(str(trajectory.uid), decision, ordinal), trajectory.group
    points = []
    for name, state in ((BEFORE, turn.state_before), (AFTER, turn.state_after)):
        ended = name == AFTER and is_last
        state = turn.state_before if ended else state
        snapshot = blob_store().put(f"{name} {trajectory.uid} {decision}".encode())
        items = tuple(
            Continuation(
                index, continuation_seed(seed, name, index), state,
                "valid" if reward is not None else "infrastructure_invalid", None if reward is not None else "broken",
                None if reward is None else "finish", reward, None if reward is None else reward == 1.0, 12,
                ("read a.py", "finish") if index else ("finish",), None if reward is None else "f" * 64,
            )
            for index, reward in enumerate(REWARDS[name])
        )  # fmt: skip
        points.append(
            BranchPoint(
                name, state, state, state, snapshot, trajectory.terminal if ended else None,
                None if ended else "e" * 64, () if ended else items,
            )
        )  # fmt: skip
    return BranchRecord(
        uid=branch_uid(str(trajectory.uid), decision, ordinal), trajectory_uid=str(trajectory.uid),
        group_uid=str(group.uid), group_sha256=group.record_sha256, plan_sha256=group.plan_version.sha256,
        task_uid=str(group.task.uid), decision=decision, ordinal=ordinal, seed=seed, count=3,
        base_model_sha256=group.checkpoint.base_model_sha256, adapter_sha256=group.checkpoint.sha256,
        policy_version=group.checkpoint.policy_version, sampling={}, max_decisions=6, reward=trajectory.reward_total,
        success=trajectory.success, points=tuple(points),
    )  # fmt: skip


def answer(record: BranchRecord) -> BranchResult:
    """As the engine hands it over."""
    data = record_bytes(record)
    return BranchResult(data.decode(), sha256_hex(data), {"seconds": 1.5})


@transaction.atomic
def branch_on(
    trajectory: Trajectory, at: datetime, decision: int = 0, ordinal: int = 1, *, is_last: bool = False
) -> StateBranch:
    """Recorded."""
    record = branch_record(trajectory, decision, ordinal, is_last=is_last)
    return record_branch(answer(record), by=service_actor("worker"), at=at)
