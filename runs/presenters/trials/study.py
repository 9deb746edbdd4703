"""Edit credit of one execution: columns beside each other, three states that are never mixed, what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils.translation import gettext as _

from runs.models import (
    Execution,
    Group,
    Job,
    PlanVersion,
    Run,
    RunTransition,
    Trajectory,
    TrajectoryCredit,
    Trial,
    UpdateBatch,
)
from runs.presenters.compare.discarded import ENDED
from runs.presenters.results import endpoint_views
from runs.presenters.trials.funnel import Column
from runs.presenters.trials.rows import PILOT, Rate, nearest_rank
from runs.presenters.trials.words import KIND
from runs.templatetags.ui import percent
from workbench.contracts.records import PREFLIGHT, TRAIN
from workbench.contracts.trials import FACTUAL_REPLAY, INTERVENTION, INTERVENTION_REPEAT, ORIGINAL

TRIALS_JOB = "run_trials"
TAIL = 0.95


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
class Executed:
    """Trials of one kind that were executed: ``complete`` of all."""

    kind: str
    complete: Rate

    @property
    def word(self) -> Any:
        """Of its kind."""
        return KIND[self.kind]


@dataclass(frozen=True)
class Cost:
    """What a scope cost. None: nothing was executed, or it is not known; that is no cost of 0.

    ``service_*``: set-up, verification and clean-up of one trial, without waiting; ``tail`` the 95th percentile.
    ``wall``: from start to end of its runs, added up; None for the pilot, whose time is not kept apart.
    """

    key: str
    tokens: int | None
    trajectories: int
    kinds: tuple[Executed, ...]
    queue_sum: float | None
    queue_mean: float | None
    service_sum: float | None
    service_mean: float | None
    tail: float | None
    wall: float | None
    open_runs: int
    jobs: int
    retried: Rate
    masked: Rate | None

    @property
    def trials(self) -> int:
        """Executions of every kind."""
        return sum(item.complete.of for item in self.kinds)

    @property
    def per_trajectory(self) -> float | None:
        """Executions for each trajectory; None without one."""
        return self.trials / self.trajectories if self.trajectories else None


def _times(version: PlanVersion) -> dict[int | None, dict[str, Any]]:
    """Executions by scope: by kind, complete, waiting and service. One query."""
    found: dict[int | None, dict[str, Any]] = {}
    rows = Trial.objects.filter(trial_set__plan_version=version).exclude(kind=ORIGINAL)
    for arm, kind, complete, queue, service in rows.values_list(
        "trial_set__run__arm_id", "kind", "complete", "queue_s", "service_s"
    ):
        own = found.setdefault(arm, {"kinds": {}, "queue": [], "service": []})
        n, of = own["kinds"].get(kind, (0, 0))
        own["kinds"][kind] = (n + bool(complete), of + 1)
        if queue is not None:
            own["queue"].append(queue)
        if service is not None:
            own["service"].append(service)
    return found


def _wall(runs: Sequence[Run], now: datetime) -> dict[int, tuple[float, int]]:
    """Seconds from first start to end of each arm's runs, added up, and how many of them go on. One query."""
    first: dict[int, datetime] = {}
    last: dict[int, tuple[str, datetime]] = {}
    moves = RunTransition.objects.filter(run__in=runs).order_by("at", "pk")
    for run, state, at in moves.values_list("run_id", "to_state", "at"):
        if state == "running":
            first.setdefault(run, at)
        last[run] = (state, at)
    found: dict[int, tuple[float, int]] = {}
    for item in runs:
        if item.pk in first and item.arm_id is not None:
            state, at = last[item.pk]
            going = state not in ENDED
            seconds = ((now if going else at) - first[item.pk]).total_seconds()
            before = found.get(item.arm_id, (0.0, 0))
            found[item.arm_id] = (before[0] + seconds, before[1] + going)
    return found


def costs_of(execution: Execution, columns: Sequence[Column], runs: Sequence[Run], now: datetime) -> list[Cost]:
    """One line a column. Five queries."""
    version = execution.plan_version
    times, wall = _times(version), _wall(runs, now)
    tokens: dict[int | None, tuple[int, int]] = {
        arm: (total or 0, n)
        for arm, total, n in Trajectory.objects.filter(
            group__plan_version=version, group__purpose__in=(TRAIN, PREFLIGHT)
        )
        .order_by()
        .values_list("group__run__arm_id")
        .annotate(total=Sum("policy_tokens"), n=Count("pk"))
    }
    jobs: dict[int | None, tuple[int, int]] = {
        arm: (n, again)
        for arm, n, again in Job.objects.filter(execution=execution, kind=TRIALS_JOB)
        .order_by()
        .values_list("run__arm_id")
        .annotate(n=Count("pk"), again=Count("pk", filter=Q(attempt__gt=1)))
    }
    masked: dict[int | None, tuple[int, int]] = {
        arm: (cut or 0, of or 0)
        for arm, cut, of in TrajectoryCredit.objects.filter(update__run__plan_version=version)
        .order_by()
        .values_list("update__run__arm_id")
        .annotate(cut=Sum("masked_tokens"), of=Sum("policy_tokens"))
    }
    found = []
    for column in columns:
        own = times.get(column.scope, {"kinds": {}, "queue": [], "service": []})
        kinds = [INTERVENTION, FACTUAL_REPLAY, INTERVENTION_REPEAT]
        made = tuple(Executed(kind, Rate(*own["kinds"][kind])) for kind in kinds if kind in own["kinds"])
        queue, service = own["queue"], own["service"]
        total, n = tokens.get(column.scope, (None, 0))
        spent, going = wall.get(column.scope, (None, 0)) if column.scope is not PILOT else (None, 0)
        asked, again = jobs.get(column.scope, (0, 0))
        found.append(
            Cost(
                column.key, total, n, made,
                sum(queue) if queue else None, sum(queue) / len(queue) if queue else None,
                sum(service) if service else None, sum(service) / len(service) if service else None,
                nearest_rank(service, TAIL), spent, going, asked, Rate(again, asked),
                Rate(*masked[column.scope]) if column.scope in masked else None,
            )
        )  # fmt: skip
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
    return "; ".join(parts) + "."


def _signal(column: Column) -> str:
    if not column.signs.usable:
        return _("Pilot: no usable difference yet")
    nonzero = column.signs.nonzero
    return _("Pilot: %(n)d of %(of)d usable differences are not zero (%(share)s)") % {
        "n": nonzero.n,
        "of": nonzero.of,
        "share": percent(nonzero.share, 1),
    }
