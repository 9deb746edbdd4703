"""Outcomes of trajectories and groups, from their records alone. Pure functions, no torch.

Definitions: spec "rollout and capture". A failure is a policy-visible final Observation whose status
is error or timeout. Parser errors and infrastructure failures are no Observation and never count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from workbench.contracts.capture import Capture
from workbench.contracts.records import (
    ALL_EQUAL,
    ALL_RIGHT,
    ALL_WRONG,
    BUDGET_EXHAUSTED,
    FINISH,
    INFRASTRUCTURE_INVALID,
    OK,
    POLICY_ERROR,
    REALIZED,
    SIGNAL,
    TOOL,
    UNPARSEABLE,
    UNREACHED,
    VALID,
    InjectionRecord,
    InvariantVerdict,
    OutcomeFacts,
    RewardRecord,
    TrajectoryRecord,
    TurnRecord,
)
from workbench.contracts.rewards import reward_total

FATAL_RUN = 3  # consecutive failed decisions


def is_failure(turn: TurnRecord) -> bool:
    """Whether the turn's final Observation is a failure that the policy saw."""
    return turn.observation is not None and turn.observation.status != OK


def fatal_decisions(turns: Sequence[TurnRecord]) -> tuple[int | None, int | None]:
    """(fatal_start, fatal_confirmed): decision indices of the first and third of three failures in a row.

    A success resets the count. A turn without an Observation (Finish, policy error, unmatched final
    action) neither counts nor resets.
    """
    run: list[int] = []
    for turn in turns:
        if turn.observation is None:
            continue
        run = [*run, turn.decision] if is_failure(turn) else []
        if len(run) == FATAL_RUN:
            return run[0], run[-1]
    return None, None


def outcome_facts(turns: Sequence[TurnRecord], terminal: str, is_premature: bool | None) -> OutcomeFacts:
    """Facts of a valid trajectory. ``is_premature`` is ignored unless it finished."""
    start, confirmed = fatal_decisions(turns)
    calls = [turn.tool_call for turn in turns if turn.tool_call is not None and turn.tool_call.executed]
    failed = [turn.decision for turn in turns if is_failure(turn)]
    succeeded = [turn.decision for turn in turns if turn.observation is not None and not is_failure(turn)]
    finished = terminal == FINISH
    return OutcomeFacts(
        finished=finished,
        parser_valid=all(turn.action_kind != UNPARSEABLE for turn in turns),
        premature_finish=is_premature if finished else None,
        tool_depth=len(calls),
        repeat_calls=sum(call.is_repeat for call in calls),
        productive_calls=sum(bool(call.is_productive) for call in calls),
        failures_seen=len(failed),
        exposed=bool(failed),
        recovered=any(decision > failed[0] for decision in succeeded) if failed else None,
        fatal_start=start,
        fatal_confirmed=confirmed,
        continued_after_fatal=None if confirmed is None else any(turn.decision > confirmed for turn in turns),
        unmatched_final_action=any(turn.tool_call is not None and not turn.tool_call.executed for turn in turns),
    )


def injection_records(ordinals: Sequence[int], turns: Sequence[TurnRecord]) -> tuple[InjectionRecord, ...]:
    """What became of each scheduled failure: realized where the policy met it, else unreached."""
    met = {
        turn.tool_call.ordinal: turn.decision
        for turn in turns
        if turn.tool_call is not None and turn.observation is not None and turn.observation.injected
    }
    return tuple(
        InjectionRecord(ordinal, REALIZED if ordinal in met else UNREACHED, met.get(ordinal))
        for ordinal in sorted(ordinals)
    )


