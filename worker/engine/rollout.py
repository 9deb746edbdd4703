"""Stage 1, rollout: the policy acts, the environment answers, every model call is captured.

Semantics, locked by ``tests/engine/test_rollout.py``:

1. A turn is captured before anything is done with it, from the ids that the sampler used.
2. Strict reading: no legal action is a policy error, terminal, and no infrastructure failure.
3. The failure schedule is read by logical tool-call ordinal, and answers before the backend is called.
4. A ToolAction on the last decision of the budget is not executed: terminal is budget_exhausted.
5. A backend that breaks makes its trajectory infrastructure-invalid, with no reward; the others go on.
6. Ids are carried verbatim: next prompt = prompt + generated ids + ids of the Observation.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.capture import Capture
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.jobs import GroupSpec, SlotSpec
from workbench.contracts.records import (
    BUDGET_EXHAUSTED,
    FINISH,
    INFRASTRUCTURE_INVALID,
    OK,
    POLICY_ERROR,
    TOOL,
    UNPARSEABLE,
    VALID,
    ObservationRecord,
    ToolCallRecord,
    TurnRecord,
)
from worker.environments.base import Environment, FinishAction, Observation, Session, Task, ToolAction, ToolSpec

from .faults import reach
from .outcomes import injection_records
from .records import GeneratedTurn, Rollout, RowStart, TurnMeasure
from .render import Formatter, ParsedTurn
from .sampler import Sampler

BRANCH = "main"
REASON_CHARACTERS = 300


@dataclass(frozen=True)
class RolloutSettings:
    """What every capture of a shard carries. ``capture_identities``: as in ``Capture.identities``."""

    capture_identities: dict[str, str]
    policy_version: int
    sampling: dict[str, Any]
    max_decisions: int


@dataclass
class Running:
    """One slot while it runs. ``forced``: leading ids of its next turn that were given instead of sampled."""

    rollout: Rollout
    group: GroupSpec
    task: Task
    session: Session
    tools: tuple[ToolSpec, ...]
    handle: int = -1
    calls: int = 0
    executed: set[str] = field(default_factory=set)
    forced: tuple[int, ...] = ()


def describe_error(boundary: str, error: BaseException) -> str:
    """One line for ``invalid_reason``: boundary, error class, message."""
    return f"{boundary}: {type(error).__name__}: {error}"[:REASON_CHARACTERS]


def run_rollouts(
    groups: Sequence[GroupSpec],
    tasks: dict[str, Task],
    environment: Environment,
    formatter: Formatter,
    sampler: Sampler,
    settings: RolloutSettings,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Rollout]:
    """Run every slot of ``groups``; rollouts by trajectory uid, complete or infrastructure-invalid.

    ``tasks`` by uid. Never raises for what a backend does; raises ``EngineFault`` where the engine
    itself cannot go on (too few slots, a prompt longer than the context).
    """
    rollouts: dict[str, Rollout] = {}
    starting: list[Running] = []
    prompts: list[RowStart] = []
    for group in groups:
        for slot in group.slots:
            rollout, running, prompt = _start(group, slot, tasks[group.task_uid], environment, formatter)
            rollouts[slot.trajectory_uid] = rollout
            if running is not None:
                starting.append(running)
                prompts.append(RowStart(tuple(prompt), slot.seed))
    running_by_row: dict[int, Running] = {}
    for handle, item in zip(sampler.open(prompts), starting, strict=True):
        item.handle = handle
        running_by_row[handle] = item
    drive(running_by_row, environment, formatter, sampler, settings, progress)
    return rollouts


def drive(
    running_by_row: dict[int, Running],
    environment: Environment,
    formatter: Formatter,
    sampler: Sampler,
    settings: RolloutSettings,
    progress: Callable[[dict[str, Any]], None] | None = None,
    *,
    point: str = "collect",
) -> None:
    """Run open rows (by sampler handle) to their ends and close them; what they met stands in their rollouts.

    ``point``: fault point of the crash tests, half way.
    """
    total, turns = len(running_by_row), 0
    while running_by_row:
        # A quarter of the rows ends its turn, then enters its Observations together.
        for turn in sampler.generate(list(running_by_row), until=max(1, len(running_by_row) // 4)):
            item = running_by_row[turn.row]
            turns += 1
            if not _advance(item, turn, environment, formatter, sampler, settings):
                sampler.close([turn.row])
                del running_by_row[turn.row]
                _conclude(item)
        if turns >= total // 2:
            reach(point)
        if progress is not None:
            progress({"stage": "rollout", "finished": total - len(running_by_row), "total": total, "turns": turns})


def _start(
    group: GroupSpec, slot: SlotSpec, task: Task, environment: Environment, formatter: Formatter
) -> tuple[Rollout, Running | None, list[int]]:
    rollout = Rollout(slot.trajectory_uid, slot.slot, slot.seed, VALID)
    tools = tuple(tool for tool in environment.tools() if tool.name in task.tools)
    rollout.initial_state_sha256 = digest({"initial_state": task.initial_state})
    try:
        session = environment.reset(task)
        rollout.initial_state_sha256 = session.state_hash()
        prompt = formatter.start(environment.instructions(), tools, task.prompt)
    except Exception as error:
        _invalidate(rollout, "environment", error)
        rollout.injections = injection_records(group.injected_ordinals, ())
        return rollout, None, []
    return rollout, Running(rollout, group, task, session, tools), prompt


def _invalidate(rollout: Rollout, boundary: str, error: BaseException) -> None:
    rollout.status, rollout.terminal, rollout.final_state_sha256 = INFRASTRUCTURE_INVALID, None, None
    rollout.invalid_reason = describe_error(boundary, error)


def _conclude(item: Running) -> None:
    item.rollout.injections = injection_records(item.group.injected_ordinals, item.rollout.turns)


def _advance(
    item: Running,
    turn: GeneratedTurn,
    environment: Environment,
    formatter: Formatter,
    sampler: Sampler,
    settings: RolloutSettings,
) -> bool:
    """Record one turn and act on it; whether the row goes on."""
    rollout, forced = item.rollout, item.forced
    if forced:
        turn, item.forced = _with_forced(turn, forced), ()
    try:
        parsed = formatter.read(turn.generated_ids, item.tools)
        state = item.session.state_hash()
        label: str | None = environment.state_label(item.session)
    except Exception as error:
        _invalidate(rollout, "harness", error)
        return False
    parsed = replace(parsed, is_policy_token=(0,) * len(forced) + parsed.is_policy_token[len(forced) :])
    record = _record(item, turn, parsed, state, settings)
    rollout.measures.append(TurnMeasure(turn.decision, turn.generated_ids, turn.entropies, parsed.segments, label))
    try:
        record, terminal = _act(item, record, parsed, environment, settings.max_decisions)
        record = replace(record, state_after_sha256=item.session.state_hash())
    except Exception as error:
        rollout.turns.append(record)
        _invalidate(rollout, "environment", error)
        return False
    rollout.turns.append(record)
    if terminal is None and record.observation is not None:
        observed = formatter.observe(record.observation.text)
        if len(observed) < sampler.room(turn.row):
            sampler.append(turn.row, observed)
            return True
        terminal = BUDGET_EXHAUSTED  # the context is spent: no further decision fits
    rollout.terminal, rollout.final_state_sha256 = terminal, record.state_after_sha256
    return False


def _with_forced(turn: GeneratedTurn, forced: tuple[int, ...]) -> GeneratedTurn:
    """The whole turn where the sampler took its forced ids for prompt. What was not sampled has no probability: nan."""
    unknown = (math.nan,) * len(forced)
    return replace(
        turn,
        prompt_ids=turn.prompt_ids[: -len(forced)],
        generated_ids=(*forced, *turn.generated_ids),
        logprobs=(*unknown, *turn.logprobs),
        entropies=(*unknown, *turn.entropies),
    )


def _record(
    item: Running, turn: GeneratedTurn, parsed: ParsedTurn, state: str, settings: RolloutSettings
) -> TurnRecord:
    parent = turn.decision - 1 if turn.decision else None
    capture = Capture(
        trajectory_uid=item.rollout.trajectory_uid,
        decision=turn.decision,
        branch=BRANCH,
        parent_decision=parent,
        policy_version=settings.policy_version,
        seed=item.rollout.seed,
        sampling=settings.sampling,
        identities=settings.capture_identities,
        state_sha256=state,
        prompt_ids=array("i", turn.prompt_ids),
        generated_ids=array("i", turn.generated_ids),
        is_policy_token=array("B", parsed.is_policy_token),
        segments=array("B", parsed.segments),
        sampler_logprobs=array("f", turn.logprobs),
    )
    data = capture.to_bytes()
    item.rollout.captures.append(data)
    finish = parsed.action if isinstance(parsed.action, FinishAction) else None
    kind = UNPARSEABLE if parsed.action is None else (FINISH if finish is not None else TOOL)
    return TurnRecord(
        decision=turn.decision,
        parent_decision=parent,
        branch=BRANCH,
        capture_sha256=sha256_hex(data),
        prompt_tokens=len(turn.prompt_ids),
        generated_tokens=len(turn.generated_ids),
        policy_tokens=sum(parsed.is_policy_token),
        action_kind=kind,
        parse_error=parsed.error,
        think_text=parsed.think_text,
        action_text=parsed.action_text,
        tool_call=None,
        finish=None if finish is None else {"answer": finish.answer, "citations": list(finish.citations)},
        observation=None,
        policy_version=settings.policy_version,
        state_before_sha256=state,
        state_after_sha256=state,
    )


def _act(
    item: Running, record: TurnRecord, parsed: ParsedTurn, environment: Environment, max_decisions: int
) -> tuple[TurnRecord, str | None]:
    """The turn with its call and Observation, and the terminal reason where it ends the trajectory."""
    if parsed.action is None:
        return record, POLICY_ERROR
    if isinstance(parsed.action, FinishAction):
        item.session.finish(parsed.action)
        return record, FINISH
    ordinal, item.calls = item.calls, item.calls + 1
    key = digest({"tool": parsed.action.tool, "arguments": parsed.action.arguments})
    is_repeat = key in item.executed
    if record.decision + 1 >= max_decisions:
        call = ToolCallRecord(ordinal, parsed.action.tool, parsed.action.arguments, False, False, is_repeat, None)
        return replace(record, tool_call=call), BUDGET_EXHAUSTED
    injected = ordinal in item.group.injected_ordinals
    calls_left = max_decisions - record.decision - 1
    observation = _observe(item, parsed.action, environment, injected, calls_left)
    item.executed.add(key)
    call = ToolCallRecord(
        ordinal, parsed.action.tool, parsed.action.arguments, True, not injected, is_repeat, observation.is_productive
    )
    seen = ObservationRecord(
        observation.status, observation.retryable, injected, observation.text, dict(observation.facts)
    )
    return replace(record, tool_call=call, observation=seen), None


def _observe(
    item: Running, action: ToolAction, environment: Environment, injected: bool, calls_left: int
) -> Observation:
    if not injected:
        return item.session.step(action)
    observation = environment.injected_failure(action, calls_left)
    if observation.status == OK or not observation.retryable:
        raise EnvironmentFault(f"injected_failure: got status {observation.status}, expected a retryable failure")
    return observation


def expected_prompts(
    rollout: Rollout, task: Task, environment: Environment, formatter: Formatter, generated: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Prompt ids of every turn, rebuilt from the task, the generated ids and the recorded Observations."""
    tools = tuple(tool for tool in environment.tools() if tool.name in task.tools)
    context = list(formatter.start(environment.instructions(), tools, task.prompt))
    prompts = []
    for turn, ids in zip(rollout.turns, generated, strict=True):
        prompts.append(list(context))
        context += ids
        if turn.observation is not None:
            context += formatter.observe(turn.observation.text)
    return prompts
