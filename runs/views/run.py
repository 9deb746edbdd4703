"""One run: verdict, progress, funnel, charts, groups, updates, evaluation, receipts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runs.access import RUN_CONTROL, can, get_visible, principal_of
from runs.models import Job, Receipt, Run, UpdateBatch, UpdateStep
from runs.presenters.checkpoints import update_holdings
from runs.presenters.evaluation import parent_cells, run_cells, with_parent
from runs.presenters.funnel import build_funnel
from runs.presenters.gates import gate_of
from runs.presenters.groups import FILTERS, filtered_groups, group_rows, read_span, with_slots
from runs.presenters.overlay import overlay_of
from runs.presenters.pairs import treatment_of
from runs.presenters.progress import held_by_execution, run_config, run_progress
from runs.presenters.series import chart_views
from runs.presenters.stepbar import build_step_bar
from runs.presenters.trials.links import has_trials
from runs.presenters.verdict import build_verdict
from runs.views.base import paginate, render_page, run_crumbs

GROUPS_A_PAGE = 16
RUN_RELATIONS = ("head__checkpoint", "arm", "plan_version__plan__study", "parent_checkpoint", "execution")


def load_run(request: HttpRequest, uid: UUID) -> Run:
    """The visible run with everything that its page names."""
    return get_visible(principal_of(request), Run.objects.select_related(*RUN_RELATIONS), uid=uid)


def _moving(run: Run) -> dict[str, Any]:
    job = Job.objects.filter(run=run, state="leased").order_by("-heartbeat_at").first()
    cells, before = run_cells(run), parent_cells(run)
    return {
        "run": run,
        "cells": cells,
        "pairs": with_parent(cells, before),
        "head": run.head,
        "job": job,
        "progress": run_progress(run, job),
        "verdict": build_verdict(run, cells, before),
        "held": held_by_execution(run),
        "live": run.head.state in ("running", "pending", "paused"),
    }


@require_safe
def run(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The whole page."""
    found = load_run(request, uid)
    choice = request.GET.get("groups", "all")
    choice = choice if choice in FILTERS else "all"
    span = read_span(request.GET.get("span", ""))
    listing = paginate(request, with_slots(filtered_groups(found, choice, span)), GROUPS_A_PAGE)
    config = run_config(found)
    moving, treatment = _moving(found), treatment_of(found)
    updates = list(
        UpdateBatch.objects.filter(run=found)
        .select_related("checkpoint_after")
        .prefetch_related(Prefetch("steps", queryset=UpdateStep.objects.order_by("step"), to_attr="step_rows"))
        .order_by("-batch")[:12]
    )
    crumbs, study = run_crumbs(found), found.plan_version.plan.study if found.plan_version else None
    return render_page(
        request,
        "runs/run.html",
        section="runs",
        title=found.name,
        crumbs=crumbs,
        study=study,
        may_control=study is not None and can(principal_of(request), RUN_CONTROL, study),
        funnel=build_funnel(found),
        bar=build_step_bar(found, moving["progress"].total if found.head.phase == "train" else 0),
        listing=listing,
        rows=group_rows(list(listing)),
        choice=choice,
        span=span,
        filters=FILTERS,
        config=config,
        treatment=treatment,
        overlay=overlay_of(found, treatment.other if treatment else None),
        gate=gate_of(found),
        tried=has_trials(found.plan_version),
        charts=chart_views(found),
        updates=update_holdings(updates),
        receipts=list(Receipt.objects.filter(stream=f"run:{found.uid}").select_related("actor").order_by("-seq")[:6]),
        transitions=list(found.transitions.select_related("actor").order_by("at", "pk")),
        **moving,
    )


@require_safe
def live(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The part that moves while the run goes on: verdict, state, progress."""
    return render(request, "runs/parts/run_live.html", {**_moving(load_run(request, uid)), "fragment": True})