def relation_fault(turns: Sequence[TurnRecord], terminal: str | None) -> tuple[int, str] | None:
    """First break of decision -> call -> Observation as (decision, why); None where it holds.

    Legal without an Observation: Finish, a policy error, and one unexecuted ToolAction at the very end
    of a spent budget.
    """
    ordinal = 0
    for position, turn in enumerate(turns):
        is_last = position == len(turns) - 1
        if turn.decision != position:
            return turn.decision, f"decision: got {turn.decision}, expected {position}"
        if turn.action_kind != TOOL:
            if turn.tool_call is not None or turn.observation is not None:
                return turn.decision, f"{turn.action_kind}: got a call or an Observation, expected neither"
            if not is_last:
                return turn.decision, f"{turn.action_kind}: got a later turn, expected it to be the last"
            continue
        call = turn.tool_call
        if call is None or call.ordinal != ordinal:
            return turn.decision, f"tool call ordinal: got {None if call is None else call.ordinal}, expected {ordinal}"
        ordinal += 1
        if call.executed != (turn.observation is not None):
            return turn.decision, f"Observation: got executed={call.executed}, expected one Observation a call"
        if not call.executed and not (is_last and terminal == BUDGET_EXHAUSTED):
            return turn.decision, "tool call: got one without execution, expected that only where the budget ends"
        if turn.observation is not None and turn.observation.injected == call.backend_called:
            return turn.decision, "backend: got called and short-circuited, expected exactly one of them"
    return None


def _replay(captures: Sequence[Capture], expected_prompts: Sequence[Sequence[int]]) -> InvariantVerdict:
    checked = 0
    for capture, expected in zip(captures, expected_prompts, strict=False):
        prompt = list(capture.prompt_ids)
        for position, (got, want) in enumerate(zip(prompt, expected, strict=False)):
            if got != want:
                detail = f"prompt id: got {got}, expected {want}"
                return InvariantVerdict("replay_ids", False, checked, capture.decision, position, detail)
        if len(prompt) != len(expected):
            detail = f"prompt length: got {len(prompt)}, expected {len(expected)}"
            shortest = min(len(prompt), len(expected))
            return InvariantVerdict("replay_ids", False, checked, capture.decision, shortest, detail)
        checked += len(prompt) + len(capture.generated_ids)
    if len(captures) != len(expected_prompts):
        detail = f"captures: got {len(captures)}, expected {len(expected_prompts)}"
        return InvariantVerdict("replay_ids", False, checked, min(len(captures), len(expected_prompts)), None, detail)
    return InvariantVerdict("replay_ids", True, checked, None, None, "ids rebuilt from the recorded turns are equal")


def _one_version(captures: Sequence[Capture]) -> InvariantVerdict:
    checked = 0
    for position, capture in enumerate(captures):
        first = captures[0]
        same = (capture.policy_version, capture.identities) == (first.policy_version, first.identities)
        place = len(capture.prompt_ids)
        if not same or capture.decision != position:
            detail = (
                f"policy version: got {capture.policy_version}, expected {first.policy_version} and equal identities"
            )
            return InvariantVerdict("one_version", False, checked, capture.decision, place, detail)
        if capture.sampler_logprobs is not None:
            for offset, value in enumerate(capture.sampler_logprobs):
                if not (math.isfinite(value) and value <= 1e-6) and capture.is_policy_token[offset]:
                    detail = f"log-probability of a sampled token: got {value}, expected a finite value of at most 0"
                    return InvariantVerdict("one_version", False, checked, capture.decision, place + offset, detail)
        checked += sum(capture.is_policy_token)
    return InvariantVerdict(
        "one_version", True, checked, None, None, "each policy token has one version and one sample"
    )


def _causal(turns: Sequence[TurnRecord], terminal: str | None) -> InvariantVerdict:
    fault = relation_fault(turns, terminal)
    if fault is not None:
        return InvariantVerdict("causal_order", False, fault[0], fault[0], None, fault[1])
    for earlier, later in itertools.pairwise(turns):
        if earlier.state_after_sha256 != later.state_before_sha256 or later.parent_decision != earlier.decision:
            detail = "state before the turn differs from the state after its parent"
            return InvariantVerdict("causal_order", False, later.decision, later.decision, None, detail)
    return InvariantVerdict("causal_order", True, len(turns), None, None, "each Observation follows its own call")


