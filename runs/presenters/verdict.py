"""The sentence that opens a run's page, computed from stored rows by the rule set ``run-verdict/5``.

Rules, in order:

1. A run that has not trained says its state and reason, and nothing about learning.
2. ``stable``: every stored loss and gradient norm is finite, the last clip share (low and high) is at
   most 0.2, and no gradient norm exceeds 10 times the median of at least five steps. Else ``unstable``,
   with the first rule that failed.
3. Losses, the larger one first: share of eligible groups without signal, and share of requested slots
   that kept no token after the cut.
4. Entropy: mean of the last quarter of steps against the first quarter. Said only from twelve steps on, and
   only where the change exceeds the standard deviation within each of the two quarters.
5. Held-out success of the final policy and of its parent, as n of N on ``test`` under each condition that both
   are evaluated under in full. Counts of one run: no word says which is better, since no paired interval does.
6. Warnings of the layers cap it: where one of stability fired and nobody dismissed it, rule 2 says ``unstable``.
   Of stability are all of L1, and of other layers those that name a collapse or an instability
   (``UNSTABLE``). The others are named, with a link to their evidence.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from runs.models import Group, Run, Trajectory, TrajectoryCredit, UpdateStep
from runs.presenters.evaluation import CellView
from runs.readings.fired import FiredWarning, fired_warnings
from runs.templatetags.ui import percent, signed

RULE_SET = "run-verdict/5"
MAX_CLIP_SHARE, SPIKE_FACTOR, MIN_STEPS = 0.2, 10.0, 12
HELD_OUT = "test"
UNSTABLE = ("early_collapse", "paths_collapse", "uneven_calls")  # warnings of stability outside L1


@dataclass(frozen=True)
class Verdict:
    """``sentence`` is safe markup with its figures marked; ``basis`` says from what; ``rules`` how it is made."""

    sentence: SafeString
    basis: str
    rules: list[str]
    rule_set: str = RULE_SET


def figure(text: Any, title: Any) -> SafeString:
    """A figure inside a sentence, with its numerator, denominator or source on hover."""
    return format_html('<span class="fig" title="{}">{}</span>', title, text)


def join_clauses(clauses: list[SafeString]) -> SafeString:
    """One sentence from one to five clauses, in the reader's language."""
    shapes = {
        1: _("{0}."), 2: _("{0}; {1}."), 3: _("{0}; {1}, and {2}."), 4: _("{0}; {1}; {2}, and {3}."),
        5: _("{0}; {1}; {2}; {3}, and {4}."),
    }  # fmt: skip
    return format_html(shapes[min(len(clauses), 5)], *clauses[:5])


def capped(stable: bool, reason: str, warnings: Sequence[FiredWarning]) -> tuple[bool, str]:
    """Rule 6: what rule 2 may say beside warnings of stability."""
    first = next((w for w in warnings if w.reading.layer == "L1" or w.reading.id in UNSTABLE), None)
    if not stable or first is None:
        return stable, reason
    return False, _("warning: %(title)s") % {"title": first.reading.title}


def _warned(run: Run, warnings: Sequence[FiredWarning]) -> SafeString | None:
    """The warnings by name, each leading to its evidence; None where none fired."""
    if not warnings:
        return None
    page = reverse("runs:layers", args=[run.uid])
    links = format_html_join(
        _(", "), '<a href="{}#reading-{}" title="{}">{}</a>',
        ((page, item.reading.id, item.statement, item.reading.title) for item in warnings[:3]),
    )  # fmt: skip
    if len(warnings) > 3:
        return format_html(_("may be wrong: {0} and {1} more"), links, len(warnings) - 3)
    return format_html(_("may be wrong: {0}"), links)


def _state_sentence(run: Run) -> SafeString | None:
    head = run.head
    fixed = {
        "pending": _("Not started yet. Nothing can be said about this arm at this seed."),
        "refused": _("Never run: its gate was not met, which proves nothing about the arm either way."),
    }
    if head.state in fixed:
        return format_html("{}", fixed[head.state])
    if head.state == "partial_invalid":
        return format_html("{}", _("Broken by an error. What it committed is kept and never merged with another run."))
    return None


