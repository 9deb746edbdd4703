"""The probe operation on a random policy: noise, forced segments, cost, and what is unavailable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evidence.checks.probes import _counted
from tests.engine.conftest import TinyWorld
from tests.engine.probe_world import ThinkingEnvironment, probe_spec
from tests.engine.support import LORA, TinyEnvironment
from workbench.contracts.canonical import parse_canonical
from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import DescribeSpec, EnvironmentRef
from workbench.contracts.probe import ProbeRecord, ProbeResult, ProbeTrial
from workbench.contracts.wire import parse_record
from worker.engine import policy as policy_module
from worker.engine import probe_think, train
from worker.engine.probe import _waves, probe

MADE: dict[str, ProbeResult] = {}
THINKING = "tests.engine.probe_world:ThinkingFormatter"


@pytest.fixture
def probed(make_world: Callable[..., TinyWorld]) -> Callable[..., ProbeResult]:
    """Probe the parent; ``formatter``, ``environment`` and ``config`` choose the world, the rest the probe.

    A probe is a function of its specification, as the first test shows: the others share their results.
    """

    def run(
        formatter: str = THINKING,
        environment: str = ThinkingEnvironment.id,
        config: dict[str, Any] | None = None,
        spec: dict[str, Any] | None = None,
        again: bool = False,
        **changes: Any,
    ) -> ProbeResult:
        key = repr((formatter, environment, config, spec, changes))
        if key in MADE and not again:
            return MADE[key]
        world = make_world()
        world.spec = DescribeSpec(world.spec.model, "float32", LORA, formatter, environment, config or {})
        policy_module.clear_residents()
        world.described = found = train.describe(world.spec, world.store, cache_dir=world.cache_dir)
        world.task_uids = [item["uid"] for item in parse_canonical(world.store.get(found.task_set_sha256))]
        reference = EnvironmentRef(
            environment, found.environment_version, found.environment_code_sha256, config or {}, found.task_set_sha256
        )
        collect = world.collect_spec(groups=6, slots=1, environment=reference, **(spec or {}))
        MADE[key] = probe(probe_spec(collect, **changes), world.store, cache_dir=world.cache_dir)
        return MADE[key]

    return run


def read(result: ProbeResult) -> ProbeRecord:
    return parse_record(ProbeRecord, result.record_json.encode())


def trials(made: ProbeRecord, kind: str) -> list[ProbeTrial]:
    every = [item for task in made.tasks for probed in task.decisions for item in probed.trials]
    return [item for item in every if item.intervention == kind]


def value(result: ProbeResult, name: str, **labels: str) -> float | None:
    (found,) = [item for item in result.metrics if item.definition == f"l6.{name}/1" and item.labels == labels]
    return found.value


def test_a_probe_is_a_function_of_its_specification(probed: Callable[..., ProbeResult]) -> None:
    """Bytes are equal, and nothing that was measured in seconds is among them."""
    first, again = probed(), probed(again=True)
    assert first.record_json == again.record_json and first.metrics == again.metrics
    assert set(first.timing) == {"load_seconds", "seconds", "cpu_seconds", "policy_tokens", "ingested_tokens"}
    assert "seconds" not in first.record_json


def test_the_untouched_segment_gives_the_rollouts_own_continuation(probed: Callable[..., ProbeResult]) -> None:
    """Same prefix, same noise: the same ids to the end of the episode. So a difference is the intervention's."""
    made = read(probed())
    decisions = [(task, item) for task in made.tasks for item in task.decisions]
    assert len(decisions) >= 4
    for task, item in decisions:
        factual = item.trials[0].sample
        assert factual is not None
        own = [turn for turn in task.repeats[0].sample.turns if turn.decision >= item.decision]
        assert [turn.generated_ids for turn in factual.turns] == [turn.generated_ids for turn in own]
        assert factual.turns[0].forced == item.noise_token and factual.success == task.repeats[0].sample.success
    assert value(probed(), "reproduced") == 1.0


def test_only_the_think_segment_differs_between_trials(probed: Callable[..., ProbeResult]) -> None:
    """Each trial's turn begins with its own segment and the mark; random tokens are as many as the segment has."""
    made = read(probed())
    for task in made.tasks:
        for item in task.decisions:
            inner = item.noise_token - 1
            for trial in item.trials:
                if trial.sample is None:
                    assert trial.reason
                    continue
                first = trial.sample.turns[0]
                forced = first.generated_ids[: first.forced]
                assert forced == (
                    trial.think_ids if trial.intervention == "factual" else (*trial.think_ids, forced[-1])
                )
                if trial.intervention == "random":
                    assert len(trial.think_ids) == inner
                if trial.intervention == "delete":
                    assert first.forced == 1 and trial.think_text == ""


def test_what_a_corrupted_text_states_is_recorded(probed: Callable[..., ProbeResult]) -> None:
    """``corrupt_thought`` moves the first letter on by one; the stated action is the one of that letter."""
    found = [item for item in trials(read(probed()), "corrupt") if item.sample is not None]
    assert found and all(item.states_action is not None for item in found)
    for item in found:
        assert item.states_action == {"tool": "look", "arguments": {"key": (item.think_text or "?")[0]}}


