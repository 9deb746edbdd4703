"""The first page: what runs, what needs a person, and the studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, OuterRef, Q, Subquery
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.access import Principal, visible, visible_studies
from runs.models import EvaluationItem, Execution, Job, PlanVersion, Run, RunHead, Study, TrackedRun
from runs.models.plan import heavy
from runs.presenters.executions import Inspecting, Preparing, open_executions, stage_word
from runs.presenters.frame import EXPECTED_RUNS, RUN_HEAD_STUDY, TROUBLED_RUNS, attention_count, pages_of
from runs.presenters.progress import Progress, groups_seen, held_by_execution, run_progress
from runs.readings.fired import FiredWarning, fired_on
from runs.visibility import troubled_jobs

LIMIT = 12


@dataclass(frozen=True)
class Moving:
    """A run that goes on now, with its progress."""

    run: Run
    progress: Progress

    @property
    def state(self) -> str:
        """The run's state; paused where its whole execution is."""
        return "paused" if held_by_execution(self.run) else str(self.run.head.state)


@dataclass(frozen=True)
class Attention:
    """Something that a person should look at; ``cause`` in its own words."""

    table: str
    state: str
    what: str
    plan: str
    cause: str
    url: str
    at: Any


@dataclass(frozen=True)
class StudyCard:
    """A study with its plans' executions and the date of its last evidence."""

    study: Study
    plans: int
    runs: dict[str, int]
    executions: list[Execution]
    items: int
    last: Any
    logged: int = 0

    @property
    def total(self) -> int:
        """All runs."""
        return sum(self.runs.values())

    @property
    def pages(self) -> list[tuple[Any, str]]:
        """(word, address) of the study's research note, journal and exports."""
        return pages_of(self.study)


@dataclass(frozen=True)
class Ask:
    """Something that other people wait for from the reader: how many, in words with their number, and where."""

    count: int
    words: str
    url: str


_ASKS: dict[str, Callable[[Principal], list[Ask]]] = {}  # what other apps ask of the reader, by their own name


def register_asks(name: str, function: Callable[[Principal], list[Ask]]) -> None:
    """Let an app say on the first page what it asks of the reader; the same ``name`` again replaces the function."""
    _ASKS[name] = function


def asks_of(principal: Principal) -> list[Ask]:
    """What waits for the reader in person, over all apps."""
    return [ask for function in _ASKS.values() for ask in function(principal) if ask.count]


def running(principal: Principal, limit: int = LIMIT) -> list[Moving]:
    """Running and paused runs with what they do now."""
    runs = list(
        visible(principal, Run.objects.filter(head__state__in=("running", "paused")))
        .select_related("head", "arm", "plan_version__plan__study", "execution")
        .defer(*heavy("plan_version__"), "arm__config_bytes")
        .order_by("plan_version__plan__slug", "name", "pk")[:limit]
    )
    jobs: dict[int, Job] = {}
    for job in Job.objects.filter(run__in=runs, state="leased").order_by("heartbeat_at"):
        jobs[job.run_id or 0] = job
    seen = groups_seen(runs)
    return [Moving(run, run_progress(run, jobs.get(run.pk), seen[run.pk])) for run in runs]


def _plan_of(run: Run | None) -> str:
    """Slug of a run's plan: names repeat between plans."""
    return "" if run is None or run.plan_version is None else run.plan_version.plan.slug


def _runs_in(principal: Principal, states: tuple[str, ...], limit: int) -> list[Attention]:
    return [
        Attention(
            "run",
            head.state,
            head.run.name,
            _plan_of(head.run),
            head.reason,
            reverse("runs:run", args=[head.run.uid]),
            head.updated_at,
        )
        for head in visible(principal, RunHead.objects.filter(state__in=states), RUN_HEAD_STUDY)
        .select_related("run__plan_version__plan")
        .defer(*heavy("run__plan_version__"))
        .order_by("-updated_at")[:limit]
    ]


def expected(principal: Principal, limit: int = LIMIT) -> list[Attention]:
    """Runs that their own frozen gate refused: an outcome that the plan foresaw, no trouble."""
    return _runs_in(principal, EXPECTED_RUNS, limit)


def attention(principal: Principal, limit: int = LIMIT) -> list[Attention]:
    """Troubled runs and jobs, newest first."""
    found = _runs_in(principal, TROUBLED_RUNS, limit)
    found += [
        Attention(
            "job",
            job.state,
            f"{job.kind} · {job.run.name}" if job.run else job.kind,
            _plan_of(job.run),
            job.error,
            reverse("runs:job", args=[job.uid]),
            job.finished_at or job.created_at,
        )
        for job in troubled_jobs(principal)
        .select_related("run__plan_version__plan")
        .defer(*heavy("run__plan_version__"))
        .order_by("-created_at")[:limit]
    ]
    return sorted(found, key=lambda item: item.at, reverse=True)[:limit]


@dataclass(frozen=True)
class Warned:
    """Warnings of the layers that fired on a run that goes on and that nobody dismissed."""

    run: Run
    warnings: list[FiredWarning]


def warned(moving: list[Moving]) -> list[Warned]:
    """Running runs with warnings; one of them is looked at anew in one request, the others next time."""
    known = fired_on([item.run for item in moving], fresh=1)
    found = [Warned(item.run, known.get(item.run.pk, [])) for item in moving]
    return [item for item in found if item.warnings]


