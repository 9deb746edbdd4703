"""The sentence of each layer: made of measured numbers, silent about the rest and saying so."""

from __future__ import annotations

import dataclasses

from django.utils import translation

from runs.presenters.layers.answers import PIECES, QUESTIONS, answers_of, number, percent
from runs.presenters.layers.titles import TITLES
from runs.readings.signals import Signals
from workbench.contracts.metrics import METRIC_DEFINITIONS

from .lines import line, signals


def test_nothing_measured_says_nothing_and_names_all() -> None:
    for layer, answer in answers_of(Signals(())).items():
        assert (
            answer.sentence == "" and len(answer.missing) == len(PIECES[layer]) and answer.question == QUESTIONS[layer]
        )


def test_signal_sentence_by_hand() -> None:
    """Reward 0.25 to 0.5; sigma mean of the last ten steps 0.2; half of the groups without variance."""
    found = answers_of(
        signals(
            line("l3.reward_mean", [0.25, 0.4, 0.5]), line("l3.group_sigma", [0.9] * 10 + [0.1, 0.3] * 5),
            line("l3.zero_variance_share", [0.5]),
        )
    )["L3"]  # fmt: skip
    assert found.sentence == "Reward 0.25 to 0.5; σ of a group 0.2; 50 % of eligible groups without variance."
    assert found.missing == ("pass@k − pass@1", "Effective batch") and len(found.rules) == 3


def test_probe_sentence_reads_the_interventions() -> None:
    found = answers_of(
        signals(
            line("l6.action_unchanged", [0.9, 0.4], phase="probe", intervention="delete"),
            line("l6.action_unchanged", [0.05], phase="probe", intervention="random"),
        )
    )["L6"]
    assert found.sentence == (
        "Action unchanged 40 % with the think segment deleted; 5.0 % with random tokens in its place."
    )


def test_generalisation_sentence_has_the_interval_of_the_newest_checkpoint() -> None:
    """Gap 0.3 at version 1; its bounds there are 0.1 and 0.5, those of version 0 do not count."""
    both = {"outside": "out_of_distribution"}
    given = [
        line("l5.reward", [0.7, 0.9], phase="standard"),
        line("l5.reward_gap", [0.2, 0.3], phase="standard", **both),
        line("l5.reward_gap", [0.0, 0.1], phase="standard", bound="low", **both),
        line("l5.reward_gap", [0.4, 0.5], phase="standard", bound="high", **both),
        line("l5.reward_forgotten", [-0.02], phase="standard"),
    ]
    given = [dataclasses.replace(item, split="anchor" if "forgotten" in item.definition else "test") for item in given]
    found = answers_of(signals(*given))["L5"]
    assert found.sentence == (
        "Reward 0.9 on held-out tasks of the training distribution at version 1; a gap of 0.3 [0.1, 0.5]; "
        "−0.02 [—, —] forgotten on anchor tasks."
    )
    assert found.missing == ("Held-out reward (out of distribution)",)


def test_numbers_of_sentences() -> None:
    """A true minus, thousands in full, powers of ten written out, no decimals for a share of nothing."""
    shown = [number(value) for value in (0.06581, -1.5, 1578.2, 4.4e-6, 0.0, 2.5e7)]
    assert shown == ["0.0658", "−1.5", "1578", "4.4×10⁻⁶", "0", "2.5×10⁷"]
    assert [percent(value) for value in (0.0, 0.047, 0.5, -0.02)] == ["0 %", "4.7 %", "50 %", "−2.0 %"]


def test_sentence_has_a_chinese_form() -> None:
    with translation.override("zh-hans"):
        found = answers_of(signals(line("l2.finish_rate", [0.5])))["L2"]
    assert "50 %" in found.sentence


def test_every_definition_has_a_title_and_every_clause_a_definition() -> None:
    names = {item.name for item in METRIC_DEFINITIONS.values()}
    assert names - set(TITLES) == set() and set(TITLES) - names == set()
    assert {piece.name for pieces in PIECES.values() for piece in pieces} <= names
