"""Assembly of one collected shard: rollouts, outcomes, rewards and advantages into group records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from workbench.contracts.canonical import parse_canonical
from workbench.contracts.capture import Capture
from workbench.contracts.errors import EngineFault, RewardFault
from workbench.contracts.jobs import CollectSpec, GroupSpec
from workbench.contracts.records import (
    INFRASTRUCTURE_INVALID,
    VALID,
    GroupRecord,
    Identities,
    RewardRecord,
    TrajectoryRecord,
)
from worker.environments.base import Environment, Task
from worker.environments.registry import RewardRules
from worker.environments.taskvalues import TASK_FIELDS

from .advantage import group_advantages
from .outcomes import eligibility, invariant_verdicts, outcome_facts, signal_kind
from .records import Rollout
from .render import Formatter
from .reward import compute_reward
from .rollout import expected_prompts

Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class World:
    """Environment, its tasks by uid, and the formatter of the policy.

    ``rules``: reward from outside with the id that its records carry; None: the environment's own.
    """

    environment: Environment
    tasks: dict[str, Task]
    formatter: Formatter
    rules: RewardRules | None = None
    reward_id: str | None = None


@lru_cache(maxsize=2)
def read_tasks(data: bytes, task_set: str) -> dict[str, Task]:
    """Tasks of canonical task-set bytes by uid: a list, or an object with the list under ``tasks``.

    Kept in the process, since a shard reads the same bytes as the one before: nobody changes the result.
    """
    value = parse_canonical(data)
    items = value["tasks"] if isinstance(value, dict) else value
    found: dict[str, Task] = {}
    for item in items:
        fields = {name: item[name] for name in TASK_FIELDS}
        task = Task(**{**fields, "tools": tuple(fields["tools"])})
        uid = task.uid(task_set)
        if item.get("uid", uid) != uid:
            raise EngineFault(f"task {task.key}: got uid {item['uid']}, expected {uid}")
        found[uid] = task
    return found


def trajectory_record(rollout: Rollout, group: GroupSpec, world: World, spec: CollectSpec) -> TrajectoryRecord:
    """Stage 2 for one rollout: facts, reward, success, verdicts. A reward that breaks invalidates the slot."""
    task, environment = world.tasks[group.task_uid], world.environment
    status, reason, terminal = rollout.status, rollout.invalid_reason, rollout.terminal
    reward: RewardRecord | None = None
    facts = success = None
    if status == VALID and terminal is not None:
        try:
            reward = compute_reward(
                world.rules or environment,
                task,
                rollout.turns,
                terminal,
                expected_id=world.reward_id or spec.reward.get("id"),
                expected_version=spec.reward.get("version"),
            )
            success = environment.success(task, rollout.turns, terminal)
            facts = outcome_facts(rollout.turns, terminal, environment.is_premature(task, rollout.turns))
        except RewardFault as error:
            status, reason = INFRASTRUCTURE_INVALID, str(error)
        except Exception as error:
            status, reason = INFRASTRUCTURE_INVALID, f"reward: {type(error).__name__}: {error}"
    if status != VALID:
        reward = facts = success = terminal = None
    captures = [Capture.from_bytes(data) for data in rollout.captures]
    prompts = _rebuilt_prompts(rollout, task, world, captures)
    verdicts = invariant_verdicts(
        captures,
        prompts,
        rollout.turns,
        status=status,
        terminal=terminal,
        final_state=rollout.final_state_sha256,
        reward=reward,
    )
    return TrajectoryRecord(
        uid=rollout.trajectory_uid,
        slot=rollout.slot,
        seed=rollout.seed,
        task_uid=group.task_uid,
        failure_profile=group.failure_profile,
        status=status,
        invalid_reason=reason,
        terminal=terminal,
        turns=tuple(rollout.turns),
        injections=rollout.injections,
        facts=facts,
        reward=reward,
        success=success,
        success_definition=environment.success_definition(),
        invariants=verdicts,
        initial_state_sha256=rollout.initial_state_sha256,
        final_state_sha256=rollout.final_state_sha256 if status == VALID else None,
    )


def _rebuilt_prompts(rollout: Rollout, task: Task, world: World, captures: Sequence[Capture]) -> list[list[int]]:
    if not captures:
        return []
    generated = [list(capture.generated_ids) for capture in captures]
    return expected_prompts(rollout, task, world.environment, world.formatter, generated)


def group_record(
    group: GroupSpec, rollouts: dict[str, Rollout], world: World, spec: CollectSpec, identities: Identities
) -> GroupRecord:
    """Stages 2 and 3 for one group: trajectories, eligibility, advantages."""
    task = world.tasks[group.task_uid]
    trajectories = tuple(trajectory_record(rollouts[slot.trajectory_uid], group, world, spec) for slot in group.slots)
    eligible, reason = eligibility(trajectories, len(group.slots))
    mean = sigma = signal = None
    advantages: tuple[float, ...] | None = None
    kind = spec.advantage["kind"] if spec.advantage is not None else None
    if eligible and spec.advantage is not None:
        rewards = [item.reward.total for item in trajectories if item.reward is not None]
        statistics = group_advantages(rewards, spec.advantage["kind"], spec.advantage["eps"])
        mean, sigma, advantages = statistics.mean, statistics.sigma, statistics.advantages_G
        signal = signal_kind(statistics.variance, [item.success for item in trajectories])
    return GroupRecord(
        uid=group.group_uid,
        run_uid=spec.run_uid,
        plan_sha256=spec.plan_sha256,
        purpose=spec.purpose,
        condition=spec.condition,
        split=spec.split,
        ordinal=group.ordinal,
        task_uid=group.task_uid,
        task_sha256=task.identity(),
        family=task.family,
        failure_profile=group.failure_profile,
        sampling=spec.sampling,
        identities=identities,
        trajectories=trajectories,
        eligible=eligible,
        ineligible_reason=reason,
        signal=signal,
        mean=mean,
        sigma=sigma,
        advantage_kind=kind,
        advantages_G=advantages,
    )
