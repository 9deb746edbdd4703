"""The functions behind the readings. Each takes the signals of a run and its thresholds, and says one of three
things: it fired (with steps and evidence), it did not (with what it saw), or it cannot tell (with what is missing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runs.readings.signals import Line, Signals
from runs.readings.trend import FALLING, FLAT, RISING, SHORT, Trend, trend

FIRED, QUIET, UNMEASURED = "fired", "quiet", "unmeasured"
Thresholds = Mapping[str, float]


@dataclass(frozen=True)
class Evidence:
    """One line that a rule looked at: values at the steps that matter, first to last."""

    definition: str
    phase: str
    split: str
    labels: dict[str, str]
    points: tuple[tuple[int, float, str], ...]  # step, value, uid of what stands behind it ("" none)
    trend: str
    z: float | None


@dataclass(frozen=True)
class Outcome:
    """``steps``: first and last step that the statement is about. ``facts``: numbers for the sentence.

    ``missing``: definitions (or a reason) without which the rule cannot tell.
    """

    state: str
    steps: tuple[int, int] | None = None
    evidence: tuple[Evidence, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


Rule = Callable[[Signals, Thresholds], Outcome]
_KEPT = 12  # points of a line shown as evidence: ends and an even sample between


def evidence(line: Line, seen: Trend | None = None, positions: Sequence[int] | None = None) -> Evidence:
    """A line with some of its points; the ends always, or exactly ``positions``."""
    if positions is None:
        positions = sorted({round(item) for item in np.linspace(0, len(line) - 1, min(_KEPT, len(line)))})
    points = tuple(
        (int(line.steps[i]), float(line.values[i]), line.subjects[i] if line.subjects else "") for i in positions
    )
    direction, z = ("", None) if seen is None else (seen.direction, seen.z)
    return Evidence(line.definition, line.phase, line.split, dict(line.labels), points, direction, z)


def unmeasured(*missing: str) -> Outcome:
    """The rule cannot tell, because of these definitions or reasons."""
    return Outcome(UNMEASURED, missing=missing)


def _lines(signals: Signals, *wanted: tuple[str, dict[str, Any]]) -> tuple[list[Line], Outcome | None]:
    found = [signals.line(name, **keys) for name, keys in wanted]
    missing = [name for (name, _), line in zip(wanted, found, strict=True) if line is None]
    return [line for line in found if line is not None], unmeasured(*missing) if missing else None


def _span(*lines: Line) -> tuple[int, int]:
    return int(min(line.steps[0] for line in lines)), int(max(line.steps[-1] for line in lines))


def _trends(lines: Sequence[Line], thresholds: Thresholds) -> tuple[list[Trend], Outcome | None]:
    found = [trend(line.steps, line.values, thresholds.get("least_change", 0.0)) for line in lines]
    short = [line.definition for line, seen in zip(lines, found, strict=True) if seen.direction == SHORT]
    return found, unmeasured(*(f"{item}: too few steps" for item in short)) if short else None


def _decide(fires: bool, lines: Sequence[Line], seen: Sequence[Trend], **facts: Any) -> Outcome:
    shown = tuple(evidence(line, found) for line, found in zip(lines, seen, strict=True))
    return Outcome(FIRED if fires else QUIET, _span(*lines), shown, facts)


def _both(seen: Sequence[Trend]) -> dict[str, Any]:
    """Means of the first and last third of two lines, as facts."""
    first, second = seen
    return {
        "first_from": first.first, "first_to": first.last, "second_from": second.first, "second_to": second.last,
    }  # fmt: skip


def _two_trends(
    signals: Signals,
    thresholds: Thresholds,
    first: tuple[str, dict[str, Any]],
    second: tuple[str, dict[str, Any]],
    fires: Callable[[Trend, Trend], bool],
) -> Outcome:
    lines, missing = _lines(signals, first, second)
    if missing:
        return missing
    seen, short = _trends(lines, thresholds)
    if short:
        return short
    return _decide(fires(*seen), lines, seen, **_both(seen))


ENTROPY: tuple[str, dict[str, Any]] = ("l2.entropy_sampled", {"segment": "all"})
REWARD: tuple[str, dict[str, Any]] = ("l3.reward_mean", {})
SUCCESS: tuple[str, dict[str, Any]] = ("l3.success_rate", {})
LENGTH: tuple[str, dict[str, Any]] = ("l2.response_length", {})


def narrow_mode(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Entropy falls while the high-side clip share rises."""
    return _two_trends(
        signals, thresholds, ENTROPY, ("l1.clip_high_share", {}),
        lambda entropy, clip: entropy.direction == FALLING and clip.direction == RISING,
    )  # fmt: skip