def _lead(state: str, stable: bool) -> str:
    words = {
        ("running", True): _("Stable so far"),
        ("running", False): _("Running, but not stable"),
        ("paused", True): _("Paused, stable until then"),
        ("paused", False): _("Paused, and not stable before that"),
        ("completed", True): _("Completed and stable throughout"),
        ("completed", False): _("Completed, but not stable throughout"),
        ("stopped", True): _("Stopped by a gate"),
        ("stopped", False): _("Stopped by a gate, and not stable before that"),
        ("interrupted", True): _("Interrupted; it waits for a recovery plan"),
        ("interrupted", False): _("Interrupted, and not stable before that"),
        ("cancelled", True): _("Cancelled"),
        ("cancelled", False): _("Cancelled, and not stable before that"),
    }
    return words.get((state, stable), state)


def stability(steps: Sequence[Mapping[str, Any]]) -> tuple[bool, str]:
    """Whether rule 2 holds, and the measured reason. ``steps``: loss, grad_norm, clip shares, nonfinite, by step."""
    bad = next((s for s in steps if s["nonfinite"] or s["loss"] is None or s["grad_norm"] is None), None)
    if bad is not None:
        return False, _("step %(step)d holds a non-finite value") % {"step": bad["step"]}
    clip = (steps[-1]["clip_low_share"] or 0.0) + (steps[-1]["clip_high_share"] or 0.0) if steps else 0.0
    if clip > MAX_CLIP_SHARE:
        return False, _("the last clip share is %(share)s") % {"share": percent(clip)}
    norms = [s["grad_norm"] for s in steps]
    if len(norms) >= 5:
        median = statistics.median(norms)
        spike = next((s for s in steps if s["grad_norm"] > SPIKE_FACTOR * median), None)
        if spike is not None:
            return False, _("the gradient norm of step %(step)d is more than ten times the median") % {
                "step": spike["step"]
            }
    return True, _("%(n)d of %(n)d steps are finite") % {"n": len(steps)}


