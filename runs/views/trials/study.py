"""Edit credit of one execution: every scope beside the others."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.actions.plans import plan_body
from runs.models import Run
from runs.models.plan import heavy
from runs.presenters.compare.discarded import ENDED
from runs.presenters.frame import Crumb
from runs.presenters.results import stored_aggregate
from runs.presenters.trials import study as shown
from runs.presenters.trials.beside import sampled_of
from runs.presenters.trials.costs import costs_of
from runs.presenters.trials.funnel import build_columns, fates
from runs.presenters.trials.links import may_be_tried, trial_sets
from runs.presenters.trials.quantities import quantities
from runs.presenters.trials.rows import read_rows
from runs.presenters.trials.spread import build_spreads, scatter
from runs.presenters.trials.words import NOT_WHAT_D_IS
from runs.views.base import render_page
from runs.views.plans import chosen_version, load_plan, plan_crumbs

POINTS = 2000  # of a scope in the scatter


@require_safe
def edit_credit(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """Funnel, signs, geometry, spread of D, missing feedback and cost; 404 for a plan that asks for no trials."""
    found = load_plan(request, study, plan)
    version = chosen_version(request, found)
    execution = getattr(version, "execution", None) if version is not None else None
    if version is None or execution is None or not may_be_tried(version):
        raise Http404("edit credit: expected a started plan that asks for trials")
    runs = list(
        Run.objects.filter(plan_version=version)
        .select_related("head", "arm", "plan_version")
        .defer(*heavy("plan_version__"), "arm__config_bytes")
        .order_by("arm__position", "seed", "pk")
    )
    ended = execution.state in (*ENDED, "closed")
    columns = build_columns(version, runs, read_rows(version), shown.credits_of(version), ended=ended)
    aggregate, document = stored_aggregate(execution)
    effect = shown.effect_of(plan_body(version)["plan"], aggregate)
    changes = shown.changes_of(version, {run.arm.pk: run.arm.key for run in runs if run.arm is not None})
    asked = [column for column in columns if column.mode is not None]
    crumbs = [*plan_crumbs(found), Crumb(_("Edit credit"), reverse("runs:edit_credit", args=[study, plan]))]
    return render_page(
        request,
        "trials/edit_credit.html",
        section="edit_credit",
        title=_("Edit credit"),
        crumbs=crumbs,
        study=found.study,
        plan=found,
        version=version,
        execution=execution,
        document=document,
        columns=columns,
        asked=asked,
        fates=fates(columns),
        quantities=quantities(asked),
        not_what=NOT_WHAT_D_IS,
        spreads=build_spreads(columns),
        scatter=scatter(columns, POINTS),
        sampled=sampled_of(version),
        costs=costs_of(execution, columns, runs, timezone.now()),
        changes=changes,
        effect=effect,
        headline=shown.headline(columns, changes, effect),
        newest=trial_sets(version).order_by("-pk").first(),
        stored=trial_sets(version).count(),
    )
