"""Edit credit of one execution: columns beside each other, three states that are never mixed, what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext as _

from runs.models import (
    Group,
    PlanVersion,
    TrajectoryCredit,
    UpdateBatch,
)
from runs.presenters.results import endpoint_views
from runs.presenters.trials.funnel import Column
from runs.presenters.trials.rows import Rate
from runs.presenters.trials.words import sentence
from runs.templatetags.ui import percent
from workbench.contracts.records import TRAIN


def credits_of(version: PlanVersion) -> dict[int, list[dict[str, Any]]]:
    """Stored terms of credit from edits by arm. One query."""
    found: dict[int, list[dict[str, Any]]] = {}
    rows = TrajectoryCredit.objects.filter(update__run__plan_version=version, edit__isnull=False)
    for arm, edit in rows.values_list("update__run__arm_id", "edit"):
        if edit is not None:
            found.setdefault(arm, []).append(edit)
    return found


@dataclass(frozen=True)
class Changed:
    """Whether an arm's parameters changed: updates that gave another adapter, of those applied or skipped."""

    arm: str
    moved: Rate
    skipped: int
    edit_only: int
    last: str | None


def changes_of(version: PlanVersion, arms: Mapping[int, str]) -> list[Changed]:
    """Updates by arm, in the order of ``arms``. Two queries."""
    rows = UpdateBatch.objects.filter(run__plan_version=version).order_by("run_id", "batch")
    by_arm: dict[int, list[tuple[str | None, str, str]]] = {}
    for arm, *values in rows.values_list(
        "run__arm_id", "skipped", "checkpoint_before__sha256", "checkpoint_after__sha256"
    ):
        by_arm.setdefault(arm, []).append((values[0], str(values[1]), str(values[2])))
    only = dict(
        Group.objects.filter(run__plan_version=version, purpose=TRAIN, signal__startswith="zero")
        .filter(consumed__update__skipped__isnull=True, trajectories__credits__edit__isnull=False)
        .order_by()
        .values_list("run__arm_id")
        .annotate(n=Count("pk", distinct=True))
    )
    found = []
    for arm, key in arms.items():
        own = by_arm.get(arm, [])
        moved = Rate(sum(before != after for _skipped, before, after in own), len(own))
        skipped = sum(why is not None for why, _before, _after in own)
        found.append(Changed(key, moved, skipped, only.get(arm, 0), own[-1][2] if own else None))
    return found


@dataclass(frozen=True)
class Effect:
    """``settled``: endpoints of the stored aggregate that carry a verdict; ``endpoints``: all of the plan."""

    endpoints: list[Any]
    settled: list[Any]


def effect_of(document: Mapping[str, Any], aggregate: dict[str, Any] | None) -> Effect:
    """Pending until the closed evaluation of held-out tasks is stored; its verdicts after that."""
    views = endpoint_views(dict(document), aggregate)
    return Effect(views, [view for view in views if view.verdict != "pending"])


def headline(columns: Sequence[Column], changes: Sequence[Changed], effect: Effect) -> str:
    """The sentence that opens the page: signal, parameters, effect, in that order and never one for another."""
    pilot, rest = columns[0], columns[1:]
    parts = []
    if pilot.mode is not None:
        parts.append(_signal(pilot))
    elif any(column.signs.usable for column in rest):
        usable = sum(column.signs.usable for column in rest)
        nonzero = Rate(sum(column.signs.nonzero.n for column in rest), usable)
        parts.append(
            _("Training: %(n)d of %(of)d usable differences are not zero (%(share)s)")
            % {"n": nonzero.n, "of": usable, "share": percent(nonzero.share, 1)}
        )
    moved, own = sum(bool(item.moved.n) for item in changes), len(changes)
    parts.append(_("parameters changed in %(n)d of %(of)d arms") % {"n": moved, "of": own})
    if effect.settled:
        parts.append(
            _("%(n)d of %(of)d endpoints are measured") % {"n": len(effect.settled), "of": len(effect.endpoints)}
        )
    else:
        parts.append(_("the effect is pending"))
    return sentence(parts)


def _signal(column: Column) -> str:
    if not column.signs.usable:
        return _("Pilot: no usable difference yet")
    nonzero = column.signs.nonzero
    return _("Pilot: %(n)d of %(of)d usable differences are not zero (%(share)s)") % {
        "n": nonzero.n,
        "of": nonzero.of,
        "share": percent(nonzero.share, 1),
    }
