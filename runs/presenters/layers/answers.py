# ruff: noqa: E501 - one clause a line
"""The one sentence with which each layer answers its question, made of measured numbers alone.

What was not measured is named after it and never left to be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from runs.presenters.layers.titles import title_of, word_of
from runs.readings.signals import Line, Signals

Text = str | Promise
LAST = 10  # steps that "at the end" averages

QUESTIONS: dict[str, Text] = {
    "L1": _("Is the optimisation working?"),
    "L2": _("How is the policy changing?"),
    "L3": _("Are the data worth something to this policy?"),
    "L4": _("Is it still exploring?"),
    "L5": _("Pattern or memory?"),
    "L6": _("Is the reasoning real?"),
}


@dataclass(frozen=True)
class Piece:
    """One clause: the line that it reads (``name``, ``labels``, ``phase``, ``split``), its words, and how its
    numbers are made. ``bounds``: the words name ``{low}`` and ``{high}``, the interval at the newest step.
    ``every``: over the lines of all epochs together.
    """

    name: str
    words: Text
    numbers: Callable[[Line], dict[str, str]]
    labels: tuple[tuple[str, str], ...] = ()
    phase: str = "train"
    split: str | None = None
    bounds: bool = False
    every: bool = False


@dataclass(frozen=True)
class Answer:
    """``sentence`` is empty where nothing of the layer was measured; ``missing`` names what its clauses lack."""

    layer: str
    question: Text
    sentence: str
    missing: tuple[str, ...]
    rules: tuple[str, ...]


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float) -> str:
    """Three significant digits, whole thousands in full, powers of ten as such, a true minus sign."""
    text = f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    digits, _, power = text.partition("e")
    text = f"{digits}×10{str(int(power)).translate(_RAISED)}" if power else digits
    return text.replace("-", "−", 1) if value < 0 else text


def percent(value: float) -> str:
    """A share in percent, one digit below ten, a true minus sign."""
    text = f"{100 * value:.1f} %" if 0 < abs(value) < 0.1 else f"{100 * value:.0f} %"
    return text.replace("-", "−", 1)


def _end(line: Line) -> float:
    return float(line.values[-LAST:].mean())


def _moves(form: Callable[[float], str]) -> Callable[[Line], dict[str, str]]:
    return lambda line: {"first": form(float(line.values[0])), "last": form(float(line.values[-1]))}


def _ends(form: Callable[[float], str]) -> Callable[[Line], dict[str, str]]:
    return lambda line: {"last": form(_end(line))}


def _spread(line: Line) -> dict[str, str]:
    worst = int(np.argmax(line.values))
    return {
        "median": number(float(np.median(line.values))),
        "largest": number(float(line.values[worst])),
        "step": str(int(line.steps[worst])),
    }


def _newest(form: Callable[[float], str]) -> Callable[[Line], dict[str, str]]:
    return lambda line: {"last": form(float(line.values[-1])), "step": str(int(line.steps[-1]))}


PIECES: dict[str, tuple[Piece, ...]] = {
    "L1": (
        Piece("l1.grad_norm", _("gradient norm {median} in the median, largest {largest} at batch {step}"), _spread, every=True),
        Piece("l1.clip_high_share", _("{last} of trained tokens clipped on the high side"), _ends(percent)),
        Piece("l1.kl_k3_reference", _("KL to the reference {last} nats at batch {step}"), _newest(number)),
        Piece("l1.skipped_share", _("{last} of the last batches skipped"), _ends(percent)),
        Piece("l1.engine_drift_max", _("sampler and trainer differ by at most {largest} nats"), _spread),
    ),
    "L2": (
        Piece("l2.entropy_sampled", _("entropy {first} to {last} nats"), _moves(number), (("segment", "all"),)),
        Piece("l2.response_length", _("{first} to {last} tokens a trajectory"), _moves(number)),
        Piece("l2.tool_calls_mean", _("{last} calls a trajectory"), _ends(number)),
        Piece("l2.repeat_call_rate", _("{last} of them repeats"), _ends(percent)),
        Piece("l2.finish_rate", _("{last} finish"), _ends(percent)),
    ),
    "L3": (
        Piece("l3.reward_mean", _("reward {first} to {last}"), _moves(number)),
        Piece("l3.group_sigma", _("σ of a group {last}"), _ends(number)),
        Piece("l3.zero_variance_share", _("{last} of eligible groups without variance"), _ends(percent)),
        Piece("l3.pass_gap", _("pass@k exceeds pass@1 by {last}"), _ends(number)),
        Piece("l3.effective_batch", _("{last} trajectories carry a batch"), _ends(number)),
    ),
    "L4": (
        Piece("l4.action_edit_distance", _("paths of a group differ by {first}, then {last} of their length"), _moves(percent)),
        Piece("l4.distinct_sequences", _("{last} distinct paths a group"), _ends(number)),
        Piece("l4.step_group_size", _("{last} rollouts share a state"), _ends(number)),
        Piece("l4.state_coverage", _("{last} states a batch"), _ends(number)),
    ),
    "L5": (
        Piece("l5.reward", _("reward {last} on held-out tasks of the training distribution at version {step}"), _newest(number), (), "standard", "test"),
        Piece("l5.reward", _("{last} outside it"), _newest(number), (), "standard", "out_of_distribution"),
        Piece("l5.reward_gap", _("a gap of {last} [{low}, {high}]"), _newest(number), (), "standard", None, True),
        Piece("l5.reward_forgotten", _("{last} [{low}, {high}] forgotten on anchor tasks"), _newest(number), (), "standard", "anchor", True),
    ),
    "L6": (
        Piece("l6.action_unchanged", _("action unchanged {last} with the think segment deleted"), _newest(percent), (("intervention", "delete"),), "probe"),
        Piece("l6.action_unchanged", _("{last} corrupted"), _newest(percent), (("intervention", "corrupt"),), "probe"),
        Piece("l6.action_unchanged", _("{last} paraphrased"), _newest(percent), (("intervention", "paraphrase"),), "probe"),
        Piece("l6.action_unchanged", _("{last} with random tokens in its place"), _newest(percent), (("intervention", "random"),), "probe"),
        Piece("l6.statements_true", _("{last} of its checkable statements true"), _newest(percent), (), "probe"),
        Piece("l6.self_consistency_gap", _("majority vote right on {last} more of the tasks than a single sample"), _newest(percent), (), "probe"),
    ),
}  # fmt: skip


def _bound(piece: Piece, signals: Signals, bound: str, step: int) -> str:
    line = signals.line(piece.name, phase=piece.phase, split=piece.split, bound=bound, **dict(piece.labels))
    places = [] if line is None else np.flatnonzero(line.steps == step).tolist()
    return number(float(line.values[places[0]])) if line is not None and places else "—"


def _joined(lines: Sequence[Line]) -> Line | None:
    """Several lines as one, in order of steps; None for none."""
    if not lines:
        return None
    steps = np.concatenate([line.steps for line in lines])
    order = np.argsort(steps, kind="stable")
    values, counts = (np.concatenate([getattr(line, name) for line in lines])[order] for name in ("values", "counts"))
    return replace(lines[0], labels={}, steps=steps[order], values=values, counts=counts, subjects=())


def _said(piece: Piece, signals: Signals) -> str | None:
    asked: dict[str, Any] = {"phase": piece.phase, "split": piece.split, **dict(piece.labels)}
    line = _joined(signals.every(piece.name, **asked)) if piece.every else signals.line(piece.name, **asked)
    if line is None:
        return None
    numbers = piece.numbers(line)
    if piece.bounds:
        step = int(line.steps[-1])
        numbers |= {bound: _bound(piece, signals, bound, step) for bound in ("low", "high")}
    return str(piece.words).format(**numbers)


def _place(piece: Piece) -> str:
    """What tells a clause from another of the same quantity."""
    parts = [str(word_of(value)) for _, value in piece.labels]
    if piece.split is not None:
        parts.append(str(word_of(piece.split)))
    return f" ({gettext(', ').join(parts)})" if parts else ""


def answer_of(layer: str, signals: Signals, pieces: Sequence[Piece] | None = None) -> Answer:
    """The sentence of a layer, the clauses that could not be said, and how each number is made."""
    parts, missing, rules = [], [], []
    for piece in PIECES[layer] if pieces is None else pieces:
        said = _said(piece, signals)
        label = _place(piece)
        if said is None:
            missing.append(f"{title_of(piece.name)}{label}")
            continue
        parts.append(said)
        rules.append(f"{piece.name}{label}: {said}")
    joined = gettext("; ").join(parts)
    sentence = joined[:1].upper() + joined[1:] + gettext(".") if joined else ""
    return Answer(layer, QUESTIONS[layer], sentence, tuple(missing), tuple(rules))


def answers_of(signals: Signals) -> dict[str, Answer]:
    """The answers of all layers."""
    found: dict[str, Any] = {layer: answer_of(layer, signals) for layer in QUESTIONS}
    return found
