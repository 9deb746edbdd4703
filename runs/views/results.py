"""Results of a plan: the arms side by side."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.actions.plans import plan_body
from runs.presenters import results as shown
from runs.presenters.evaluation import OUTCOMES, planned_items
from runs.presenters.frame import Crumb
from runs.presenters.plans import contracts
from runs.presenters.trials.links import has_trials
from runs.views.base import render_page
from runs.views.plans import chosen_version, load_plan, plan_crumbs


@require_safe
def results(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """Outcomes by condition, paired tasks, endpoints, and what may be said."""
    found = load_plan(request, study, plan)
    version = chosen_version(request, found)
    crumbs = [*plan_crumbs(found), Crumb(_("Results"), reverse("runs:results", args=[study, plan]))]
    if version is None:
        return render_page(
            request,
            "runs/results.html",
            section="results",
            title=_("Results"),
            crumbs=crumbs,
            study=found.study,
            plan=found,
        )
    execution = getattr(version, "execution", None)
    aggregate, document = shown.stored_aggregate(execution)
    columns = shown.arm_columns(version)
    pairs = contracts(version)
    endpoints = shown.endpoint_views(plan_body(version)["plan"], aggregate)
    tables = [
        {
            "condition": condition,
            "split": split,
            "planned": planned,
            "injected": condition == "stress",
            "rows": [
                (word, [column.cells[condition, split].shown(key) for column in columns])
                for key, word, _n, _d in OUTCOMES
            ],
            "cells": [column.cells[condition, split] for column in columns],
        }
        for (condition, split), planned in planned_items(version).items()
    ]
    return render_page(
        request,
        "runs/results.html",
        section="results",
        title=_("Results"),
        crumbs=crumbs,
        study=found.study,
        plan=found,
        version=version,
        execution=execution,
        document=document,
        columns=columns,
        tables=tables,
        endpoints=endpoints,
        headline=shown.headline(endpoints, columns),
        sayings=shown.sayings(endpoints),
        claims=plan_body(version)["plan"]["claims"],
        tried=has_trials(version),
        pairs=[(contract, shown.paired_dots(version, contract.arms, aggregate)) for contract in pairs],
    )