def test_every_sampled_token_is_counted(probed: Callable[..., ProbeResult]) -> None:
    """The sampler's own count is that of the recorded ids without the forced ones."""
    made = read(probed())
    assert [(expected, got) for _, expected, got in _counted(made) if expected != got] == []
    assert made.cost.factual == 12 and made.cost.policy_tokens > 0


def test_chosen_decisions_spread_from_first_to_last() -> None:
    """Of decisions 0, 2, 3, 5, 6 (1 has no think segment, 4 no action): one, two, three, and all."""

    class Turn:
        def __init__(self, decision: int, think: str | None, finish: dict[str, Any] | None):
            self.decision, self.think_text, self.finish, self.tool_call = decision, think, finish, None

    given = {"answer": "a", "citations": []}
    turns: Any = [Turn(i, None if i == 1 else "t", None if i == 4 else given) for i in range(7)]
    chosen = [probe_think.chosen_decisions(turns, most) for most in (1, 2, 3, 9)]
    assert chosen == [[0], [0, 6], [0, 3, 6], [0, 2, 3, 5, 6]]


def test_waves_hold_at_most_the_rows() -> None:
    assert [list(item) for item in _waves([3, 3, 3, 1], 6)] == [[0, 1], [2, 3]]
    assert list(_waves([], 4)) == []


def test_without_a_reading_environment_two_interventions_are_unavailable(probed: Callable[..., ProbeResult]) -> None:
    """Deletion and the random control need none; corruption, paraphrase and truth say why they are missing."""
    result = probed(environment=TinyEnvironment.id)
    made = read(result)
    (unavailable,) = made.unavailable
    assert unavailable.part == "thoughts" and "read_thought" in unavailable.reason
    for kind in ("corrupt", "paraphrase"):
        assert {(item.state, item.reason) for item in trials(made, kind)} == {("unavailable", unavailable.reason)}
        assert value(result, "action_unchanged", intervention=kind) is None
        assert value(result, "unmeasured_share", intervention=kind) == 1.0
    assert value(result, "action_unchanged", intervention="delete") is not None
    for name in ("statements_true", "think_action_nmi", "think_action_agreement", "think_readable"):
        assert value(result, name) is None
    assert value(result, "single_correct") is not None


def test_a_formatter_that_forces_nothing_leaves_every_intervention_unavailable(
    probed: Callable[..., ProbeResult],
) -> None:
    """Its turns have no think segment either: nothing to change, nothing regenerated, and the record says so."""
    result = probed(formatter="tests.engine.support:TinyFormatter")
    made = read(result)
    assert [item.part for item in made.unavailable] == ["interventions"] and made.cost.regenerated == 0
    assert value(result, "think_share") == 0.0 and value(result, "action_unchanged", intervention="delete") is None


@pytest.mark.parametrize(("fault", "said"), [("read", "ZeroDivisionError"), ("same", "the segment itself")])
def test_code_of_an_environment_that_breaks_fails_its_trial_alone(
    probed: Callable[..., ProbeResult], fault: str, said: str
) -> None:
    result = probed(config={"thoughts": fault})
    made = read(result)
    if fault == "same":
        failed = [item for item in trials(made, "corrupt") if item.state == "failed"]
        assert failed and all(said in str(item.reason) for item in failed)
    else:
        states = {(item.state, said in str(item.reason)) for task in made.tasks for item in task.thoughts}
        assert states <= {("failed", True), ("absent", False)} and ("failed", True) in states
        assert value(result, "think_readable") is None
    assert value(result, "action_unchanged", intervention="delete") is not None


def test_a_broken_backend_leaves_its_task_without_decisions(probed: Callable[..., ProbeResult]) -> None:
    """Infrastructure is no verdict on the policy: the repeat is invalid, with its reason, and no share counts it."""
    made = read(probed(config={"refuse_task": "t0"}))
    broken = made.tasks[0]
    assert broken.decisions == () and broken.thoughts == ()
    assert {item.sample.state for item in broken.repeats} == {"infrastructure_invalid"}
    assert all("no such world" in str(item.sample.invalid_reason) for item in broken.repeats)


@pytest.mark.parametrize("changes", [{"rows": 2}, {"rows": 33}])
def test_rows_that_do_not_hold_a_task_are_refused(probed: Callable[..., ProbeResult], changes: dict[str, int]) -> None:
    with pytest.raises(EngineFault, match=r"rows: got 3 repeats in"):
        probed(**changes)


def test_another_runtime_is_refused(probed: Callable[..., ProbeResult]) -> None:
    with pytest.raises(EngineFault, match="runtime: got"):
        probed(spec={"runtime": "0" * 64})


def test_random_ids_are_ordinary_tokens(make_world: Callable[..., TinyWorld]) -> None:
    """As many as asked for, none special, a function of the seed."""
    world = make_world()
    policy = policy_module.load_policy(world.policy_ref(), world.store, cache_dir=world.cache_dir)
    drawn = probe_think.random_ids(policy, 40, "5")
    assert len(drawn) == 40 and drawn == probe_think.random_ids(policy, 40, "5")
    assert drawn != probe_think.random_ids(policy, 40, "6")
    assert not set(drawn) & set(policy.tokenizer.all_special_ids)
