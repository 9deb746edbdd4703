"""The first page: what runs, what needs a person, and the studies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Q
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.models import EvaluationItem, Execution, Job, Run, RunHead, Study
from runs.presenters.frame import TROUBLED_JOBS, TROUBLED_RUNS, attention_count
from runs.presenters.progress import Progress, run_progress

LIMIT = 12


@dataclass(frozen=True)
class Moving:
    """A run that goes on now, with its progress."""

    run: Run
    progress: Progress


@dataclass(frozen=True)
class Attention:
    """Something that a person should look at; ``cause`` in its own words."""

    table: str
    state: str
    what: str
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

    @property
    def total(self) -> int:
        """All runs."""
        return sum(self.runs.values())


def running(limit: int = LIMIT) -> list[Moving]:
    """Running and paused runs with what they do now."""
    runs = list(
        Run.objects.filter(head__state__in=("running", "paused"))
        .select_related("head", "arm", "plan_version__plan__study")
        .order_by("head__state", "-head__updated_at")[:limit]
    )
    jobs: dict[int, Job] = {}
    for job in Job.objects.filter(run__in=runs, state="leased").order_by("heartbeat_at"):
        jobs[job.run_id or 0] = job
    return [Moving(run, run_progress(run, jobs.get(run.pk))) for run in runs]


def attention(limit: int = LIMIT) -> list[Attention]:
    """Troubled runs and jobs, newest first."""
    found = [
        Attention(
            "run", head.state, head.run.name, head.reason, reverse("runs:run", args=[head.run.uid]), head.updated_at
        )
        for head in RunHead.objects.filter(state__in=TROUBLED_RUNS)
        .select_related("run")
        .order_by("-updated_at")[:limit]
    ]
    found += [
        Attention(
            "job",
            job.state,
            f"{job.kind} · {job.run.name if job.run else ''}",
            job.error,
            reverse("runs:job", args=[job.uid]),
            job.finished_at or job.created_at,
        )
        for job in Job.objects.filter(state__in=TROUBLED_JOBS).select_related("run").order_by("-created_at")[:limit]
    ]
    return sorted(found, key=lambda item: item.at, reverse=True)[:limit]


def study_cards() -> list[StudyCard]:
    """Every study; four queries in all."""
    states: dict[int, dict[str, int]] = {}
    for study, state, n in (
        Run.objects.filter(plan_version__isnull=False)
        .values_list("plan_version__plan__study", "head__state")
        .annotate(n=Count("pk"))
        .order_by()
    ):
        states.setdefault(study, {})[state] = n
    items = dict(EvaluationItem.objects.values_list("plan_version__plan__study").annotate(n=Count("pk")).order_by())
    executions: dict[int, list[Execution]] = {}
    for execution in Execution.objects.select_related("plan_version__plan").order_by("-updated_at"):
        executions.setdefault(execution.plan_version.plan.study_id, []).append(execution)
    studies = Study.objects.annotate(
        plan_count=Count("plans", distinct=True), last=Max("plans__versions__runs__head__updated_at")
    )
    return [
        StudyCard(
            study,
            study.plan_count,
            states.get(study.pk, {}),
            executions.get(study.pk, [])[:3],
            items.get(study.pk, 0),
            study.last,
        )
        for study in studies.order_by("slug")
    ]


def headline(moving: list[Moving]) -> SafeString:
    """The sentence that opens the page."""
    counts = RunHead.objects.aggregate(
        running=Count("pk", filter=Q(state="running")), done=Count("pk", filter=Q(state="completed")), total=Count("pk")
    )
    if not counts["total"]:
        return format_html("{}", _("Nothing has run here yet."))
    parts = []
    if counts["running"]:
        parts.append(ngettext("%(n)d run goes on", "%(n)d runs go on", counts["running"]) % {"n": counts["running"]})
    elif moving:
        parts.append(_("Paused"))
    else:
        parts.append(_("Nothing runs now"))
    parts.append(_("%(n)d of %(of)d completed") % {"n": counts["done"], "of": counts["total"]})
    trouble = attention_count()
    if trouble:
        parts.append(ngettext("%(n)d thing needs a look", "%(n)d things need a look", trouble) % {"n": trouble})
    else:
        parts.append(_("nothing needs a look"))
    return format_html("{}", _("; ").join(parts) + _("."))
