"""What stands around every page: studies, sections with their counts, breadcrumb."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Sum
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from runs.access import Principal, visible, visible_jobs, visible_studies
from runs.models import EvaluationItem, Execution, Plan, Run, RunHead, Study
from runs.visibility import visible_checkpoints, visible_heads

TROUBLED_RUNS = ("interrupted", "stopped", "partial_invalid")
EXPECTED_RUNS = ("refused",)  # by a gate that the frozen plan bound: an outcome, no trouble
TROUBLED_JOBS = ("failed", "errored")


# Sections without a count: what plans draw from, and the interface for scripts.
CATALOGUE = (
    ("runs:task_sets", _("Task sets")),
    ("runs:environments", _("Environments")),
    ("runs:models", _("Models")),
    ("api_docs", _("API")),
)


@dataclass(frozen=True)
class Crumb:
    """One step of the breadcrumb; ``url`` None for the page itself."""

    word: Any
    url: str | None = None


@dataclass(frozen=True)
class NavItem:
    """One section of the rail. ``count`` None: nothing worth counting."""

    word: Any
    url: str
    count: int | None
    current: bool
    alert: bool = False


@dataclass(frozen=True)
class Frame:
    """Everything that the base template needs."""

    study: Study | None
    studies: list[Study]
    nav: list[NavItem]
    crumbs: list[Crumb]


RUN_HEAD_STUDY = "run__plan_version__plan__study"


def attention_count(principal: Principal) -> int:
    """Visible runs and jobs that a person should look at."""
    heads = visible(principal, RunHead.objects.filter(state__in=TROUBLED_RUNS), RUN_HEAD_STUDY)
    return heads.count() + visible_jobs(principal).filter(state__in=TROUBLED_JOBS).count()


def _executed(principal: Principal, study: Study | None) -> Execution | None:
    """The execution whose results the rail links: the newest of the page's study, else of all visible ones."""
    rows = (
        visible(principal, Execution.objects.all()).select_related("plan_version__plan__study").order_by("-updated_at")
    )
    if study is not None:
        rows = rows.filter(plan_version__plan__study=study)
    return rows.first()


def build_frame(principal: Principal, section: str, study: Study | None, crumbs: list[Crumb]) -> Frame:
    """The frame of a page in ``section``; counts are of everything that the principal may see."""
    attention = attention_count(principal)
    entries: list[tuple[str, Any, int | None, bool]] = [
        ("now", _("Now"), attention or None, attention > 0),
        ("plans", _("Plans"), visible(principal, Plan.objects.all()).count(), False),
        ("runs", _("Runs"), visible(principal, Run.objects.all()).count(), False),
        ("evaluations", _("Evaluations"), visible(principal, EvaluationItem.objects.all()).count(), False),
        ("checkpoints", _("Checkpoints"), visible_checkpoints(principal).count(), False),
        ("receipts", _("Receipts"), visible_heads(principal).aggregate(n=Sum("seq"))["n"] or 0, False),
        ("jobs", _("Jobs"), visible_jobs(principal).exclude(state__in=("succeeded", "cancelled")).count(), False),
    ]
    nav = [
        NavItem(word, reverse(f"runs:{name}"), count, name == section, alert) for name, word, count, alert in entries
    ]
    studies = list(visible_studies(principal).order_by("slug"))
    executed = _executed(principal, study)
    if executed is not None:
        address = reverse("runs:results", args=[executed.plan_version.plan.study.slug, executed.plan_version.plan.slug])
        nav.insert(4, NavItem(_("Results"), address, None, section == "results"))
    for name, word in CATALOGUE:
        nav.append(NavItem(word, reverse(name), None, name.rpartition(":")[2] == section))
    return Frame(study or (studies[0] if len(studies) == 1 else None), studies, nav, crumbs)
