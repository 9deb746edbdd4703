"""From requested slots to trained slots: one stage after the other, every loss with its name."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.models import Group, Run, Trajectory, TrajectoryCredit
from runs.presenters.states import state_view


@dataclass(frozen=True)
class Stage:
    """``count`` slots are left; ``lost`` fell out here, because of ``why``. Widths in per cent of requested."""

    word: str
    count: int
    lost: int
    why: str
    share: float | None
    width: float
    lost_width: float
    last: bool = False


@dataclass(frozen=True)
class Funnel:
    """``slots`` requested and ``trained``; ``waiting`` slots have met no update yet."""

    stages: list[Stage]
    requested: int
    trained: int
    waiting: int


def _reasons(rows: list[tuple[str | None, int]]) -> str:
    return _("; ").join(f"{reason or _('no reason stored')} ({count})" for reason, count in rows)


def build_funnel(run: Run) -> Funnel:
    """Counts from the rows of a run's training groups: requested = accounted at every stage."""
    slots = Trajectory.objects.filter(group__run=run, group__purpose="train")
    count = slots.aggregate(
        requested=Count("pk"),
        valid=Count("pk", filter=Q(status="valid")),
        complete=Count("pk", filter=Q(status="valid", group__eligible=True)),
        signal=Count("pk", filter=Q(group__eligible=True, group__signal="signal")),
        consumed=Count("pk", filter=Q(group__signal="signal", group__consumed__isnull=False)),
        skipped=Count("pk", filter=Q(group__signal="signal", group__consumed__update__skipped__isnull=False)),
    )
    credits = TrajectoryCredit.objects.filter(update__run=run).aggregate(
        trained=Count("pk", filter=Q(trained_tokens__gt=0)),
        empty=Count("pk", filter=Q(trained_tokens=0)),
    )
    invalid = list(
        slots.exclude(status="valid").values_list("invalid_reason").annotate(n=Count("pk")).order_by("-n")[:4]
    )
    of_run = Group.objects.filter(run=run, purpose="train")
    counted = of_run.aggregate(all=Count("pk"), rejected=Count("pk", filter=Q(eligible=False)))
    groups, rejected = counted["all"], counted["rejected"]
    zero = list(
        of_run.filter(eligible=True)
        .exclude(signal="signal")
        .values_list("signal")
        .annotate(n=Count("pk"))
        .order_by("-n")
    )
    waiting = count["signal"] - count["consumed"]
    trained = credits["trained"]
    why_untrained = []
    if waiting:
        why_untrained.append(_("%(n)d wait for their update") % {"n": waiting})
    if count["skipped"]:
        why_untrained.append(_("%(n)d in an update that was skipped") % {"n": count["skipped"]})
    if credits["empty"]:
        why_untrained.append(_("%(n)d without a token after the cut, still in N") % {"n": credits["empty"]})
    steps = [
        (_("Requested"), count["requested"], ngettext("%(n)d group", "%(n)d groups", groups) % {"n": groups}),
        (_("Valid outcome"), count["valid"], _reasons(invalid)),
        (
            _("In a complete group"),
            count["complete"],
            ngettext("valid, lost with %(n)d rejected group", "valid, lost with %(n)d rejected groups", rejected)
            % {"n": rejected}
            if rejected
            else "",
        ),
        (
            _("With signal"),
            count["signal"],
            _("; ").join(f"{n} × {state_view('signal', s or '').word}" for s, n in zero),
        ),
        (_("Trained"), trained, _("; ").join(why_untrained)),
    ]
    return Funnel(_stages(steps), count["requested"], trained, waiting)


def _stages(steps: list[tuple[str, int, str]]) -> list[Stage]:
    requested = steps[0][1]
    found, before = [], requested
    for position, (word, left, why) in enumerate(steps):
        lost = before - left
        found.append(
            Stage(
                word,
                left,
                lost,
                why,
                left / requested if requested else None,
                100.0 * left / requested if requested else 0.0,
                100.0 * lost / requested if requested else 0.0,
                last=position == len(steps) - 1,
            )
        )
        before = left
    return found
