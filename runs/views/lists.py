"""Flat lists: runs and evaluations."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of, visible
from runs.models import EvaluationItem, Plan, Run
from runs.presenters.frame import Crumb
from runs.states import RUN_TRANSITIONS
from runs.views.base import paginate, render_page


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """All runs, newest first; ``?state=`` narrows."""
    rows = (
        visible(principal_of(request), Run.objects.all())
        .select_related("head__checkpoint", "arm", "plan_version__plan__study")
        .order_by("-created_at", "-pk")
    )
    chosen = request.GET.get("state", "")
    if chosen in RUN_TRANSITIONS:
        rows = rows.filter(head__state=chosen)
    return render_page(
        request,
        "runs/runs.html",
        section="runs",
        title=_("Runs"),
        crumbs=[Crumb(_("Runs"))],
        listing=paginate(request, rows),
        states=list(RUN_TRANSITIONS),
        chosen=chosen,
    )


def _narrow(rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
    for name in ("condition", "split"):
        value = request.GET.get(name, "")
        if value:
            rows = rows.filter(**{name: value})
    arm = request.GET.get("arm", "")
    if arm:
        rows = rows.filter(run__isnull=True) if arm == "parent" else rows.filter(run__arm__key=arm)
    outcome = request.GET.get("outcome", "")
    if outcome in ("finish", "policy_error", "budget_exhausted"):
        rows = rows.filter(trajectory__terminal=outcome)
    return rows


@require_safe
def evaluations(request: HttpRequest) -> HttpResponse:
    """Evaluation items: one row per (checkpoint, condition, split, task, repeat)."""
    principal = principal_of(request)
    rows = (
        visible(principal, EvaluationItem.objects.all())
        .select_related("checkpoint", "run", "task", "trajectory", "plan_version__plan")
        .order_by("condition", "split", "task__key", "repeat", "checkpoint_id")
    )
    arms = sorted(
        key
        for key in visible(principal, Run.objects.filter(evaluation_items__isnull=False))
        .values_list("arm__key", flat=True)
        .distinct()
        if key
    )
    return render_page(
        request,
        "runs/evaluations.html",
        section="evaluations",
        title=_("Evaluations"),
        crumbs=[Crumb(_("Evaluations"))],
        listing=paginate(request, _narrow(rows, request)),
        several=visible(principal, Plan.objects.all()).count() > 1,
        arms=["parent", *arms],
        chosen={name: request.GET.get(name, "") for name in ("condition", "split", "arm", "outcome")},
        outcomes=("finish", "policy_error", "budget_exhausted"),
    )
