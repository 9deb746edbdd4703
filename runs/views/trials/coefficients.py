"""Coefficients of one update."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.models import UpdateBatch
from runs.presenters.frame import Crumb
from runs.presenters.trials import coefficients as shown
from runs.presenters.trials.words import STATUS
from runs.views.base import render_page, run_crumbs

RELATIONS = ("run__arm", "run__plan_version__plan__study", "checkpoint_before", "checkpoint_after")


@require_safe
def coefficients(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Per trajectory A, D, s, m, L and masses, drawn over its tokens; 404 for an arm without credit from edits."""
    update = get_visible(principal_of(request), UpdateBatch.objects.select_related(*RELATIONS), uid=uid)
    terms = shown.terms_of(update)
    if not terms:
        raise Http404("coefficients: expected an update whose credit comes from edits")
    totals, arm = shown.totals_of(terms), terms[0].edit["arm"]
    words = {key: word for key, (word, _why) in STATUS.items()}
    objective = shown.objective_of(update)
    same = UpdateBatch.objects.filter(run=update.run)
    batch = _("Update %(batch)d") % {"batch": update.batch}
    return render_page(
        request,
        "trials/coefficients.html",
        section="runs",
        title=_("Coefficients of update %(batch)d") % {"batch": update.batch},
        crumbs=[
            *run_crumbs(update.run),
            Crumb(batch, reverse("runs:update", args=[update.uid])),
            Crumb(_("Coefficients")),
        ],
        study=update.run.plan_version.plan.study if update.run.plan_version else None,
        update=update,
        plan=update.run.plan_version.plan if update.run.plan_version else None,
        arm=arm,
        objective=objective,
        cap_below=-objective.get("edit_cap", 1.0),
        terms=terms,
        totals=totals,
        words={**words, "applied": _("applied"), "no_selected_token": _("the chosen turn has no policy token")},
        previous=same.filter(batch__lt=update.batch).order_by("-batch").first(),
        next=same.filter(batch__gt=update.batch).order_by("batch").first(),
        headline=shown.headline(update, arm, totals),
    )
