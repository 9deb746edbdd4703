"""Operation ``probe``: does the think segment decide what the policy does?

1. Every probe task is played N times, without injected failures (``rollout.run_rollouts``).
2. At chosen decisions of each task's first rollout the think segment is forced: as it was (factual),
   deleted, corrupted, paraphrased, and replaced by as many random tokens. The policy goes on from there
   to the end of the episode, every trial under the same noise: token j of the action draws what token j
   of the untouched action drew, and so do all later decisions.
3. The environment reads the think segments: what each intends and which of its facts are true.

Trials are compared with the factual trial of their decision, never with a rollout of another batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.capture import Capture
from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import GroupSpec
from workbench.contracts.probe import (
    FAILED,
    MEASURED,
    ProbeCost,
    ProbedDecision,
    ProbeRecord,
    ProbeRepeat,
    ProbeResult,
    ProbeSample,
    ProbeSpec,
    ProbeTask,
    ProbeThought,
    ProbeTrial,
    ProbeTurn,
    Unavailable,
)
from workbench.contracts.records import VALID
from workbench.contracts.seeds import derive_seed
from workbench.contracts.wire import record_bytes
from worker.environments.base import Session, Task, Thoughts, ToolAction

from . import own, probe_think
from .collect import Progress, World
from .policy import Policy, load_policy
from .probe_metrics import probe_metrics
from .probe_think import Forced, action_value, turn_action
from .records import Rollout, RowStart, SamplingConfig
from .rollout import RolloutSettings, Running, describe_error, drive, run_rollouts
from .sampler import Sampler
from .train import MAX_ROWS, capture_identities, identities_of, require_runtime, world_of

NO_TURN = "the policy gave no turn"


@dataclass
class _Trial:
    """One intervention while it runs. ``rollout`` None: nothing was generated."""

    forced: Forced
    rollout: Rollout | None = None
    state: str = MEASURED
    reason: str | None = None


@dataclass
class _Probed:
    """One chosen decision of a task's first rollout."""

    task: Task
    group: GroupSpec
    base: Rollout
    decision: int
    noise_token: int
    trials: list[_Trial]


@dataclass
class _Bench:
    """What all steps of one probe share."""

    spec: ProbeSpec
    world: World
    policy: Policy
    sampler: Sampler
    settings: RolloutSettings
    thoughts: Thoughts | None
    missing: str | None
    progress: Progress | None
    counts: dict[str, int] = field(default_factory=lambda: {"factual": 0, "regenerated": 0})

    def told(self, part: str) -> Callable[[dict[str, Any]], None] | None:
        """Progress of a part, named as the probe's."""
        progress = self.progress
        return None if progress is None else lambda value: progress({**value, "stage": f"probe: {part}"})


def probe(spec: ProbeSpec, store: Any, *, cache_dir: Path, progress: Progress | None = None) -> ProbeResult:
    """Probe one checkpoint. Raises ``EngineFault`` where it cannot be done as specified."""
    started, cpu = time.perf_counter(), time.process_time()
    require_runtime(spec.collect.runtime, spec.collect.policy.dtype)
    slots = max((len(group.slots) for group in spec.collect.groups), default=0)
    if not 1 <= slots <= spec.rows <= MAX_ROWS:
        raise EngineFault(f"rows: got {slots} repeats in {spec.rows} rows, expected 1 to rows, rows at most {MAX_ROWS}")
    code = own.bound_code(spec.collect)
    policy = load_policy(
        spec.collect.policy, store, cache_dir=cache_dir, environment_config=spec.collect.environment.config
    )
    identities = identities_of(spec.collect, policy, code)
    bench = _bench(spec, code, policy, store, capture_identities(identities) | code.outside, progress)
    loaded = time.perf_counter()
    rollouts = _factual(bench)
    probed = [item for group in spec.collect.groups for item in _probed(bench, group, rollouts)]
    _regenerate(bench, probed)
    tasks = tuple(_task(bench, group, rollouts, probed) for group in spec.collect.groups)
    cost = ProbeCost(
        bench.counts["factual"], bench.counts["regenerated"], bench.sampler.policy_tokens,
        bench.sampler.ingested_tokens,
    )  # fmt: skip
    record = ProbeRecord(
        uid=spec.uid, run_uid=spec.collect.run_uid, plan_sha256=spec.collect.plan_sha256, batch=spec.batch,
        split=spec.collect.split, settings=spec.settings, sampling=spec.collect.sampling,
        max_decisions=spec.collect.max_decisions, identities=identities, tasks=tasks,
        unavailable=_unavailable(bench), cost=cost,
    )  # fmt: skip
    data = record_bytes(record)
    timing = {
        "load_seconds": loaded - started,
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "policy_tokens": float(cost.policy_tokens),
        "ingested_tokens": float(cost.ingested_tokens),
    }
    return ProbeResult(data.decode(), sha256_hex(data), probe_metrics(record), timing)