def study_cards(principal: Principal, own: Study | None = None) -> list[StudyCard]:
    """Every visible study, or ``own`` alone, which the reader sees; five queries in all."""
    studies = visible_studies(principal) if own is None else Study.objects.filter(pk=own.pk)
    outside = TrackedRun.objects.filter(deleted=False, study=OuterRef("pk")).order_by().values("study")
    logged = Subquery(outside.annotate(n=Count("pk")).values("n"))
    shown = list(studies.annotate(plan_count=Count("plans"), logged_count=logged).order_by("slug"))
    versions = dict(PlanVersion.objects.filter(plan__study__in=shown).values_list("pk", "plan__study"))
    rows = Run.objects.filter(plan_version__in=versions).values_list("plan_version", "head__state")
    states: dict[int, dict[str, int]] = {}
    last: dict[int, datetime] = {}
    for version, state, n, at in rows.annotate(n=Count("pk"), at=Max("head__updated_at")).order_by():
        study = versions[version]
        of_study = states.setdefault(study, {})
        of_study[state] = of_study.get(state, 0) + n
        if at is not None:
            last[study] = max(at, last.get(study, at))
    items: dict[int, int] = {}
    evaluated = EvaluationItem.objects.filter(plan_version__in=versions).values_list("plan_version")
    for version, n in evaluated.annotate(n=Count("pk")).order_by():
        items[versions[version]] = items.get(versions[version], 0) + n
    executions: dict[int, list[Execution]] = {}
    begun = Execution.objects.filter(plan_version__in=versions).select_related("plan_version__plan")
    for execution in begun.defer(*heavy("plan_version__")).order_by("-updated_at"):
        executions.setdefault(versions[execution.plan_version_id], []).append(execution)
    return [
        StudyCard(
            study, study.plan_count, states.get(study.pk, {}), executions.get(study.pk, [])[:3], items.get(study.pk, 0),
            last.get(study.pk), study.logged_count or 0,
        )
        for study in shown
    ]  # fmt: skip


def open_states(principal: Principal) -> list[tuple[str, str, str]]:
    """State, phase and plan of every open execution."""
    return list(open_executions(principal).values_list("state", "phase", "plan_version__plan__slug"))


def headline(
    principal: Principal,
    moving: list[Moving],
    open_ones: list[tuple[str, str, str]],
    preparing: Preparing | None,
    warned_runs: int = 0,
    asked: int = 0,
    inspecting: Sequence[Inspecting] = (),
) -> SafeString:
    """The sentence that opens the page. ``warned_runs`` with warnings and what is ``asked`` need a look too."""
    heads = visible(principal, RunHead.objects.all(), RUN_HEAD_STUDY)
    counts = heads.aggregate(done=Count("pk", filter=Q(state="completed")), total=Count("pk"))
    parts = []
    if preparing is not None:
        parts.append(
            _("Preparing %(study)s: %(stage)s") % {"study": preparing.study, "stage": stage_word(preparing.stage)}
        )
    busy = next((item for item in inspecting if item.job.state == "leased"), None)
    if busy is not None:
        parts.append(_("Inspecting %(plan)s: %(stage)s") % {"plan": busy.plan.slug, "stage": busy.stage})
    trouble = attention_count(principal) + warned_runs + asked
    if counts["total"] or open_ones:
        happening = _happening(moving, open_ones)
        if happening or not parts:
            parts.append(happening or _("Nothing runs now"))
        parts.append(_("%(n)d of %(of)d runs completed") % {"n": counts["done"], "of": counts["total"]})
    else:
        logged = visible(principal, TrackedRun.objects.filter(deleted=False), "study").count()
        if logged:
            parts.append(ngettext("%(n)d run was logged", "%(n)d runs were logged", logged) % {"n": logged})
        if not trouble:
            return format_html("{}", _("; ").join(parts) + _(".") if parts else _("Nothing has run here yet."))
    if trouble:
        parts.append(ngettext("%(n)d thing needs a look", "%(n)d things need a look", trouble) % {"n": trouble})
    else:
        parts.append(_("nothing needs a look"))
    return format_html("{}", _("; ").join(parts) + _("."))


def _happening(moving: list[Moving], executions: list[tuple[str, str, str]]) -> str:
    """What goes on, the liveliest first; empty where nothing does. ``executions``: state, phase and plan of each."""
    going = sum(item.state == "running" for item in moving)
    if going:
        return ngettext("%(n)d run goes on", "%(n)d runs go on", going) % {"n": going}
    by_phase = {phase: plan for state, phase, plan in executions if state == "running"}
    if "preflight" in by_phase:
        return _("Preflight of %(plan)s") % {"plan": by_phase["preflight"]}
    if "close" in by_phase:
        return _("Closing %(plan)s") % {"plan": by_phase["close"]}
    if by_phase:
        return _("%(plan)s goes on") % {"plan": next(iter(by_phase.values()))}
    states = {state: plan for state, _phase, plan in executions}
    if "interrupted" in states:
        return _("%(plan)s is interrupted") % {"plan": states["interrupted"]}
    if "paused" in states:
        return _("%(plan)s is paused") % {"plan": states["paused"]}
    return _("Paused") if moving else ""
