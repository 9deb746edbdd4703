"""Same-state branching: continuations sampled from one recorded state, with the proof that it is that state.

Two points of one decision of a recorded trajectory: ``before`` it, and ``after`` it with its Observation. The mean
reward of continuations estimates V(s) at the first and Q(s, a) of the recorded turn at the second; their difference
estimates what the turn is worth to this policy from there. It is another quantity than D of an edit, which removes an
edit from a finished tree: the two are shown beside each other and neither stands for the other.

The proof: the recorded state hash, the hash after the recorded actions are replayed, the hash of the state restored
from its snapshot, and the hash that every continuation started from are one and the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .canonical import derive_uid
from .errors import RecordError
from .jobs import EnvironmentRef, GroupSpec, PolicyRef
from .records import INFRASTRUCTURE_INVALID, VALID, CaptureRef
from .seeds import derive_seed
from .wire import parse_record

BRANCH = "branch"  # kind of the document
BEFORE, AFTER = "before", "after"
POINTS = (BEFORE, AFTER)
MOST_CONTINUATIONS = 16


@dataclass(frozen=True)
class Continuation:
    """One episode from a point to its end. ``reward``, ``success`` None where it is infrastructure-invalid.

    ``actions``: action text of each turn that it generated.
    """

    index: int
    seed: str
    start_state_sha256: str
    status: str
    invalid_reason: str | None
    terminal: str | None
    reward: float | None
    success: bool | None
    policy_tokens: int
    actions: tuple[str, ...]
    final_state_sha256: str | None


@dataclass(frozen=True)
class BranchPoint:
    """One state with its proof. ``terminal``: the recorded turn ended the episode, so there is nothing to continue; the
    hashes are then those of the state before it.

    ``prompt_sha256``: of the int32-LE ids that every continuation begins with, None where there is none.
    """

    point: str
    recorded_state_sha256: str
    replayed_state_sha256: str
    restored_state_sha256: str
    snapshot_sha256: str
    terminal: str | None
    prompt_sha256: str | None
    continuations: tuple[Continuation, ...]


@dataclass(frozen=True)
class BranchRecord:
    """The branches of one decision. ``reward``, ``success``: of the recorded trajectory."""

    uid: str
    trajectory_uid: str
    group_uid: str
    group_sha256: str
    plan_sha256: str
    task_uid: str
    decision: int
    ordinal: int
    seed: str
    count: int
    base_model_sha256: str
    adapter_sha256: str | None
    policy_version: int
    sampling: dict[str, Any]
    max_decisions: int
    reward: float | None
    success: bool | None
    points: tuple[BranchPoint, ...]


@dataclass(frozen=True)
class BranchSpec:
    """``branch_state``: ``count`` continuations from each point of a decision, under one policy."""

    uid: str
    trajectory_uid: str
    decision: int
    ordinal: int
    count: int
    seed: str
    record_json: str  # canonical text of the GroupRecord
    record_sha256: str
    capture_blob_sha256: str
    capture: CaptureRef  # of the decision
    group: GroupSpec
    policy: PolicyRef
    environment: EnvironmentRef
    reward: dict[str, Any]
    sampling: dict[str, Any]
    max_decisions: int
    runtime: str


@dataclass(frozen=True)
class BranchResult:
    """Answer to ``BranchSpec``."""

    record_json: str
    record_sha256: str
    timing: dict[str, float]


def branch_uid(trajectory_uid: str, decision: int, ordinal: int) -> str:
    """Uid of a record: the ``ordinal``-th of a decision, from 1."""
    return str(derive_uid(trajectory_uid, f"branch:{decision}:{ordinal}"))


def branch_seed(trajectory_uid: str, decision: int, ordinal: int) -> str:
    """Seed of a record's continuations."""
    return derive_seed("branch", trajectory_uid, decision, ordinal)


def mean_reward(point: BranchPoint, reward: float | None) -> tuple[float | None, int]:
    """(mean over valid continuations, how many). A terminal point has the trajectory's own reward, once."""
    if point.terminal is not None:
        return reward, 0 if reward is None else 1
    known = [item.reward for item in point.continuations if item.reward is not None]
    return (math.fsum(known) / len(known), len(known)) if known else (None, 0)


def standard_error(point: BranchPoint) -> float | None:
    """Of the mean; None of fewer than two valid continuations."""
    known = [item.reward for item in point.continuations if item.reward is not None]
    if len(known) < 2:
        return None
    mean = math.fsum(known) / len(known)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1) / len(known))


def turn_value(record: BranchRecord) -> float | None:
    """Mean after the turn - mean before it; None where one of them is not known."""
    means = {point.point: mean_reward(point, record.reward)[0] for point in record.points}
    before, after = means.get(BEFORE), means.get(AFTER)
    return None if before is None or after is None else after - before


def signs_agree(value: float | None, difference: float | None) -> bool | None:
    """Whether two quantities have one sign, zero being a sign of its own; None where one is not known."""
    if value is None or difference is None:
        return None
    return (value > 0) - (value < 0) == (difference > 0) - (difference < 0)


def same_state(point: BranchPoint) -> bool:
    """Whether every hash of the proof is one."""
    found = {point.recorded_state_sha256, point.replayed_state_sha256, point.restored_state_sha256}
    return found == {point.recorded_state_sha256} and all(
        item.start_state_sha256 == point.recorded_state_sha256 for item in point.continuations
    )


def parse_branch(data: bytes) -> BranchRecord:
    """The record of canonical bytes, its inner relations checked. Raises ``RecordError``."""
    record = parse_record(BranchRecord, data)
    if record.uid != branch_uid(record.trajectory_uid, record.decision, record.ordinal):
        raise RecordError(f"uid: got {record.uid}, expected that of trajectory, decision and ordinal")
    if tuple(point.point for point in record.points) != POINTS:
        raise RecordError(f"points: got {[point.point for point in record.points]}, expected {POINTS}")
    for point in record.points:
        _check_point(record, point)
    return record


def _check_point(record: BranchRecord, point: BranchPoint) -> None:
    if not same_state(point):
        raise RecordError(f"{point.point}: got different state hashes, expected one: the proof does not hold")
    expected = 0 if point.terminal is not None else record.count
    if [item.index for item in point.continuations] != list(range(expected)):
        raise RecordError(f"{point.point}: got {len(point.continuations)} continuations, expected {expected}")
    for item in point.continuations:
        seed = continuation_seed(record.seed, point.point, item.index)
        if item.seed != seed or item.status not in (VALID, INFRASTRUCTURE_INVALID):
            raise RecordError(f"{point.point} {item.index}: got seed {item.seed}, status {item.status}")
        known = (item.reward is not None, item.success is not None, item.terminal is not None)
        if known != (item.status == VALID,) * 3:
            raise RecordError(f"{point.point} {item.index}: got {known} with {item.status}, expected all or none")


def continuation_seed(seed: str, point: str, index: int) -> str:
    """Seed of one continuation's noise."""
    return derive_seed("branch-continuation", seed, point, index)


def point_of(record: BranchRecord, name: str) -> BranchPoint:
    """The point of that name."""
    return next(point for point in record.points if point.point == name)


def valid_counts(points: Sequence[BranchPoint]) -> dict[str, int]:
    """Valid continuations by point."""
    return {point.point: sum(item.status == VALID for item in point.continuations) for point in points}