def _bench(
    spec: ProbeSpec,
    code: own.BoundCode,
    policy: Policy,
    store: Any,
    capture: dict[str, str],
    progress: Progress | None,
) -> _Bench:
    world = world_of(spec.collect, code, policy, store)
    sampler = Sampler(
        policy, SamplingConfig.from_spec(spec.collect.sampling), rows=spec.rows,
        stop_ids=policy.formatter.stop_ids(), context=policy.context(),
    )  # fmt: skip
    settings = RolloutSettings(
        capture, spec.collect.policy.policy_version, spec.collect.sampling, spec.collect.max_decisions
    )
    thoughts, missing = probe_think.thoughts_of(world.environment)
    return _Bench(spec, world, policy, sampler, settings, thoughts, missing, progress)


def _unavailable(bench: _Bench) -> tuple[Unavailable, ...]:
    found = []
    if bench.missing is not None:
        found.append(Unavailable("thoughts", bench.missing))
    if not isinstance(bench.policy.formatter, probe_think.ForcesThink):
        found.append(Unavailable("interventions", probe_think.NO_FORCE.format(name=bench.policy.formatter.name)))
    return tuple(found)


def _waves(sizes: Sequence[int], rows: int) -> Iterator[range]:
    """Consecutive ranges of items whose sizes sum to at most ``rows``: composition depends on the plan alone."""
    start = total = 0
    for index, size in enumerate(sizes):
        if total + size > rows:
            yield range(start, index)
            start, total = index, 0
        total += size
    if start < len(sizes):
        yield range(start, len(sizes))


def _factual(bench: _Bench) -> dict[str, Rollout]:
    groups = bench.spec.collect.groups
    found: dict[str, Rollout] = {}
    for wave in _waves([len(group.slots) for group in groups], bench.spec.rows):
        found |= run_rollouts(
            [groups[index] for index in wave], bench.world.tasks, bench.world.environment, bench.policy.formatter,
            bench.sampler, bench.settings, bench.told("rollouts"),
        )  # fmt: skip
    bench.counts["factual"] = len(found)
    return found


def _probed(bench: _Bench, group: GroupSpec, rollouts: dict[str, Rollout]) -> Iterator[_Probed]:
    """The chosen decisions of the group's first rollout with their interventions; none where it is invalid."""
    base, task = rollouts[group.slots[0].trajectory_uid], bench.world.tasks[group.task_uid]
    if base.status != VALID:
        return
    for decision in probe_think.chosen_decisions(base.turns, bench.spec.decisions):
        turn, measure = base.turns[decision], base.measures[decision]
        session = bench.world.environment.replay(task, _executed(base, decision))
        seed = derive_seed("probe_intervention", group.slots[0].seed, decision)
        forced = probe_think.interventions(
            bench.policy, bench.thoughts, bench.missing, task, session, turn, measure.generated_ids,
            measure.segments, seed,
        )  # fmt: skip
        trials = [_Trial(item, state=item.state, reason=item.reason) for item in forced]
        yield _Probed(task, group, base, decision, probe_think.think_length(measure.segments), trials)


def _executed(rollout: Rollout, before: int) -> list[ToolAction]:
    """Executed calls of the decisions before ``before``."""
    calls = [turn.tool_call for turn in rollout.turns[:before] if turn.tool_call is not None]
    return [ToolAction(call.tool, call.arguments) for call in calls if call.executed]


