"""One group: slots as columns, aligned by turn; rewards, advantages, failure schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.models import Group, Trajectory, TrajectoryCredit
from runs.presenters.groups import Heat, full_scales, heat_of, signal_state, was_skipped
from runs.presenters.states import state_view
from runs.presenters.tokens import (
    ACTION,
    OBSERVATION,
    THINK,
    TokenSequence,
    first_difference,
    group_captures,
    sequence_of,
)
from runs.presenters.told import told
from runs.presenters.trajectory import RewardView, TurnView, reward_view, turn_views
from workbench.blobs import BlobError
from workbench.contracts.errors import ContractError

BAR = 200.0


@dataclass(frozen=True)
class Column:
    """One slot. ``ticks``: the failure schedule by logical call ordinal."""

    row: Trajectory
    reward: RewardView
    credit: TrajectoryCredit | None
    turns: list[TurnView]
    ticks: list[dict[str, Any]]


def columns(group: Group) -> list[Column]:
    """Slots in order. Needs trajectories with turns, calls, Observations and components prefetched."""
    rows = sorted(group.trajectories.all(), key=lambda row: row.slot)
    credits = {c.trajectory_id: c for c in TrajectoryCredit.objects.filter(trajectory__in=rows)}
    return [
        Column(
            row, reward_view(row, BAR), credits.get(row.pk), turn_views(row, credits.get(row.pk)), list(row.injections)
        )
        for row in rows
    ]


def aligned(found: list[Column]) -> list[tuple[int, list[TurnView | None]]]:
    """Rows by decision: one cell per slot, None where that slot had ended."""
    depth = max((len(column.turns) for column in found), default=0)
    return [(d, [column.turns[d] if d < len(column.turns) else None for column in found]) for d in range(depth)]


def signal_of(group: Group, found: list[Column]) -> str:
    """The group's pill, read from the credits of its update where it has met one."""
    credits = [column.credit for column in found if column.credit is not None]
    trained = sum(credit.trained_tokens for credit in credits) if credits else None
    return signal_state(group, trained, was_skipped(group))


def _signal_sentence(group: Group, found: list[Column], parts: dict[str, int]) -> str:
    """What became of a group whose rewards differ: pending, skipped, cut as a whole, or trained."""
    credits = [column.credit for column in found if column.credit is not None]
    parts = parts | {
        "trained": sum(credit.trained_tokens for credit in credits),
        "tokens": sum(credit.policy_tokens for credit in credits),
    }
    state = signal_of(group, found)
    if state == "signal_cut":
        return (
            _(
                "%(n)d of %(of)d slots succeed, %(fatal)d met a Fatal; rewards differ, but every one of its "
                "%(tokens)d policy tokens was cut: nothing of it was trained."
            )
            % parts
        )
    if state == "signal_skipped":
        return (
            _(
                "%(n)d of %(of)d slots succeed, %(fatal)d met a Fatal; rewards differ, but its update was skipped: "
                "nothing of it was trained."
            )
            % parts
        )
    if not credits:
        return _("%(n)d of %(of)d slots succeed, %(fatal)d met a Fatal; rewards differ, and its update is due.") % parts
    return (
        _(
            "%(n)d of %(of)d slots succeed, %(fatal)d met a Fatal; rewards differ, and %(trained)d of %(tokens)d "
            "policy tokens were trained."
        )
        % parts
    )


def headline(group: Group, found: list[Column]) -> str:
    """The sentence that opens the page."""
    if not group.eligible:
        return _("Rejected as a whole: %(reason)s. A group never shrinks, and nothing is filled in.") % {
            "reason": group.ineligible_reason or ""
        }
    successes = sum(bool(column.row.success) for column in found)
    parts = {"n": successes, "of": len(found), "fatal": sum(column.row.fatal_confirmed is not None for column in found)}
    if group.purpose == "evaluate":
        return _("Evaluation cell: %(n)d of %(of)d repeats succeed, %(fatal)d met a Fatal; it trains nothing.") % parts
    if group.signal == "signal":
        return _signal_sentence(group, found, parts)
    word = state_view("signal", group.signal or "").word
    return _("%(n)d of %(of)d slots succeed; %(word)s, so the optimizer skips it.") % {**parts, "word": word}


def heat(found: list[Column]) -> Heat:
    """The group's slots under its metrics, large enough for labels."""
    rows = [column.row for column in found]
    return heat_of(rows, full_scales(rows), (56.0, 16.0))


@dataclass(frozen=True)
class Parting:
    """Where a slot parts from the reference slot. ``index`` None: token for token the same."""

    slot: int
    reference: Trajectory
    index: int | None
    place: str


def partings(group: Group, found: list[Column]) -> tuple[dict[int, Parting], str]:
    """First difference of every valid slot from the first valid one, by slot; and why there is none.

    Read from the recorded ids of the captures.
    """
    valid = [column.row for column in found if column.row.status == "valid" and column.turns]
    if len(valid) < 2:
        return {}, _("fewer than two slots have tokens")
    try:
        captures = group_captures(group.capture_blob_sha256, [str(row.uid) for row in valid])
    except (BlobError, ContractError) as error:
        return {}, told(error)
    sequences = {row.slot: sequence_of(captures[str(row.uid)]) for row in valid}
    first = valid[0]
    partings = {}
    for row in valid[1:]:
        index = first_difference(sequences[first.slot].ids, sequences[row.slot].ids)
        partings[row.slot] = Parting(row.slot, first, index, _place(sequences[row.slot], sequences[first.slot], index))
    return partings, ""


def _place(own: TokenSequence, other: TokenSequence, index: int | None) -> str:
    """The segment that holds a token, in words; of the other side where the own has ended."""
    for sequence in (own, other):
        for segment in sequence.segments:
            if index is not None and segment.start <= index < segment.end:
                word = {OBSERVATION: _("Observation %(d)s"), THINK: _("d%(d)s think"), ACTION: _("d%(d)s action")}
                return word.get(segment.kind, _("prompt")) % {"d": segment.decision}
    return ""