def entropy_change(steps: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Mean entropy of the first and of the last quarter of the steps, in nats.

    None below twelve steps, and where the change does not exceed the sample standard deviation of each quarter.
    """
    values = [s["entropy"] for s in steps if s["entropy"] is not None]
    if len(values) < MIN_STEPS:
        return None
    quarter = len(values) // 4
    first, last = values[:quarter], values[-quarter:]
    change = statistics.fmean(last) - statistics.fmean(first)
    if abs(change) <= max(statistics.stdev(first), statistics.stdev(last)):
        return None
    return statistics.fmean(first), statistics.fmean(last)


def slots_cut_empty(run: Run) -> tuple[int, int]:
    """(slots that an update took and that kept no token, slots requested) of a run's training groups."""
    empty = TrajectoryCredit.objects.filter(update__run=run, trained_tokens=0).count()
    return empty, Trajectory.objects.filter(group__run=run, group__purpose="train").count()


def build_verdict(run: Run, own: Sequence[CellView] = (), parent: Sequence[CellView] = ()) -> Verdict:
    """The opening sentence of a run. Needs ``head`` loaded. ``own`` and ``parent``: their evaluation cells."""
    groups = Group.objects.filter(run=run, purpose="train").aggregate(
        total=Count("pk"),
        sound=Count("pk", filter=Q(eligible=True)),
        silent=Count("pk", filter=Q(eligible=True) & ~Q(signal="signal")),
    )
    steps = list(
        UpdateStep.objects.filter(update__run=run)
        .order_by("step")
        .values("step", "loss", "grad_norm", "clip_low_share", "clip_high_share", "entropy", "nonfinite")
    )
    warnings = fired_warnings(run)
    stable, reason = capped(*stability(steps), warnings)
    empty, requested = slots_cut_empty(run)
    rules = [
        _("State of the run: %(state)s.") % {"state": run.head.state},
        _(
            "Stable means: every loss and gradient norm is finite, the last clip share is at most 20 %%, and no "
            "gradient norm exceeds ten times the median. Here: %(reason)s."
        )
        % {"reason": reason},
        _("Without signal: eligible groups whose rewards are all equal; %(n)d of %(of)d.")
        % {"n": groups["silent"], "of": groups["sound"]},
        _("Without a token after the cut: slots of an update that trained none of their tokens; %(n)d of %(of)d slots.")
        % {"n": empty, "of": requested},
        _(
            "Entropy: mean of the last quarter of the steps against the first quarter; said from twelve steps on, and "
            "only if the change exceeds the standard deviation within each quarter; %(n)d steps."
        )
        % {"n": len(steps)},
        _(
            "Held-out: success on test, final policy and its parent, under each condition that both are evaluated "
            "under in full; counts of one run, so no word says which is better."
        ),
        _(
            "Warnings that fired on the layers are named; one of L1, or of a collapse or an instability on another "
            "layer, takes the word stable away. Here: %(n)d."
        )
        % {"n": len(warnings)},
        _("The sentence says nothing about another arm: a comparison stands on the results page of the plan."),
    ]
    basis = _("Computed from %(groups)d groups and %(steps)d optimizer steps by rule set %(rule)s.") % {
        "groups": groups["total"],
        "steps": len(steps),
        "rule": RULE_SET,
    }
    fixed = _state_sentence(run)
    if fixed is not None:
        return Verdict(fixed, basis, rules)
    if not groups["total"]:
        return Verdict(format_html("{}", _("Started; no group has been stored yet.")), basis, rules)
    change = entropy_change(steps)
    possible = (
        _losses(groups["silent"], groups["sound"], empty, requested),
        _entropy_clause(*change) if change is not None and change[0] > 0 else None,
        _held_out(own, parent),
        _warned(run, warnings),
    )
    clauses = [figure(_lead(run.head.state, stable), reason), *(item for item in possible if item is not None)]
    return Verdict(join_clauses(clauses), basis, rules)


def _losses(silent: int, sound: int, empty: int, requested: int) -> SafeString | None:
    """What fell out before and in the optimizer, the larger share first; None before any eligible group."""
    if not sound:
        return None
    if not silent and not empty:
        return _all_signal(sound)
    found: list[tuple[float, SafeString]] = []
    if silent:
        title = _("%(n)d of %(of)d eligible groups") % {"n": silent, "of": sound}
        shown = figure(percent(silent / sound), title)
        found.append((silent / sound, format_html(_("{0} of eligible groups carried no signal"), shown)))
    if empty:
        title = _("%(n)d of %(of)d slots") % {"n": empty, "of": requested}
        shown = figure(percent(empty / requested), title)
        found.append((empty / requested, format_html(_("{0} of slots kept no token after the cut"), shown)))
    found.sort(key=lambda item: item[0], reverse=True)
    if len(found) == 1:
        return found[0][1]
    return format_html(_("{0} and {1}"), found[0][1], found[1][1])


def held_out_pairs(own: Sequence[CellView], parent: Sequence[CellView]) -> list[tuple[CellView, CellView]]:
    """The cells of the held-out split, of the final policy and of its parent, by condition where both are full."""
    before = {(cell.condition, cell.split): cell for cell in parent if cell.full}
    here = [cell for cell in own if cell.full and cell.split == HELD_OUT and (cell.condition, HELD_OUT) in before]
    return [(cell, before[cell.condition, HELD_OUT]) for cell in here]


def _held_out(own: Sequence[CellView], parent: Sequence[CellView]) -> SafeString | None:
    """Both counts under each condition, and no word about them: one seed's counts carry no paired interval."""
    pairs = held_out_pairs(own, parent)
    if not pairs:
        return None
    title = _("final policy and its parent on the held-out test; counts of one run, no paired interval")
    places = []
    for cell, base in pairs:
        mine, its = (f"{c.rates['success'].n}/{c.rates['success'].of}" for c in (cell, base))
        shown = (figure(mine, title), cell.condition.upper(), figure(its, title))
        places.append(format_html(_("{0} under {1} (its parent {2})"), *shown))
    listed = format_html_join(_(", "), "{}", ((place,) for place in places))
    return format_html(_("success on the held-out test: {0}"), listed)


def _all_signal(count: int) -> SafeString:
    title = _("%(n)d of %(of)d eligible groups") % {"n": count, "of": count}
    return format_html(_("{0} carried signal"), figure(_("every eligible group"), title))


def _entropy_clause(first: float, last: float) -> SafeString:
    relative = (last - first) / first
    shown = figure(percent(abs(relative)), f"{first:.3f} → {last:.3f} nats ({signed(last - first)})")
    shape = (
        _("token entropy has fallen {0} since the first steps")
        if relative < 0
        else _("token entropy has risen {0} since the first steps")
    )
    return format_html(shape, shown)