def _regenerate(bench: _Bench, probed: Sequence[_Probed]) -> None:
    """Run every trial that has something to force, in waves of the plan's rows."""
    pending = [(item, trial) for item in probed for trial in item.trials if trial.forced.prefix is not None]
    for wave in _waves([1] * len(pending), bench.spec.rows):
        starts, running = [], []
        for index in wave:
            item, trial = pending[index]
            prompt = [*Capture.from_bytes(item.base.captures[item.decision]).prompt_ids, *(trial.forced.prefix or ())]
            if len(prompt) >= bench.sampler.context or item.noise_token >= bench.sampler.sampling.max_new_tokens:
                trial.state = FAILED
                trial.reason = f"room: got {len(prompt)} ids and {item.noise_token} of the turn, expected room for more"
                continue
            running.append(_continued(bench, item, trial))
            starts.append(RowStart(tuple(prompt), item.base.seed, item.decision, item.noise_token))
        by_row = dict(zip(bench.sampler.open(starts), running, strict=True))
        for handle, row in by_row.items():
            row.handle = handle
        bench.counts["regenerated"] += len(by_row)
        drive(
            by_row, bench.world.environment, bench.policy.formatter, bench.sampler, bench.settings,
            bench.told("interventions"), point="probe",
        )  # fmt: skip


def _continued(bench: _Bench, item: _Probed, trial: _Trial) -> Running:
    """A row that stands where the decision was taken, its think segment forced."""
    base, environment = item.base, bench.world.environment
    calls = _executed(base, item.decision)
    trial.rollout = Rollout(base.trajectory_uid, base.slot, base.seed, VALID, turns=list(base.turns[: item.decision]))
    return Running(
        rollout=trial.rollout,
        group=item.group,
        task=item.task,
        session=environment.replay(item.task, calls),
        tools=tuple(tool for tool in environment.tools() if tool.name in item.task.tools),
        calls=len(calls),
        executed={digest({"tool": call.tool, "arguments": call.arguments}) for call in calls},
        forced=trial.forced.prefix or (),
    )


def _sample(bench: _Bench, task: Task, rollout: Rollout, first: int, forced: int) -> ProbeSample:
    """The rollout from decision ``first`` on; ``forced`` ids of that decision were given."""
    state, reason, success = rollout.status, rollout.invalid_reason, None
    if state == VALID and rollout.terminal is not None:
        try:
            success = bool(bench.world.environment.success(task, rollout.turns, rollout.terminal))
        except Exception as error:  # code of an environment from outside
            state, reason = "infrastructure_invalid", describe_error("success", error)
    turns = tuple(
        ProbeTurn(
            turn.decision, measure.generated_ids, forced if turn.decision == first else 0, turn.think_text,
            turn.action_text, action_value(turn_action(turn)), turn.parse_error,
            None if turn.observation is None else turn.observation.text,
        )
        for turn, measure in zip(rollout.turns[first:], rollout.measures, strict=True)
    )  # fmt: skip
    last = rollout.turns[-1].finish if rollout.turns else None
    is_valid = state == VALID
    return ProbeSample(
        state, reason, rollout.terminal if is_valid else None, turns, last if is_valid else None,
        success if is_valid else None,
    )  # fmt: skip


def _trial(bench: _Bench, item: _Probed, trial: _Trial) -> ProbeTrial:
    forced, sample = trial.forced, None
    if trial.rollout is not None:
        sample = _sample(bench, item.task, trial.rollout, item.decision, len(forced.prefix or ()))
        if sample.state != VALID or not sample.turns:
            trial.state, trial.reason, sample = FAILED, sample.invalid_reason or NO_TURN, None
    return ProbeTrial(
        forced.intervention, trial.state, trial.reason, forced.text, forced.ids, forced.states_action, sample
    )


def _task(bench: _Bench, group: GroupSpec, rollouts: dict[str, Rollout], probed: Sequence[_Probed]) -> ProbeTask:
    task, own_rollouts = bench.world.tasks[group.task_uid], [rollouts[slot.trajectory_uid] for slot in group.slots]
    repeats = tuple(ProbeRepeat(item.slot, item.seed, _sample(bench, task, item, 0, 0)) for item in own_rollouts)
    thoughts = [thought for item in own_rollouts if item.status == VALID for thought in _thoughts(bench, task, item)]
    decisions = tuple(
        ProbedDecision(item.decision, item.noise_token, tuple(_trial(bench, item, trial) for trial in item.trials))
        for item in probed
        if item.group is group
    )
    return ProbeTask(group.task_uid, task.identity(), task.family, repeats, tuple(thoughts), decisions)


def _thoughts(bench: _Bench, task: Task, rollout: Rollout) -> Iterator[ProbeThought]:
    """Every think segment of a rollout, read in the state before its decision."""
    session: Session = bench.world.environment.reset(task)
    for turn in rollout.turns:
        yield probe_think.read(bench.thoughts, bench.missing, task, session, turn, rollout.slot)
        if turn.tool_call is not None and turn.tool_call.executed:
            session.step(ToolAction(turn.tool_call.tool, turn.tool_call.arguments))
