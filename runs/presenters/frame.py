"""What stands around every page: studies, sections with their counts, breadcrumb."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Sum
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from runs.models import Checkpoint, EvaluationItem, Execution, Job, Plan, Run, RunHead, StreamHead, Study

TROUBLED_RUNS = ("interrupted", "stopped", "partial_invalid")
EXPECTED_RUNS = ("refused",)  # by a gate that the frozen plan bound: an outcome, no trouble
TROUBLED_JOBS = ("failed", "errored")


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


def attention_count() -> int:
    """Runs and jobs that a person should look at."""
    return RunHead.objects.filter(state__in=TROUBLED_RUNS).count() + Job.objects.filter(state__in=TROUBLED_JOBS).count()


def _executed(study: Study | None) -> Execution | None:
    """The execution whose results the rail links: the newest of the page's study, else of all."""
    rows = Execution.objects.select_related("plan_version__plan__study").order_by("-updated_at")
    if study is not None:
        rows = rows.filter(plan_version__plan__study=study)
    return rows.first()


def build_frame(section: str, study: Study | None, crumbs: list[Crumb]) -> Frame:
    """The frame of a page in ``section``; counts are of the whole database."""
    attention = attention_count()
    entries: list[tuple[str, Any, int | None, bool]] = [
        ("now", _("Now"), attention or None, attention > 0),
        ("plans", _("Plans"), Plan.objects.count(), False),
        ("runs", _("Runs"), Run.objects.count(), False),
        ("evaluations", _("Evaluations"), EvaluationItem.objects.count(), False),
        ("checkpoints", _("Checkpoints"), Checkpoint.objects.count(), False),
        ("receipts", _("Receipts"), StreamHead.objects.aggregate(n=Sum("seq"))["n"] or 0, False),
        ("jobs", _("Jobs"), Job.objects.exclude(state__in=("succeeded", "cancelled")).count(), False),
    ]
    nav = [
        NavItem(word, reverse(f"runs:{name}"), count, name == section, alert) for name, word, count, alert in entries
    ]
    studies = list(Study.objects.order_by("slug"))
    executed = _executed(study)
    if executed is not None:
        address = reverse("runs:results", args=[executed.plan_version.plan.study.slug, executed.plan_version.plan.slug])
        nav.insert(4, NavItem(_("Results"), address, None, section == "results"))
    return Frame(study or (studies[0] if len(studies) == 1 else None), studies, nav, crumbs)
