"""The page of a strict pair."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.actions.plans import plan_body
from runs.models import Plan
from runs.presenters import results
from runs.presenters.compare import pair as shown
from runs.presenters.compare.pairing import OUTCOMES
from runs.presenters.evaluation import planned_items
from runs.presenters.frame import Crumb
from runs.views.base import render_page
from runs.views.plans import chosen_version, plan_crumbs


@require_safe
def pair(request: HttpRequest, study: str, plan: str, a: str, b: str) -> HttpResponse:
    """Comparability, contract, outcomes by condition, flips per task, and what may be said."""
    rows = Plan.objects.select_related("study", "current_version__created_by")
    found = get_visible(principal_of(request), rows, study__slug=study, slug=plan)
    version = chosen_version(request, found)
    contract = shown.find_pair(version, (a, b)) if version is not None else None
    if version is None or contract is None:
        raise Http404(f"pair: got {a} and {b}, expected two arms that a frozen plan declares a strict pair")
    if contract.arms != (a, b):
        query = f"?{request.GET.urlencode()}" if request.GET else ""
        return redirect(reverse("runs:pair", args=[study, plan, *contract.arms]) + query)
    execution = getattr(version, "execution", None)
    aggregate, document = results.stored_aggregate(execution)
    places = shown.outcome_places(version, contract, aggregate)
    verdict = shown.comparability(version, contract, places)
    choice = shown.choose(version, contract.arms, request.GET)
    endpoints = shown.endpoints_of(version, contract, aggregate)
    context: dict[str, Any] = {}
    if verdict.comparable:
        dots = results.paired_dots(version, contract.arms, aggregate)
        context = {
            "flip": shown.flip_view(version, contract, choice, aggregate),
            "dots": [d for d in dots if (d.condition, d.split) == (choice.condition, choice.split)],
        }
    word = _("%(a)s and %(b)s") % {"a": a, "b": b}
    return render_page(
        request,
        "compare/pair.html",
        section="pair",
        title=word,
        crumbs=[*plan_crumbs(found), Crumb(word)],
        study=found.study,
        plan=found,
        version=version,
        execution=execution,
        document=document,
        contract=contract,
        total=len(contract.different) + contract.count_equal,
        verdict=verdict,
        places=places,
        choice=choice,
        metrics=[(item.key, item.word) for item in OUTCOMES.values()],
        grid=list(planned_items(version)),
        endpoints=endpoints,
        sayings=results.sayings(endpoints),
        claims=plan_body(version)["plan"]["claims"],
        smallest=plan_body(version)["plan"]["smallest_detectable_difference"],
        headline=shown.headline(contract, verdict),
        finding=shown.finding(contract, endpoints),
        **context,
    )