def _terminal(
    turns: Sequence[TurnRecord], status: str, terminal: str | None, final_state: str | None, reward: RewardRecord | None
) -> InvariantVerdict:
    name, last = "terminal_agreement", turns[-1] if turns else None

    def broken(detail: str) -> InvariantVerdict:
        return InvariantVerdict(name, False, len(turns), last.decision if last else None, None, detail)

    if status != VALID:
        if reward is not None or terminal is not None:
            return broken("infrastructure-invalid: got a reward or a terminal reason, expected neither")
        return InvariantVerdict(
            name, True, len(turns), None, None, "infrastructure-invalid: no reward, no terminal reason"
        )
    if last is None or reward is None:
        return broken("got no turn or no reward, expected both of a valid trajectory")
    expected = {FINISH: FINISH, UNPARSEABLE: POLICY_ERROR, TOOL: BUDGET_EXHAUSTED}[last.action_kind]
    if terminal != expected:
        return broken(f"terminal: got {terminal}, expected {expected} after {last.action_kind}")
    if last.state_after_sha256 != final_state:
        return broken(f"final state: got {final_state}, expected {last.state_after_sha256}")
    total = reward_total(reward.gate, reward.components)
    if reward.components and abs(total - reward.total) > 1e-9:
        return broken(f"reward: got {reward.total}, expected {total} from its components")
    return InvariantVerdict(name, True, len(turns), None, None, "terminal reason, reward and final state agree")


def invariant_verdicts(
    captures: Sequence[Capture],
    expected_prompts: Sequence[Sequence[int]],
    turns: Sequence[TurnRecord],
    *,
    status: str,
    terminal: str | None,
    final_state: str | None,
    reward: RewardRecord | None,
) -> tuple[InvariantVerdict, ...]:
    """Verdicts of the four invariants (spec "trajectories"), in order.

    ``expected_prompts``: prompt ids of every turn rebuilt from the task and the recorded Observations.
    """
    return (
        _replay(captures, expected_prompts),
        _one_version(captures),
        _causal(turns, terminal),
        _terminal(turns, status, terminal, final_state, reward),
    )


def eligibility(trajectories: Sequence[TrajectoryRecord], slots: int) -> tuple[bool, str | None]:
    """Whether a group may train, else why not. One bad slot rejects the whole group."""
    if len(trajectories) != slots:
        return False, f"incomplete: got {len(trajectories)} trajectories, expected {slots}"
    for item in trajectories:
        if item.status == INFRASTRUCTURE_INVALID:
            return False, f"slot {item.slot}: infrastructure_invalid ({item.invalid_reason})"
        if item.reward is None or not math.isfinite(item.reward.total):
            return False, f"slot {item.slot}: got no finite reward"
        if not item.turns:
            return False, f"slot {item.slot}: got no turn"
        for verdict in item.invariants:
            if not verdict.holds:
                return False, f"slot {item.slot}: invariant {verdict.name} broken ({verdict.detail})"
    for name, values in _shared(trajectories).items():
        if len(values) != 1:
            return False, f"{name}: got {len(values)} values, expected one for the whole group"
    return True, None


def _shared(trajectories: Sequence[TrajectoryRecord]) -> dict[str, set[Any]]:
    return {
        "task": {item.task_uid for item in trajectories},
        "initial state": {item.initial_state_sha256 for item in trajectories},
        "policy version": {turn.policy_version for item in trajectories for turn in item.turns},
        "reward version": {item.reward.version for item in trajectories if item.reward is not None},
    }


def signal_kind(variance: float, successes: Sequence[bool | None]) -> str:
    """SIGNAL, or which kind of zero-variance group it is."""
    if variance > 1e-12:
        return SIGNAL
    if all(successes):
        return ALL_RIGHT
    return ALL_EQUAL if any(successes) else ALL_WRONG
