"""Numbered rollout semantics, with a scripted sampler in the place of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from tests.engine.support import TinyEnvironment, TinyFormatter
from workbench.contracts.capture import Capture
from workbench.contracts.jobs import CollectSpec, GroupSpec, SlotSpec
from workbench.contracts.records import (
    BUDGET_EXHAUSTED,
    FINISH,
    INFRASTRUCTURE_INVALID,
    POLICY_ERROR,
    REALIZED,
    UNREACHED,
    VALID,
    TrajectoryRecord,
)
from worker.engine.collect import World, trajectory_record
from worker.engine.records import GeneratedTurn, Rollout, RowStart
from worker.engine.rollout import RolloutSettings, run_rollouts

TASK = TinyEnvironment({}).tasks()[0]
UID = TASK.uid(f"{TinyEnvironment.id}/1")
IDENTITIES = {
    name: "0" * 64 for name in ("base_model", "adapter", "tokenizer", "formatter", "environment", "harness", "runtime")
}


class ScriptedSampler:
    """Rows say what a script says: one text a decision."""

    def __init__(self, formatter: TinyFormatter, scripts: Sequence[Sequence[str]], room: int = 500):
        self.formatter, self.scripts, self.limit = formatter, scripts, room
        self.contexts: dict[int, list[int]] = {}
        self.decisions: dict[int, int] = {}

    def open(self, starts: Sequence[RowStart]) -> list[int]:
        for row, start in enumerate(starts):
            self.contexts[row], self.decisions[row] = list(start.prompt_ids), 0
        return list(self.contexts)

    def room(self, row: int) -> int:
        return self.limit - len(self.contexts[row])

    def append(self, row: int, ids: Sequence[int]) -> None:
        self.contexts[row] += ids

    def close(self, rows: Sequence[int]) -> None:
        for row in rows:
            del self.contexts[row]

    def generate(self, rows: Sequence[int], *, until: int | None = None) -> list[GeneratedTurn]:
        found = []
        for row in list(rows)[: until or len(rows)]:
            decision = self.decisions[row]
            ids = tuple(self.formatter.encode(self.scripts[row][decision]))
            prompt = tuple(self.contexts[row])
            zeros = (-1.0,) * len(ids)
            found.append(GeneratedTurn(row, decision, prompt, ids, zeros, (0.5,) * len(ids), True))
            self.contexts[row] += ids
            self.decisions[row] += 1
        return found


@pytest.fixture
def formatter(model_folder: Any) -> TinyFormatter:
    return TinyFormatter(PreTrainedTokenizerFast.from_pretrained(model_folder))


Run = Callable[..., list[TrajectoryRecord]]


@pytest.fixture
def run(formatter: TinyFormatter) -> Run:
    def play(
        *scripts: Sequence[str], injected: tuple[int, ...] = (), budget: int = 6, config: dict[str, Any] | None = None,
        room: int = 500,
    ) -> list[TrajectoryRecord]:  # fmt: skip
        environment = TinyEnvironment(config or {})
        slots = tuple(SlotSpec(f"t{index}", index, str(index)) for index in range(len(scripts)))
        group = GroupSpec("g", 0, UID, "control", injected, slots)
        sampler: Any = ScriptedSampler(formatter, scripts, room)
        settings = RolloutSettings(IDENTITIES, 4, {"temperature": 1.0}, budget)
        rollouts: dict[str, Rollout] = run_rollouts([group], {UID: TASK}, environment, formatter, sampler, settings)
        play.rollouts = rollouts  # type: ignore[attr-defined]
        spec = CollectSpec("r", "p", "train", "train", "train", None, None, {"id": "tiny", "version": "1"}, {}, budget,
                           None, "x", (group,))  # type: ignore[arg-type] # fmt: skip
        world = World(environment, {UID: TASK}, formatter)
        return [trajectory_record(rollouts[slot.trajectory_uid], group, world, spec) for slot in slots]

    return play


def test_1_every_turn_is_captured_from_the_ids_used(run: Run, formatter: TinyFormatter) -> None:
    (record,) = run(["a.", "xf."])
    captures = [Capture.from_bytes(data) for data in run.rollouts["t0"].captures]  # type: ignore[attr-defined]
    assert [item.sha256() for item in captures] == [turn.capture_sha256 for turn in record.turns]
    assert captures[0].generated_ids.tolist() == formatter.encode("a.")
    assert captures[1].prompt_ids.tolist() == formatter.encode("xyz|ab>a.|a:y>")
    assert captures[1].parent_decision == 0 and captures[1].policy_version == 4
    assert all(verdict.holds for verdict in record.invariants)


def test_2_no_legal_action_is_a_policy_error_with_reward_zero(run: Run) -> None:
    (record,) = run(["a.", "??."])
    assert (record.status, record.terminal) == (VALID, POLICY_ERROR)
    assert record.reward is not None and record.reward.total == 0.0 and record.reward.gate == 0.0
    assert record.facts is not None and not record.facts.parser_valid and record.facts.tool_depth == 1
    assert record.turns[-1].parse_error == "no action" and record.turns[-1].observation is None


def test_3_schedule_reads_tool_call_ordinals_before_the_backend(run: Run) -> None:
    """Ordinals 0 and 2 of b b a F: the first b fails, the second reaches the backend, a fails."""
    (record,) = run(["b.", "b.", "a.", "f."], injected=(0, 2), config={"crash_on": "a"})
    calls = [turn.tool_call for turn in record.turns if turn.tool_call]
    assert [call.backend_called for call in calls] == [False, True, False]  # a would have crashed the backend
    assert [turn.observation.status for turn in record.turns if turn.observation] == ["timeout", "ok", "timeout"]
    assert [item.state for item in record.injections] == [REALIZED, REALIZED]
    assert record.turns[0].state_before_sha256 == record.turns[0].state_after_sha256
    assert [call.is_repeat for call in calls] == [False, True, False]
    assert record.facts is not None and record.facts.recovered is True


def test_3_unreached_injections_are_reported(run: Run) -> None:
    (record,) = run(["a.", "f."], injected=(0, 3))
    assert [(item.ordinal, item.state) for item in record.injections] == [(0, REALIZED), (3, UNREACHED)]


def test_4_last_action_of_the_budget_is_not_executed(run: Run) -> None:
    """Budget 3: a, b run; c is emitted and stays without Observation, though scheduled to fail."""
    (record,) = run(["a.", "b.", "c."], budget=3, injected=(2,))
    assert record.terminal == BUDGET_EXHAUSTED and record.facts is not None and record.facts.unmatched_final_action
    last = record.turns[-1]
    assert last.tool_call is not None and not last.tool_call.executed and last.tool_call.is_productive is None
    assert last.observation is None and record.facts.tool_depth == 2
    assert record.injections[0].state == UNREACHED
    assert record.reward is not None and record.reward.total == 0.5  # two productive calls, computed normally
    assert all(verdict.holds for verdict in record.invariants)


def test_4_finish_on_the_last_decision_counts(run: Run) -> None:
    assert run(["a.", "f."], budget=2)[0].terminal == FINISH


def test_4_spent_context_ends_like_a_spent_budget(run: Run) -> None:
    """Prompt of 7 ids + 2 generated leave no room for the Observation's 5: the executed call keeps it."""
    (record,) = run(["a.", "f."], room=12)
    assert record.terminal == BUDGET_EXHAUSTED and record.turns[-1].observation is not None


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"break_on": "b"}, "environment: EnvironmentFault: backend: got b"),
        ({"crash_on": "b"}, "environment: ZeroDivisionError: a bug in the backend"),
    ],
)
def test_5_broken_backend_invalidates_its_slot_alone(run: Run, config: dict[str, Any], reason: str) -> None:
    broken, sound = run(["b.", "f."], ["a.", "f."], config=config)
    assert broken.status == INFRASTRUCTURE_INVALID and broken.invalid_reason is not None
    assert broken.invalid_reason.startswith(reason)
    assert broken.reward is None and broken.terminal is None and broken.facts is None and broken.success is None
    assert len(broken.turns) == 1  # the decision was made, and captured
    assert sound.status == VALID and sound.reward is not None and sound.reward.total == 0.75


