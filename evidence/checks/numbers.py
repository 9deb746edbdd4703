"""Step 7: numbers computed again from what lies below them.

Written apart from the engine on purpose: rewards from components, statistics and advantages from
rewards, outcome facts from turns, eligibility and signal from trajectories, credit sums from turns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evidence.report import StepLog
from runs.actions.plans import plan_body
from runs.actions.record_group import GROUP, parse_group
from runs.actions.record_update import UPDATE, parse_update
from runs.models import Document, Group, PlanVersion, Trajectory
from workbench.contracts.layout import arm_of
from workbench.contracts.records import (
    ALL_EQUAL,
    ALL_RIGHT,
    ALL_WRONG,
    EVALUATE,
    OK,
    SIGNAL,
    TRAIN,
    VALID,
    GroupRecord,
    TrajectoryRecord,
    TurnRecord,
)

CHUNK = 50
ZERO_VARIANCE = 1e-12
RELATIVE, ABSOLUTE = 1e-9, 1e-12


def close(first: float | None, second: float | None) -> bool:
    """Equal up to the order of summation; None equals only None."""
    if first is None or second is None:
        return first is second
    return math.isclose(first, second, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def check_numbers(log: StepLog) -> None:
    """Every group document, then every update document."""
    bodies: dict[str, Any] = {}
    for version in PlanVersion.objects.iterator(chunk_size=CHUNK):
        with log.reading("runs_planversion", version.uid):
            bodies[version.sha256] = plan_body(version)
    for document in Document.objects.filter(kind=GROUP).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_group", document.subject_uid):
            record = parse_group(bytes(document.bytes))
            for item in record.trajectories:
                log.count()
                _trajectory(log, item)
            _group(log, record, _objective(bodies.get(record.plan_sha256), record))
    for document in Document.objects.filter(kind=UPDATE).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_updatebatch", document.subject_uid):
            _update(log, document)


def _objective(body: dict[str, Any] | None, record: GroupRecord) -> dict[str, Any] | None:
    """The advantage that the plan asks for; None where the plan is unknown."""
    if body is None:
        return None
    group = Group.objects.filter(uid=record.uid).select_related("run__arm").first()
    if record.purpose == TRAIN and group is not None and group.run is not None and group.run.arm is not None:
        return dict(arm_of(body, group.run.arm.key)["config"]["objective"])
    return dict(body["plan"]["objective"])


# --- one trajectory -------------------------------------------------------------------------------


def reward_total(item: TrajectoryRecord) -> float | None:
    """gate * clip(sum of points, max(-1, sum of negative weights), 1) over what was measured; None without a reward."""
    if item.reward is None:
        return None
    measured = [(part.weight, part.points) for part in item.reward.components if part.points is not None]
    lowest = max(sum(weight for weight, _ in measured if weight < 0), -1.0)
    return item.reward.gate * min(max(sum(points for _, points in measured), lowest), 1.0)


def fatal(turns: Sequence[TurnRecord]) -> tuple[int | None, int | None]:
    """(fatal_start, fatal_confirmed): first and third of three consecutive failed Observations."""
    failed: list[int] = []
    for turn in turns:
        if turn.observation is None:
            continue
        failed = [] if turn.observation.status == OK else [*failed, turn.decision]
        if len(failed) == 3:
            return failed[0], failed[2]
    return None, None


def rebuilt_facts(turns: Sequence[TurnRecord], terminal: str | None) -> dict[str, Any]:
    """Outcome facts that follow from the turns alone (a premature finish needs the task: step 10)."""
    calls = [turn.tool_call for turn in turns if turn.tool_call is not None and turn.tool_call.executed]
    seen = [(turn.decision, turn.observation.status) for turn in turns if turn.observation is not None]
    failures = [decision for decision, status in seen if status != OK]
    start, confirmed = fatal(turns)
    recovered = any(status == OK and decision > failures[0] for decision, status in seen) if failures else None
    return {
        "finished": terminal == "finish",
        "parser_valid": all(turn.action_kind != "unparseable" for turn in turns),
        "tool_depth": len(calls),
        "repeat_calls": sum(call.is_repeat for call in calls),
        "productive_calls": sum(call.is_productive is True for call in calls),
        "failures_seen": len(failures),
        "exposed": bool(failures),
        "recovered": recovered,
        "fatal_start": start,
        "fatal_confirmed": confirmed,
        "continued_after_fatal": None if confirmed is None else any(turn.decision > confirmed for turn in turns),
        "unmatched_final_action": any(turn.tool_call is not None and not turn.tool_call.executed for turn in turns),
    }


def _trajectory(log: StepLog, item: TrajectoryRecord) -> None:
    if item.reward is not None:
        total = reward_total(item)
        if not close(total, item.reward.total):
            log.problem("runs_trajectory", item.uid, "reward_total", expected=total, got=item.reward.total)
        for part in item.reward.components:
            points = None if part.value is None else part.weight * part.value
            if not close(points, part.points):
                log.problem(
                    "runs_rewardcomponent", f"{item.uid} {part.name}", "points", expected=points, got=part.points
                )
    if item.facts is not None:
        for name, expected in rebuilt_facts(item.turns, item.terminal).items():
            got = getattr(item.facts, name)
            if got is not expected and got != expected:
                log.problem("runs_trajectory", item.uid, name, expected=expected, got=got)


# --- one group ------------------------------------------------------------------------------------


def advantages(rewards: Sequence[float], kind: str, eps: float) -> list[float]:
    """Advantages over the whole group, population statistics (spec "objective and update")."""
    size = len(rewards)
    mean = sum(rewards) / size
    variance = sum((reward - mean) ** 2 for reward in rewards) / size
    if variance <= ZERO_VARIANCE:
        return [0.0] * size
    if kind == "grpo":
        return [(reward - mean) / (math.sqrt(variance) + eps) for reward in rewards]
    if kind == "mean_centred":
        return [reward - mean for reward in rewards]
    if kind == "leave_one_out":
        return [reward - (sum(rewards) - reward) / (size - 1) for reward in rewards]
    raise ValueError(f"advantage: got {kind!r}, expected grpo, mean_centred or leave_one_out")


def signal(variance: float, successes: Sequence[bool | None]) -> str:
    """Whether a group can teach anything, and if not, why."""
    if variance > ZERO_VARIANCE:
        return SIGNAL
    right = sum(success is True for success in successes)
    return ALL_RIGHT if right == len(successes) else (ALL_WRONG if right == 0 else ALL_EQUAL)


def must_be_ineligible(record: GroupRecord) -> str | None:
    """The first reason for which this group may not train, from its trajectories; None where there is none."""
    for item in record.trajectories:
        if item.status != VALID or item.reward is None or not item.turns:
            return f"slot {item.slot} is no complete valid trajectory"
        if not math.isfinite(item.reward.total):
            return f"slot {item.slot} has no finite reward"
        if not all(verdict.holds for verdict in item.invariants):
            return f"slot {item.slot} breaks an invariant"
        if any(turn.policy_version != record.identities.policy_version for turn in item.turns):
            return f"slot {item.slot} has another policy version"
    for name in ("initial_state_sha256", "success_definition"):
        if len({getattr(item, name) for item in record.trajectories}) != 1:
            return f"{name} differs between slots"
    if len({item.reward.version for item in record.trajectories if item.reward}) != 1:
        return "reward versions differ between slots"
    return None


def _group(log: StepLog, record: GroupRecord, objective: dict[str, Any] | None) -> None:
    log.count()
    reason = must_be_ineligible(record)
    if record.eligible != (reason is None):
        log.problem("runs_group", record.uid, "eligible", expected=reason is None, got=record.eligible)
    if (record.ineligible_reason is None) != record.eligible:
        log.problem(
            "runs_group",
            record.uid,
            "ineligible_reason",
            expected="a reason iff ineligible",
            got=record.ineligible_reason,
        )
    rewards = [item.reward.total for item in record.trajectories if item.reward is not None]
    if reason is not None or record.purpose == EVALUATE:
        for name in ("mean", "sigma", "advantages_G", "signal"):
            got = getattr(record, name)
            if got is not None:
                log.problem("runs_group", record.uid, name, expected=None, got=got)
        return
    mean = sum(rewards) / len(rewards)
    variance = sum((reward - mean) ** 2 for reward in rewards) / len(rewards)
    for name, expected in (("mean", mean), ("sigma", math.sqrt(variance))):
        if not close(expected, getattr(record, name)):
            log.problem("runs_group", record.uid, name, expected=expected, got=getattr(record, name))
    kind = signal(variance, [item.success for item in record.trajectories])
    if record.signal != kind:
        log.problem("runs_group", record.uid, "signal", expected=kind, got=record.signal)
    if objective is not None:
        _advantages(log, record, rewards, objective)


def _advantages(log: StepLog, record: GroupRecord, rewards: list[float], objective: dict[str, Any]) -> None:
    if record.advantage_kind != objective["advantage"]:
        log.problem(
            "runs_group", record.uid, "advantage_kind", expected=objective["advantage"], got=record.advantage_kind
        )
        return
    expected = advantages(rewards, objective["advantage"], objective["advantage_eps"])
    for item, want, got in zip(record.trajectories, expected, record.advantages_G or (), strict=False):
        if not close(want, got):
            log.problem("runs_trajectory", item.uid, "advantage", expected=want, got=got)
    if len(record.advantages_G or ()) != len(expected):
        log.problem("runs_group", record.uid, "advantages_G", expected=len(expected), got=record.advantages_G)


# --- one update -----------------------------------------------------------------------------------


def _update(log: StepLog, document: Document) -> None:
    record = parse_update(bytes(document.bytes))
    rows = {
        str(row.uid): row for row in Trajectory.objects.filter(uid__in=[item.trajectory_uid for item in record.credits])
    }
    for credit in record.credits:
        log.count()
        name, row = f"{record.uid} {credit.trajectory_uid}", rows.get(credit.trajectory_uid)
        if row is None:
            log.problem("runs_trajectorycredit", name, "trajectory", expected="a stored trajectory", got=None)
            continue
        expected = {"advantage": row.advantage, "policy_tokens": row.policy_tokens, "fatal_start": row.fatal_start}
        for column, value in expected.items():
            got = getattr(credit, column)
            if not close(value, got):
                log.problem("runs_trajectorycredit", name, column, expected=value, got=got)
        if credit.trained_tokens + credit.masked_tokens != credit.policy_tokens:
            log.problem("runs_trajectorycredit", name, "trained_tokens",
                        expected=credit.policy_tokens - credit.masked_tokens, got=credit.trained_tokens)  # fmt: skip
    trained = set(record.trained_group_uids)
    for group in Group.objects.filter(uid__in=trained, eligible=False):
        log.problem("runs_updatebatch", record.uid, "trained_group_uids", expected="eligible groups", got=group.uid)
