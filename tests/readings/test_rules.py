# ruff: noqa: E501 - one case a line
"""Each rule of the table: one case that fires, one that does not, and one where it cannot tell."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from runs.presenters.layers.answers import answers_of
from runs.readings.fire import Fact
from runs.readings.fired import READ
from runs.readings.rules import FIRED, QUIET, UNMEASURED
from runs.readings.signals import Line, Signals
from runs.readings.table import BY_ID, HEALTHY, READINGS, WARNING

from .lines import line, ramp, signals, wobble

ENTROPY = "l2.entropy_sampled"


def entropy(values: list[float]) -> Line:
    return line(ENTROPY, values, segment="all")


def probes(share: float, corrupted: float | None = None) -> list[Line]:
    shares = {"delete": share, "corrupt": share if corrupted is None else corrupted}
    return [
        line(f"l6.{name}_unchanged", [value], phase="probe", start=20, intervention=intervention)
        for name in ("action", "answer")
        for intervention, value in shares.items()
    ]


def gaps(values: list[float], low: list[float]) -> list[Line]:
    labels = {"outside": "out_of_distribution"}
    return [
        line("l5.reward_gap", values, phase="standard", **labels),
        line("l5.reward_gap", low, phase="standard", bound="low", **labels),
    ]


SPIKE = [1.0 + 0.01 * (i % 3) for i in range(20)]
CASES: dict[str, tuple[list[Line], list[Line]]] = {  # rule -> lines that fire it, lines that do not
    "narrow_mode": (
        [entropy(ramp(1.0, 0.4)), line("l1.clip_high_share", ramp(0.0, 0.2))],
        [entropy(ramp(1.0, 0.4)), line("l1.clip_high_share", wobble(0.1))],
    ),
    "concentrating": (
        [line("l3.reward_mean", ramp(0.3, 0.6)), line("l3.success_rate", ramp(0.2, 0.4)), line("l3.pass_gap", ramp(0.3, 0.1))],
        [line("l3.reward_mean", ramp(0.3, 0.6)), line("l3.success_rate", [0.3 + 0.1 * (i % 3) + 0.002 * i for i in range(24)]), line("l3.pass_gap", wobble(0.3))],
    ),
    "padding": (
        [line("l2.response_length", ramp(60, 90)), line("l3.success_rate", wobble(0.4))],
        [line("l2.response_length", ramp(60, 90)), line("l3.success_rate", ramp(0.2, 0.5))],
    ),
    "mechanical_calls": (
        [line("l2.tool_calls_mean", wobble(5.5)), line("l3.reward_mean", wobble(0.5)), line("l2.repeat_call_rate", wobble(0.3))],
        [line("l2.tool_calls_mean", wobble(2.5)), line("l3.reward_mean", wobble(0.5)), line("l2.repeat_call_rate", wobble(0.3))],
    ),
    "all_right": ([line("l3.zero_all_right_share", wobble(0.6))], [line("l3.zero_all_right_share", wobble(0.2))]),
    "all_wrong": (
        [line("l3.zero_all_wrong_share", wobble(0.7)), line("l2.infrastructure_invalid_share", wobble(0.1, size=0.0))],
        [line("l3.zero_all_wrong_share", wobble(0.1))],
    ),
    "paths_collapse": ([line("l4.action_edit_distance", ramp(0.8, 0.1))], [line("l4.action_edit_distance", ramp(0.8, 0.7))]),
    "early_collapse": ([entropy(ramp(1.0, 0.3))], [entropy(ramp(1.0, 0.8))]),
    "gradient_spike": ([line("l1.grad_norm", [*SPIKE, 9.0])], [line("l1.grad_norm", SPIKE)]),
    "widening_gap": (
        gaps([0.02, 0.12], low=[-0.1, 0.05]),
        gaps([0.02, 0.12], low=[-0.1, 0.01]),  # the interval holds the first gap
    ),
    "decoration": (probes(0.95), probes(0.95, corrupted=0.3)),
    "still_rising": ([line("l3.reward_mean", ramp(0.2, 0.9, 40))], [line("l3.reward_mean", [*ramp(0.2, 0.9, 20), *wobble(0.9, 20)])]),
    "uneven_calls": (
        [line("l2.tool_calls_variance", wobble(6.0)), line("l2.tool_calls_mean", wobble(2.0))],
        [line("l2.tool_calls_variance", wobble(1.0)), line("l2.tool_calls_mean", wobble(2.0))],
    ),
    "open_and_unclipped": (
        [entropy(wobble(0.9)), line("l1.clip_high_share", wobble(0.001, size=0.001)), line("l1.clip_low_share", [0.0] * 24)],
        [entropy(wobble(0.9)), line("l1.clip_high_share", wobble(0.1)), line("l1.clip_low_share", [0.0] * 24)],
    ),
    "longer_and_better": (
        [line("l2.response_length", ramp(60, 90)), line("l3.success_rate", ramp(0.2, 0.5))],
        [line("l2.response_length", ramp(60, 90)), line("l3.success_rate", wobble(0.4))],
    ),
    "needed_calls": (
        [line("l2.productive_call_rate", wobble(0.95)), line("l2.tool_calls_mean", wobble(2.0))],
        [line("l2.productive_call_rate", wobble(0.5)), line("l2.tool_calls_mean", wobble(2.0))],
    ),
    "latent_ability": ([line("l3.pass_gap", wobble(0.35))], [line("l3.pass_gap", wobble(0.05))]),
}  # fmt: skip


def test_every_reading_has_a_case() -> None:
    assert set(CASES) == set(BY_ID) and len(BY_ID) == len(READINGS)
    assert {reading.kind for reading in READINGS} == {WARNING, HEALTHY}


@pytest.mark.parametrize("rule", CASES)
def test_rule_fires_on_its_pattern_and_is_quiet_without_it(rule: str) -> None:
    reading = BY_ID[rule]
    fires, quiet = (reading.rule(signals(*lines), reading.thresholds) for lines in CASES[rule])
    assert (fires.state, quiet.state) == (FIRED, QUIET)
    assert fires.steps is not None and fires.steps[0] <= fires.steps[1]
    assert fires.evidence and all(item.points for item in fires.evidence)
    str(reading.statement).format(
        **{name: Fact(value) for name, value in fires.facts.items()}
    )  # every number that the sentence names is there


@pytest.mark.parametrize("rule", CASES)
def test_rule_names_what_is_missing_and_never_guesses(rule: str) -> None:
    reading = BY_ID[rule]
    empty = reading.rule(Signals(()), reading.thresholds)
    assert empty.state == UNMEASURED and empty.missing and not empty.evidence
    for left_out in {item.definition for item in CASES[rule][0]} - {"l2.infrastructure_invalid_share/1"}:
        kept = [item for item in CASES[rule][0] if item.definition != left_out]
        assert reading.rule(signals(*kept), reading.thresholds).state == UNMEASURED


@pytest.mark.parametrize("reading", READINGS, ids=lambda item: item.id)
def test_texts_are_complete(reading: object) -> None:
    assert (
        len(reading.hypotheses) >= 2
        and reading.limits
        and reading.experiment
        and reading.why
        and reading.layer in {f"L{n}" for n in range(1, 7)}
    )  # type: ignore[attr-defined]


def test_spike_names_its_step_and_the_update_behind_it() -> None:
    """Values 1.00, 1.01, 1.02 repeating, median 1.01, MAD 0.01: limit max(1.01 + 6 x 1.4826 x 0.01, 3.03) = 3.03."""
    reading = BY_ID["gradient_spike"]
    found = reading.rule(signals(line("l1.grad_norm", [*SPIKE, 9.0])), reading.thresholds)
    assert found.facts["step"] == 20 and found.facts["value"] == 9.0 and found.facts["limit"] == pytest.approx(3.03)
    assert found.evidence[0].points == ((20, 9.0, "u20"),)


def test_mechanical_calls_need_the_budget() -> None:
    reading = BY_ID["mechanical_calls"]
    found = reading.rule(signals(*CASES["mechanical_calls"][0], budget=None), reading.thresholds)
    assert (found.state, found.missing) == (UNMEASURED, ("rollout.max_decisions",))


def test_a_noisy_rise_is_no_flat_line() -> None:
    """Success by 4-step waves from 0.34 to 0.53 without a proven trend: neither padding nor concentrating."""
    waves = [0.2 + 0.4 * (i % 4 == 0) + 0.008 * i for i in range(24)]
    length, reward = line("l2.response_length", ramp(60, 90)), line("l3.reward_mean", ramp(0.3, 0.6))
    given = signals(length, reward, line("l3.success_rate", waves), line("l3.pass_gap", wobble(0.2)))
    for rule in ("padding", "concentrating"):
        reading = BY_ID[rule]
        found = reading.rule(given, reading.thresholds)
        assert found.state == QUIET and found.facts["second_to"] - found.facts["second_from"] > 0.05


def test_pass_at_k_at_its_ceiling_cannot_rise() -> None:
    reading = BY_ID["concentrating"]
    given = signals(
        line("l3.reward_mean", ramp(0.8, 0.95)), line("l3.success_rate", wobble(0.9)), line("l3.pass_gap", [0.08] * 24)
    )
    assert reading.rule(given, reading.thresholds).state == QUIET


def test_decoration_shows_the_control_and_needs_enough_decisions() -> None:
    """0.95 unchanged under deletion and corruption; 0.3 with random tokens; four decisions say nothing."""
    reading, control = BY_ID["decoration"], line("l6.action_unchanged", [0.3], phase="probe", intervention="random")
    found = reading.rule(signals(*probes(0.95), control), reading.thresholds)
    assert (found.state, found.facts) == (FIRED, {"share": 0.95, "control": 0.3})
    few = [dataclasses.replace(item, counts=np.array([4])) for item in probes(0.95)]
    found = reading.rule(signals(*few), reading.thresholds)
    assert (found.state, found.missing) == (UNMEASURED, ("l6.action_unchanged (delete): 4 decisions",))


def test_bounds_of_intervals_never_stand_for_the_value() -> None:
    given = signals(*gaps([0.02], low=[-0.1, -0.2, -0.3]))
    assert len(given.line("l5.reward_gap", phase="standard")) == 1
    assert len(given.line("l5.reward_gap", phase="standard", bound="low")) == 3


def test_cached_warnings_read_every_definition_that_a_rule_reads() -> None:
    assert {item.definition for fires, quiet in CASES.values() for item in (*fires, *quiet)} <= set(READ)


def test_a_spike_of_any_epoch_is_told() -> None:
    """Epoch 0 reaches 9 times its limit, epoch 1 stays below: the spike is that of epoch 0."""
    reading = BY_ID["gradient_spike"]
    given = signals(line("l1.grad_norm", [*SPIKE, 9.0], epoch="0"), line("l1.grad_norm", [*SPIKE, 1.5], epoch="1"))
    found = reading.rule(given, reading.thresholds)
    assert found.state == FIRED and found.facts["value"] == 9.0 and found.evidence[0].labels == {"epoch": "0"}
    sentence = answers_of(given)["L1"].sentence
    assert sentence == "Gradient norm 1.01 in the median, largest 9 at batch 20."