def concentrating(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Mean success rises while the share of groups with any success does not: pass@1 + (pass@k - pass@1).

    "Does not" is measured, not merely unproven: its thirds differ by less than ``flat_change``, and it has
    not reached ``ceiling``, beyond which it cannot rise.
    """
    lines, missing = _lines(signals, REWARD, SUCCESS, ("l3.pass_gap", {}))
    if missing:
        return missing
    reward, single, gap = lines
    shared = np.intersect1d(single.steps, gap.steps)
    either = single.values[np.isin(single.steps, shared)] + gap.values[np.isin(gap.steps, shared)]
    zeros = np.zeros(len(shared), np.int64)
    best = Line("l3.pass_at_k", single.phase, single.split, {}, shared, either, zeros)
    if not len(shared):
        return unmeasured("l3.pass_gap: no step in common with l3.success_rate")
    seen, short = _trends((reward, best), thresholds)
    if short:
        return short
    first, last = seen[1].first or 0.0, seen[1].last or 0.0
    flat = last - first < thresholds["flat_change"] and last < thresholds["ceiling"]
    return _decide(seen[0].direction == RISING and flat, (reward, best), seen, **_both(seen))


def padding(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Length rises while success does not: its thirds differ by less than ``flat_change``."""
    return _two_trends(
        signals, thresholds, LENGTH, SUCCESS,
        lambda length, success: (
            length.direction == RISING
            and success.direction in (FLAT, FALLING)
            and (success.last or 0.0) - (success.first or 0.0) < thresholds["flat_change"]
        ),
    )  # fmt: skip


def longer_and_better(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Length and success rise together."""
    return _two_trends(
        signals, thresholds, LENGTH, SUCCESS,
        lambda length, success: length.direction == RISING and success.direction == RISING,
    )  # fmt: skip


def _recent(line: Line, thresholds: Thresholds) -> tuple[float, list[int]]:
    """Mean over the last steps, and their positions."""
    n = min(len(line), int(thresholds["window"]))
    positions = list(range(len(line) - n, len(line)))
    return float(line.values[-n:].mean()), positions


def mechanical_calls(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Calls near the budget, reward not falling, calls repeated."""
    if not signals.budget:
        return unmeasured("rollout.max_decisions")
    lines, missing = _lines(signals, ("l2.tool_calls_mean", {}), REWARD, ("l2.repeat_call_rate", {}))
    if missing:
        return missing
    (calls, places), reward = _recent(lines[0], thresholds), trend(lines[1].steps, lines[1].values)
    if reward.direction == SHORT:
        return unmeasured("l3.reward_mean: too few steps")
    repeats, repeat_places = _recent(lines[2], thresholds)
    fires = (
        calls >= thresholds["budget_share"] * signals.budget
        and reward.direction != FALLING
        and repeats >= thresholds["repeat_rate"]
    )
    shown = (evidence(lines[0], None, places), evidence(lines[1], reward), evidence(lines[2], None, repeat_places))
    facts = {"calls": calls, "budget": signals.budget, "repeats": repeats}
    return Outcome(FIRED if fires else QUIET, _span(lines[0]), shown, facts)


def _share_above(signals: Signals, thresholds: Thresholds, name: str, fact: str) -> Outcome:
    lines, missing = _lines(signals, (name, {}))
    if missing:
        return missing
    value, places = _recent(lines[0], thresholds)
    steps = (int(lines[0].steps[places[0]]), int(lines[0].steps[places[-1]]))
    state = FIRED if value >= thresholds["share"] else QUIET
    return Outcome(state, steps, (evidence(lines[0], None, places),), {fact: value, "steps": len(places)})


def all_right(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Most groups are all successful: nothing is left to learn from them."""
    return _share_above(signals, thresholds, "l3.zero_all_right_share", "share")


def all_wrong(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Most groups have no success at all; infrastructure failures stand beside, since they are one cause."""
    found = _share_above(signals, thresholds, "l3.zero_all_wrong_share", "share")
    beside = signals.line("l2.infrastructure_invalid_share")
    if found.state == UNMEASURED or beside is None:
        return found
    value, places = _recent(beside, thresholds)
    return Outcome(
        found.state, found.steps, (*found.evidence, evidence(beside, None, places)), {**found.facts, "invalid": value}
    )


def paths_collapse(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Distance of the action sequences of a group falls to a fraction of what it was."""
    lines, missing = _lines(signals, ("l4.action_edit_distance", {}))
    if missing:
        return missing
    seen, short = _trends(lines, thresholds)
    if short:
        return short
    first, last = seen[0].first or 0.0, seen[0].last or 0.0
    fires = seen[0].direction == FALLING and last <= thresholds["fraction"] * first
    return _decide(fires, lines, seen, first_from=first, first_to=last)


def early_collapse(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Entropy loses a large share of its first value within the first steps."""
    lines, missing = _lines(signals, ENTROPY)
    if missing:
        return missing
    line = lines[0]
    early = line.steps < line.steps[0] + int(thresholds["first_steps"])
    if early.sum() < 3:
        return unmeasured("l2.entropy_sampled: too few steps")
    lowest = int(np.argmin(np.where(early, line.values, np.inf)))
    start, least = float(line.values[0]), float(line.values[lowest])
    fires = start > 0 and least <= (1.0 - thresholds["drop"]) * start
    shown = evidence(line, None, sorted({0, lowest, int(np.flatnonzero(early)[-1])}))
    return Outcome(
        FIRED if fires else QUIET, (int(line.steps[0]), int(line.steps[lowest])), (shown,),
        {"first_from": start, "first_to": least},
    )  # fmt: skip


def gradient_spike(signals: Signals, thresholds: Thresholds) -> Outcome:
    """A gradient norm far above the median of its own epoch's steps, in median absolute deviations.

    Each epoch is a line of its own; the one that exceeds its limit the most is told.
    """
    lines = signals.every("l1.grad_norm")
    if not lines:
        return unmeasured("l1.grad_norm")
    long = [line for line in lines if len(line) >= int(thresholds["least_steps"])]
    if not long:
        return unmeasured("l1.grad_norm: too few steps")

    def limits(line: Line) -> tuple[float, float]:
        middle = float(np.median(line.values))
        spread = float(np.median(np.abs(line.values - middle)))
        return middle, max(middle + thresholds["deviations"] * 1.4826 * spread, thresholds["times_median"] * middle)

    line = max(
        long, key=lambda line: (float(line.values.max()) / (limits(line)[1] or 1.0), sorted(line.labels.items()))
    )
    middle, limit = limits(line)
    places = np.flatnonzero(line.values > limit).tolist()
    if not places:
        return Outcome(QUIET, _span(line), (evidence(line),), {"median": middle, "limit": limit})
    worst = max(places, key=lambda place: float(line.values[place]))
    value, step = float(line.values[worst]), int(line.steps[worst])
    facts = {"median": middle, "limit": limit, "value": value, "step": step, "n": len(places)}
    steps = (int(line.steps[places[0]]), int(line.steps[places[-1]]))
    return Outcome(FIRED, steps, (evidence(line, None, places[:_KEPT]),), facts)


def still_rising(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Reward still rises over the last part of the run."""
    lines, missing = _lines(signals, REWARD)
    if missing:
        return missing
    line = lines[0]
    n = max(int(thresholds["window"]), len(line) // 3)
    last = Line(
        line.definition, line.phase, line.split, line.labels, line.steps[-n:], line.values[-n:], line.counts[-n:],
        line.subjects[-n:] if line.subjects else (),
    )  # fmt: skip
    seen, short = _trends((last,), thresholds)
    if short:
        return short
    return _decide(seen[0].direction == RISING, (last,), seen, first_from=seen[0].first, first_to=seen[0].last)


def uneven_calls(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Variance of call counts above their mean: more spread than counts of independent calls have."""
    lines, missing = _lines(signals, ("l2.tool_calls_variance", {}), ("l2.tool_calls_mean", {}))
    if missing:
        return missing
    (spread, places), (mean, _) = _recent(lines[0], thresholds), _recent(lines[1], thresholds)
    fires = mean > 0 and spread >= thresholds["dispersion"] * mean
    shown = (evidence(lines[0], None, places), evidence(lines[1], None, _recent(lines[1], thresholds)[1]))
    return Outcome(FIRED if fires else QUIET, _span(*lines), shown, {"variance": spread, "mean": mean})


def open_and_unclipped(signals: Signals, thresholds: Thresholds) -> Outcome:
    """A high entropy keeps most of its first value while little is clipped."""
    lines, missing = _lines(signals, ENTROPY, ("l1.clip_high_share", {}), ("l1.clip_low_share", {}))
    if missing:
        return missing
    entropy, high, low = lines
    now, places = _recent(entropy, thresholds)
    clipped = _recent(high, thresholds)[0] + _recent(low, thresholds)[0]
    start = float(entropy.values[0])
    fires = now >= thresholds["least"] and now >= thresholds["kept"] * start and clipped <= thresholds["clipped"]
    shown = (evidence(entropy, None, sorted({0, *places})), evidence(high, None, _recent(high, thresholds)[1]))
    return Outcome(
        FIRED if fires else QUIET, _span(*lines), shown, {"first_from": start, "first_to": now, "clipped": clipped}
    )


def needed_calls(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Nearly every call brings something: productive calls over calls."""
    lines, missing = _lines(signals, ("l2.productive_call_rate", {}), ("l2.tool_calls_mean", {}))
    if missing:
        return missing
    value, places = _recent(lines[0], thresholds)
    calls, call_places = _recent(lines[1], thresholds)
    shown = (evidence(lines[0], None, places), evidence(lines[1], None, call_places))
    state = FIRED if value >= thresholds["share"] and calls > 0 else QUIET
    return Outcome(state, _span(*lines), shown, {"share": value, "calls": calls})


def latent_ability(signals: Signals, thresholds: Thresholds) -> Outcome:
    """pass@k far above pass@1: right answers are within reach of sampling."""
    return _share_above(signals, thresholds, "l3.pass_gap", "share")


def decoration(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Action and answer mostly unchanged when the think segment is deleted and when it is corrupted.

    The random-token control stands beside as evidence: where it changes nothing either, nothing in that place does.
    """
    shares, shown = [], []
    for intervention in ("delete", "corrupt"):
        for name in ("l6.action_unchanged", "l6.answer_unchanged"):
            line = signals.line(name, phase="probe", intervention=intervention)
            if line is None:
                return unmeasured(f"{name} ({intervention})")
            n = int(line.counts[-1])
            if n < thresholds["least_count"]:
                return unmeasured(f"{name} ({intervention}): {n} decisions")
            shares.append(float(line.values[-1]))
            shown.append(evidence(line))
    last, least = max(item.points[-1][0] for item in shown), min(shares)
    control = signals.line("l6.action_unchanged", phase="probe", intervention="random")
    if control is not None:
        shown.append(evidence(control))
    facts = {"share": least, "control": None if control is None else float(control.values[-1])}
    return Outcome(FIRED if least >= thresholds["share"] else QUIET, (last, last), tuple(shown), facts)


def widening_gap(signals: Signals, thresholds: Thresholds) -> Outcome:
    """Held-out reward inside the distribution minus outside grows from the first checkpoint to the last.

    It fires only where the last gap's 95 % interval lies above the first gap: a few tasks move a gap by chance.
    """
    line = phase = None
    for phase in ("standard", "stress"):
        line = signals.line("l5.reward_gap", phase=phase)
        if line is not None:
            break
    if line is None:
        return unmeasured("l5.reward_gap")
    if len(line) < 2:
        return unmeasured("l5.reward_gap: one checkpoint")
    low = signals.line("l5.reward_gap", phase=str(phase), split=line.split, bound="low")
    if low is None or low.steps[-1] != line.steps[-1]:
        return unmeasured("l5.reward_gap (bound low)")
    first, last, bound = float(line.values[0]), float(line.values[-1]), float(low.values[-1])
    fires = last - first >= thresholds["least_change"] and bound > first
    facts = {"first_from": first, "first_to": last, "low": bound}
    return Outcome(FIRED if fires else QUIET, _span(line), (evidence(line), evidence(low)), facts)
