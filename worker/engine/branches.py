"""Operation ``branch``: continuations from the state before a recorded decision, and from the state after it.

Nothing is trusted to be that state: the recorded actions are replayed on a fresh session, the state is restored from
the snapshot of that session, and each continuation starts from a fork of it; all hashes must equal the recorded one.
The context is the ids that the decision itself was sampled from, read from its capture.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.capturefile import read_capture
from workbench.contracts.branches import (
    AFTER,
    BEFORE,
    MOST_CONTINUATIONS,
    BranchPoint,
    BranchRecord,
    BranchResult,
    BranchSpec,
    Continuation,
    continuation_seed,
    parse_branch,
)
from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.capture import Capture
from workbench.contracts.errors import EngineFault, EnvironmentFault
from workbench.contracts.jobs import CollectSpec
from workbench.contracts.records import INFRASTRUCTURE_INVALID, VALID, GroupRecord, TrajectoryRecord, TurnRecord
from workbench.contracts.wire import parse_record, record_bytes
from worker.environments.base import Session, Task, ToolAction

from . import own
from .checkpoint import checked
from .collect import Progress, World
from .policy import Policy, load_policy
from .records import Rollout, RowStart, SamplingConfig
from .reward import compute_reward
from .rollout import RolloutSettings, Running, drive
from .sampler import Sampler
from .train import capture_identities, identities_of, require_runtime, world_of

PURPOSE = "branch"


def branch(spec: BranchSpec, store: Any, *, cache_dir: Path, progress: Progress | None = None) -> BranchResult:
    """Raises ``EngineFault`` where it cannot be done as specified, ``EnvironmentFault`` where the state is another."""
    started = time.perf_counter()
    require_runtime(spec.runtime, spec.policy.dtype)
    if not 1 <= spec.count <= MOST_CONTINUATIONS:
        raise EngineFault(f"count: got {spec.count} continuations, expected 1 to {MOST_CONTINUATIONS}")
    group, base = _recorded(spec)
    collect = _collect_spec(spec, group)
    code = own.bound_code(collect)
    policy = load_policy(spec.policy, store, cache_dir=cache_dir, environment_config=spec.environment.config)
    world = world_of(collect, code, policy, store)
    settings = RolloutSettings(
        capture_identities(identities_of(collect, policy, code)) | code.outside, spec.policy.policy_version,
        spec.sampling, spec.max_decisions,
    )  # fmt: skip
    capture = Capture.from_bytes(read_capture(checked(store, spec.capture_blob_sha256, "captures"), spec.capture))
    points = tuple(
        _point(spec, name, base, world, policy, settings, capture, store, progress) for name in (BEFORE, AFTER)
    )
    record = BranchRecord(
        uid=spec.uid, trajectory_uid=spec.trajectory_uid, group_uid=group.uid, group_sha256=spec.record_sha256,
        plan_sha256=group.plan_sha256, task_uid=group.task_uid, decision=spec.decision, ordinal=spec.ordinal,
        seed=spec.seed, count=spec.count, base_model_sha256=spec.policy.base_model_sha256,
        adapter_sha256=spec.policy.adapter_sha256, policy_version=spec.policy.policy_version, sampling=spec.sampling,
        max_decisions=spec.max_decisions, reward=None if base.reward is None else base.reward.total,
        success=base.success, points=points,
    )  # fmt: skip
    data = record_bytes(record)
    parse_branch(data)
    return BranchResult(data.decode(), sha256_hex(data), {"seconds": time.perf_counter() - started})


def _recorded(spec: BranchSpec) -> tuple[GroupRecord, TrajectoryRecord]:
    data = spec.record_json.encode()
    if sha256_hex(data) != spec.record_sha256:
        raise EngineFault(f"record_sha256: got {sha256_hex(data)}, expected {spec.record_sha256}")
    group = parse_record(GroupRecord, data)
    base = next((item for item in group.trajectories if item.uid == spec.trajectory_uid), None)
    if base is None or base.status != VALID or not 0 <= spec.decision < len(base.turns):
        raise EngineFault(f"decision: got {spec.decision} of {spec.trajectory_uid}, expected one of a valid trajectory")
    return group, base


def _collect_spec(spec: BranchSpec, group: GroupRecord) -> CollectSpec:
    return CollectSpec(
        run_uid=group.run_uid, plan_sha256=group.plan_sha256, purpose=PURPOSE, condition=group.condition,
        split=group.split, policy=spec.policy, environment=spec.environment, reward=spec.reward,
        sampling=spec.sampling, max_decisions=spec.max_decisions, advantage=None, runtime=spec.runtime,
        groups=(spec.group,),
    )  # fmt: skip


def _state(spec: BranchSpec, world: World, task: Task, turns: Sequence[TurnRecord], recorded: str) -> Session:
    """The session after these turns, replayed. Raises ``EnvironmentFault`` where its hash is not the recorded one."""
    calls = [turn.tool_call for turn in turns if turn.tool_call is not None]
    actions = [ToolAction(call.tool, call.arguments) for call in calls if call.executed and call.backend_called]
    session = world.environment.replay(task, actions)
    if session.state_hash() != recorded:
        raise EnvironmentFault(
            f"decision {spec.decision}: got state {session.state_hash()} by replaying, expected {recorded} as recorded"
        )
    return session


def _point(
    spec: BranchSpec,
    name: str,
    base: TrajectoryRecord,
    world: World,
    policy: Policy,
    settings: RolloutSettings,
    capture: Capture,
    store: Any,
    progress: Progress | None,
) -> BranchPoint:
    task, turn = world.tasks[spec.group.task_uid], base.turns[spec.decision]
    ended = name == AFTER and spec.decision == len(base.turns) - 1  # there is no state that anything could go on from
    is_after = name == AFTER and not ended
    turns = base.turns[: spec.decision + is_after]
    recorded = turn.state_after_sha256 if is_after else turn.state_before_sha256
    session = _state(spec, world, task, turns, recorded)
    snapshot = session.snapshot()
    restored = world.environment.restore(task, snapshot).state_hash()
    prompt = [*capture.prompt_ids]
    if is_after and turn.observation is not None:
        prompt += [*capture.generated_ids, *policy.formatter.observe(turn.observation.text)]
    found: tuple[Continuation, ...] = ()
    if not ended:
        found = _continuations(spec, name, base, turns, session, world, policy, settings, prompt, progress)
    return BranchPoint(
        name, recorded, session.state_hash(), restored, store.put(snapshot), base.terminal if ended else None,
        None if ended else sha256_hex(array("i", prompt).tobytes()), found,
    )  # fmt: skip


def _continuations(
    spec: BranchSpec,
    name: str,
    base: TrajectoryRecord,
    turns: Sequence[TurnRecord],
    session: Session,
    world: World,
    policy: Policy,
    settings: RolloutSettings,
    prompt: Sequence[int],
    progress: Progress | None,
) -> tuple[Continuation, ...]:
    sampler = Sampler(
        policy, SamplingConfig.from_spec(spec.sampling), rows=spec.count, stop_ids=policy.formatter.stop_ids(),
        context=policy.context(),
    )  # fmt: skip
    task = world.tasks[spec.group.task_uid]
    tools = tuple(tool for tool in world.environment.tools() if tool.name in task.tools)
    calls = [turn.tool_call for turn in turns if turn.tool_call is not None]
    executed = {digest({"tool": call.tool, "arguments": call.arguments}) for call in calls if call.executed}
    running, starts, hashes = [], [], []
    for index in range(spec.count):
        seed = continuation_seed(spec.seed, name, index)
        rollout = Rollout(f"{spec.uid}:{name}:{index}", index, seed, VALID, turns=list(turns))
        fork = session.fork()
        hashes.append(fork.state_hash())
        running.append(Running(rollout, spec.group, task, fork, tools, calls=len(calls), executed=set(executed)))
        starts.append(RowStart(tuple(prompt), seed, len(turns)))
    by_row = dict(zip(sampler.open(starts), running, strict=True))
    for handle, row in by_row.items():
        row.handle = handle
    drive(by_row, world.environment, policy.formatter, sampler, settings, progress, point="branch")
    return tuple(
        _ended(spec, index, item.rollout, len(turns), hashes[index], world, task) for index, item in enumerate(running)
    )


def _ended(
    spec: BranchSpec, index: int, rollout: Rollout, first: int, start: str, world: World, task: Task
) -> Continuation:
    made = Continuation(
        index, rollout.seed, start, rollout.status, rollout.invalid_reason, None, None, None,
        sum(turn.policy_tokens for turn in rollout.turns[first:]),
        tuple(turn.action_text or "" for turn in rollout.turns[first:]), None,
    )  # fmt: skip
    if rollout.status != VALID or rollout.terminal is None:
        return replace(made, status=INFRASTRUCTURE_INVALID)
    try:
        reward = compute_reward(
            world.rules or world.environment, task, rollout.turns, rollout.terminal,
            expected_id=world.reward_id or spec.reward.get("id"), expected_version=spec.reward.get("version"),
        )  # fmt: skip
        success = bool(world.environment.success(task, rollout.turns, rollout.terminal))
    except Exception as error:  # code of an environment from outside, or a sandbox that fails: no verdict
        why = f"reward: {type(error).__name__}: {error}"[:300]
        return replace(made, status=INFRASTRUCTURE_INVALID, invalid_reason=why)
    return replace(
        made, terminal=rollout.terminal, reward=reward.total, success=success,
        final_state_sha256=rollout.final_state_sha256,
    )  # fmt: skip
