"""The log of trials of a plan, and of its queries with what became of them."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.presenters.frame import Crumb
from runs.presenters.trials import log as shown
from runs.presenters.trials.links import may_be_tried
from runs.presenters.trials.words import STATUS
from runs.views.base import paginate, render_page
from runs.views.plans import chosen_version, load_plan, plan_crumbs

PAGE = 25


@require_safe
def trials(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """``?list=trials`` (default) or ``queries``, narrowed by the filters of the form."""
    found = load_plan(request, study, plan)
    version = chosen_version(request, found)
    if version is None or not may_be_tried(version):
        raise Http404("trials: expected a frozen plan that asks for trials")
    arms = list(version.arms.order_by("position").values_list("key", flat=True))
    asked = shown.read(request.GET, arms)
    listing = paginate(request, shown.keys_of(version, asked), PAGE)
    executed = shown.executed_of(version, asked) if asked.kind == shown.TRIALS else 0
    return render_page(
        request,
        "trials/log.html",
        section="edit_credit",
        title=_("Trial log"),
        crumbs=[
            *plan_crumbs(found),
            Crumb(_("Edit credit"), reverse("runs:edit_credit", args=[study, plan])),
            Crumb(_("Trial log")),
        ],
        study=found.study,
        plan=found,
        version=version,
        asked=asked,
        listing=listing,
        executed=executed,
        copied=listing.paginator.count - executed,
        rows=shown.rows_of(asked, list(listing)),
        statuses=STATUS,
    )
