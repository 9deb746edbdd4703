"""One trajectory for reading: the opening sentence, turns, reward, injections, siblings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from runs.models import Trajectory, TrajectoryCredit, Turn
from runs.presenters.drawing import Segment, position, stacked_bar
from runs.presenters.verdict import figure, join_clauses

BAR_WIDTH = 520.0
TONES = {"evidence": "b1", "process": "b2", "efficiency": "b3"}
SPARE_TONES = ("b4", "b1", "b2", "b3")
LONG = 420


@dataclass(frozen=True)
class TurnView:
    """A turn with its call and Observation; ``cut`` True where the credit rule removed it, None where unknown."""

    turn: Turn
    call: Any
    observation: Any
    cut: bool | None
    injection: dict[str, Any] | None
    marks: list[str]

    @property
    def long(self) -> bool:
        """Whether the Observation is folded."""
        return self.observation is not None and len(self.observation.text) > LONG


def turn_views(trajectory: Trajectory, credit: TrajectoryCredit | None) -> list[TurnView]:
    """Turns in order. Needs ``turns__tool_call__observation`` prefetched."""
    injected = {item["decision"]: item for item in trajectory.injections if item.get("decision") is not None}
    found = []
    for turn in sorted(trajectory.turns.all(), key=lambda t: t.decision):
        call = getattr(turn, "tool_call", None)
        marks = [n for n in ("fatal_start", "fatal_confirmed") if getattr(trajectory, n) == turn.decision]
        cut = None
        if credit is not None:
            cut = credit.masked_tokens > 0 and credit.fatal_start is not None and turn.decision >= credit.fatal_start
        found.append(
            TurnView(
                turn,
                call,
                getattr(call, "observation", None) if call else None,
                cut,
                injected.get(turn.decision),
                marks,
            )
        )
    return found


@dataclass(frozen=True)
class Part:
    """One reward component with its tone."""

    component: Any
    tone: str


@dataclass(frozen=True)
class RewardView:
    """Reward as parts and a bar from ``low`` to 1; ``zero_x``, and ``mean_x`` of the group's mean, in bar units.

    ``low``: 0, or -1 where a component subtracts.
    """

    parts: list[Part]
    bar: list[Segment]
    total: float | None
    gate: float | None
    mean: float | None
    mean_x: float | None
    low: float
    zero_x: float


def reward_view(trajectory: Trajectory, width: float = BAR_WIDTH) -> RewardView:
    """Components in stored order. Needs ``reward_components`` prefetched and ``group`` loaded."""
    rows = sorted(trajectory.reward_components.all(), key=lambda c: c.pk)
    spare = iter(SPARE_TONES * 4)
    parts = [Part(c, "none" if c.value is None else TONES.get(c.name) or next(spare)) for c in rows]
    gate = trajectory.gate if trajectory.gate is not None else 0.0
    low = -1.0 if any(c.weight < 0 for c in rows) else 0.0
    zero = position(0.0, width, low)
    scale = width / (1.0 - low) if gate else 0.0
    bar = stacked_bar([(p.component.name, p.component.points, p.tone) for p in parts], scale, zero=zero)
    mean, total = trajectory.group.mean, trajectory.reward_total
    return RewardView(
        parts,
        bar,
        total,
        trajectory.gate,
        mean,
        None if mean is None else round(position(mean, width, low), 1),
        low,
        round(zero, 1),
    )


def _outcome(trajectory: Trajectory) -> str:
    fatal = trajectory.fatal_confirmed is not None
    recovered = bool(trajectory.recovered)
    words = {
        ("finish", True, True): _("Recovered after a confirmed Fatal and finished"),
        ("finish", True, False): _("Met a confirmed Fatal and finished without recovering"),
        ("finish", False, True): _("Recovered from a failure and finished"),
        ("finish", False, False): _("Finished"),
        ("policy_error", True, True): _("Recovered after a Fatal, then wrote an action that does not parse"),
        ("policy_error", True, False): _("Met a confirmed Fatal, then wrote an action that does not parse"),
        ("policy_error", False, True): _("Recovered from a failure, then wrote an action that does not parse"),
        ("policy_error", False, False): _("Ended by an action that does not parse"),
        ("budget_exhausted", True, True): _("Recovered after a Fatal and spent its budget"),
        ("budget_exhausted", True, False): _("Met a confirmed Fatal and spent its budget"),
        ("budget_exhausted", False, True): _("Recovered from a failure and spent its budget"),
        ("budget_exhausted", False, False): _("Spent its budget without a Finish"),
    }
    return words.get((trajectory.terminal or "", fatal, recovered), trajectory.terminal or "")


def _rank(trajectory: Trajectory, siblings: list[Trajectory]) -> SafeString:
    rewards = [row.reward_total for row in siblings if row.reward_total is not None]
    own = trajectory.reward_total or 0.0
    title = _("reward %(r).4f; group: %(all)s") % {"r": own, "all": ", ".join(f"{r:.3f}" for r in rewards)}
    if len(set(rewards)) <= 1:
        return format_html(_("with the {0} of its whole group"), figure(_("same reward"), title))
    if own == max(rewards):
        return format_html(_("with the {0} of its group"), figure(_("best reward"), title))
    if own == min(rewards):
        return format_html(_("with the {0} of its group"), figure(_("lowest reward"), title))
    above = sum(r > own for r in rewards)
    return format_html(
        _("with {0} in its group"), figure(_("reward %(k)d of %(n)d") % {"k": above + 1, "n": len(rewards)}, title)
    )


def headline(trajectory: Trajectory, siblings: list[Trajectory], credit: TrajectoryCredit | None) -> SafeString:
    """The sentence that opens the page."""
    if trajectory.status != "valid":
        return format_html(
            _("No outcome: {0}. It has no reward, and its whole group was rejected."), trajectory.invalid_reason or ""
        )
    first = format_html(_("{0} {1}"), _outcome(trajectory), _rank(trajectory, siblings))
    if credit is not None:
        title = _("%(t)d trained, %(c)d cut, of %(n)d policy tokens") % {
            "t": credit.trained_tokens,
            "c": credit.masked_tokens,
            "n": credit.policy_tokens,
        }
        shown = figure(_("%(t)d of %(n)d") % {"t": credit.trained_tokens, "n": credit.policy_tokens}, title)
        return join_clauses([first, format_html(_("{0} policy tokens were trained"), shown)])
    return join_clauses([first, format_html("{}", _untrained(trajectory))])


def _untrained(trajectory: Trajectory) -> str:
    group = trajectory.group
    if group.purpose == "evaluate":
        return _("an evaluation trains nothing")
    if not group.eligible:
        return _("nothing was trained, since its group was rejected")
    if group.signal != "signal":
        return _("nothing was trained, since its group has no signal")
    return _("its update has not been applied")


def credit_note(credit: TrajectoryCredit | None) -> str:
    """What the cut did, blind to the sign of the advantage."""
    if credit is None or not credit.masked_tokens or credit.advantage is None:
        return ""
    if credit.advantage > 0:
        return _("The cut removed positive credit here: it does not look at the sign of the advantage.")
    return _("The cut removed negative credit here: it does not look at the sign of the advantage.")
