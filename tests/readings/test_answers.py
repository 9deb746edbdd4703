"""The sentence of each layer: made of measured numbers, silent about the rest and saying so."""

from __future__ import annotations

from django.utils import translation

from runs.presenters.layers.answers import PIECES, QUESTIONS, answers_of
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


def test_sentence_has_a_chinese_form() -> None:
    with translation.override("zh-hans"):
        found = answers_of(signals(line("l2.finish_rate", [0.5])))["L2"]
    assert "50 %" in found.sentence


def test_every_definition_has_a_title_and_every_clause_a_definition() -> None:
    names = {item.name for item in METRIC_DEFINITIONS.values()}
    assert names - set(TITLES) == set() and set(TITLES) - names == set()
    assert {piece.name for pieces in PIECES.values() for piece in pieces} <= names