def test_5_world_that_does_not_start(run: Run) -> None:
    (record,) = run(["a."], config={"refuse_task": "t0"}, injected=(1,))
    assert record.status == INFRASTRUCTURE_INVALID and record.turns == ()
    assert record.injections[0].state == UNREACHED


def test_5_reward_that_is_not_finite_is_infrastructure(run: Run) -> None:
    (record,) = run(["f."], config={"reward": "nan"})
    assert record.status == INFRASTRUCTURE_INVALID and record.reward is None and record.facts is None
    assert record.invalid_reason == "reward.total: got nan, expected a finite number"


def test_infrastructure_failures_are_no_fatal(run: Run) -> None:
    """Two failures, then the backend breaks: no third failed Observation, no facts at all."""
    (record,) = run(["d.", "d.", "b."], config={"break_on": "b"})
    assert record.facts is None and record.status == INFRASTRUCTURE_INVALID


def test_environment_errors_count_towards_fatal(run: Run) -> None:
    """d always fails: Fatal 0 to 2, and the environment goes on to the Finish."""
    (record,) = run(["d.", "d.", "d.", "f."])
    assert record.facts is not None
    assert (record.facts.fatal_start, record.facts.fatal_confirmed, record.facts.continued_after_fatal) == (0, 2, True)
    assert record.terminal == FINISH


def test_broken_replay_names_decision_and_token(run: Run, formatter: TinyFormatter, monkeypatch: Any) -> None:
    """The formatter changes its mind about an Observation: replay_ids fails at the first differing id."""
    calls = iter(range(100))
    plain = formatter.observe
    monkeypatch.setattr(formatter, "observe", lambda text: plain(text if next(calls) == 0 else "z" + text[1:]))
    (record,) = run(["a.", "f."])
    verdict = record.invariants[0]
    assert (verdict.name, verdict.holds, verdict.failing_decision) == ("replay_ids", False, 1)
    assert verdict.failing_token == len(formatter.encode("xyz|ab>a.|"))
