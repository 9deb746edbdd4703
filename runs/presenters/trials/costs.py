"""What edit credit cost, by scope and in all: tokens, executed trials, waiting, service, wall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, Sum

from runs.models import Execution, Job, PlanVersion, Run, RunTransition, Trajectory, TrajectoryCredit, Trial
from runs.presenters.compare.discarded import ENDED
from runs.presenters.trials.funnel import Column
from runs.presenters.trials.rows import PILOT, Rate, nearest_rank
from runs.presenters.trials.words import KIND
from workbench.contracts.records import PREFLIGHT, TRAIN
from workbench.contracts.trials import FACTUAL_REPLAY, INTERVENTION, INTERVENTION_REPEAT, ORIGINAL

TRIALS_JOB = "run_trials"
TAIL = 0.95
TOTAL = "total"  # key of the last line of costs


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
    """What a scope cost, or all of them (``TOTAL``). None: nothing was executed, or it is not known; no cost of 0.

    ``copied``: originals whose verdict is the reward's own; nothing was executed for them.
    ``service_*``: set-up, verification and clean-up of one trial, without waiting; ``tail`` the 95th percentile.
    ``wall``: from start to end of its runs, added up; None for the pilot, whose time is not kept apart.
    """

    key: str
    tokens: int | None
    trajectories: int
    kinds: tuple[Executed, ...]
    copied: int
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
    def is_total(self) -> bool:
        """Whether it is the line of all scopes."""
        return self.key == TOTAL

    @property
    def trials(self) -> int:
        """Executions of every kind."""
        return sum(item.complete.of for item in self.kinds)

    @property
    def per_trajectory(self) -> float | None:
        """Executions for each trajectory; None without one."""
        return self.trials / self.trajectories if self.trajectories else None


@dataclass
class _Times:
    """Executions of a scope: (complete, all) by kind, seconds of waiting and of service; originals copied."""

    kinds: dict[str, tuple[int, int]] = field(default_factory=dict)
    queue: list[float] = field(default_factory=list)
    service: list[float] = field(default_factory=list)
    copied: int = 0

    def add(self, kind: str, complete: int, of: int) -> None:
        """Count executions of one kind."""
        n, known = self.kinds.get(kind, (0, 0))
        self.kinds[kind] = (n + complete, known + of)

    def __add__(self, other: _Times) -> _Times:
        found = _Times({**self.kinds}, self.queue + other.queue, self.service + other.service)
        found.copied = self.copied + other.copied
        for kind, (complete, of) in other.kinds.items():
            found.add(kind, complete, of)
        return found


def _times(version: PlanVersion) -> dict[int | None, _Times]:
    """By scope. One query."""
    found: dict[int | None, _Times] = {}
    rows = Trial.objects.filter(trial_set__plan_version=version)
    for arm, kind, complete, queue, service in rows.values_list(
        "trial_set__run__arm_id", "kind", "complete", "queue_s", "service_s"
    ):
        own = found.setdefault(arm, _Times())
        if kind == ORIGINAL:
            own.copied += 1
            continue
        own.add(kind, bool(complete), 1)
        if queue is not None:
            own.queue.append(queue)
        if service is not None:
            own.service.append(service)
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
    """One line a column, and one of all of them last. Five queries."""
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
    lines = []
    for column in columns:
        scope = column.scope
        total, n = tokens.get(scope, (None, 0))
        spent, going = wall.get(scope, (None, 0)) if scope is not PILOT else (None, 0)
        asked, again = jobs.get(scope, (0, 0))
        cut = Rate(*masked[scope]) if scope in masked else None
        lines.append(
            _Line(column.key, times.get(scope, _Times()), total, n, spent, going, Rate(again, asked), cut)
        )  # fmt: skip
    return [_cost(line) for line in [*lines, _all_of(lines)]]


@dataclass(frozen=True)
class _Line:
    """What a line of costs is made of."""

    key: str
    times: _Times
    tokens: int | None
    trajectories: int
    wall: float | None
    open_runs: int
    jobs: Rate  # tried again, of all
    masked: Rate | None


def _known(values: Iterable[float | None]) -> float | None:
    """Sum of what is known; None where nothing is."""
    found = [value for value in values if value is not None]
    return sum(found) if found else None


def _all_of(lines: Sequence[_Line]) -> _Line:
    tokens = [line.tokens for line in lines if line.tokens is not None]
    masked = [line.masked for line in lines if line.masked is not None]
    return _Line(
        TOTAL, sum((line.times for line in lines), _Times()), sum(tokens) if tokens else None,
        sum(line.trajectories for line in lines), _known(line.wall for line in lines),
        sum(line.open_runs for line in lines), _added([line.jobs for line in lines]),
        _added(masked) if masked else None,
    )  # fmt: skip


def _added(rates: Sequence[Rate]) -> Rate:
    return Rate(sum(rate.n for rate in rates), sum(rate.of for rate in rates))


def _cost(line: _Line) -> Cost:
    kinds = [INTERVENTION, FACTUAL_REPLAY, INTERVENTION_REPEAT]
    made = tuple(Executed(kind, Rate(*line.times.kinds[kind])) for kind in kinds if kind in line.times.kinds)
    queue, service = line.times.queue, line.times.service
    return Cost(
        line.key, line.tokens, line.trajectories, made, line.times.copied,
        sum(queue) if queue else None, sum(queue) / len(queue) if queue else None,
        sum(service) if service else None, sum(service) / len(service) if service else None,
        nearest_rank(service, TAIL), line.wall, line.open_runs, line.jobs.of, line.jobs, line.masked,
    )  # fmt: skip
