"""Several runs side by side, and the data of their curves."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.access import principal_of, visible
from runs.models import Run
from runs.models.plan import heavy
from runs.presenters.compare import curves
from runs.presenters.compare import runs as shown
from runs.presenters.compare.identity import configuration
from runs.presenters.frame import Crumb
from runs.presenters.series import DEFINITIONS
from runs.views.base import render_page

RELATIONS = ("head__checkpoint", "arm", "plan_version__plan__study")
OFFERED = 200


def _chosen(request: HttpRequest) -> list[Run]:
    """The runs that ``?run=`` names, in that order, each once; a hidden one is as absent as an unknown one."""
    wanted: list[UUID] = []
    for text in request.GET.getlist("run"):
        try:
            uid = UUID(text)
        except ValueError as error:
            raise Http404(f"run: got {text!r}, expected a uid") from error
        if uid not in wanted:
            wanted.append(uid)
    if len(wanted) > shown.MOST:
        raise Http404(f"run: got {len(wanted)} runs, expected at most {shown.MOST}")
    rows = visible(principal_of(request), Run.objects.select_related(*RELATIONS).filter(uid__in=wanted))
    found = {run.uid: run for run in rows}
    if len(found) < len(wanted):
        raise Http404("run: expected runs that you can see")
    return [found[uid] for uid in wanted]


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """The comparison; with fewer than two runs the page to choose them."""
    chosen = _chosen(request)
    crumbs = [Crumb(_("Compare runs"))]
    rows = Run.objects.select_related("head", "arm", "plan_version__plan__study").defer(
        *heavy("plan_version__"), "arm__config_bytes"
    )
    offered = visible(principal_of(request), rows).order_by("-plan_version_id", "arm__position", "seed", "pk")[:OFFERED]
    context: dict[str, Any] = {"chosen": chosen, "offered": list(offered), "most": shown.MOST, "limit": OFFERED}
    studies = {run.plan_version.plan.study for run in chosen if run.plan_version is not None}
    if len(chosen) > 1:
        verdict = shown.comparability(chosen)
        config = shown.differences([configuration(run) for run in chosen])
        axis = request.GET.get("axis", "")
        context |= {
            "verdict": verdict,
            "config": config,
            "code": shown.differences([shown.code_of(run) for run in chosen]),
            "tables": shown.outcome_tables(chosen) if verdict.comparable else [],
            "styles": shown.styles(chosen),
            "side_names": [style.label for style in shown.styles(chosen)],
            "charts": curves.charts(verdict.comparable),
            "axes": list(curves.AXES.items()),
            "axis": axis if axis in curves.AXES else curves.NATIVE,
            "headline": shown.headline(chosen, verdict, config),
        }
    return render_page(
        request,
        "compare/runs.html",
        section="compare",
        title=_("Compare runs"),
        crumbs=crumbs,
        study=studies.pop() if len(studies) == 1 else None,
        **context,
    )


@require_safe
def series(request: HttpRequest, key: str) -> JsonResponse:
    """Points of one chart for the chosen runs over ``?axis=``. A chart that a grader enters needs comparability."""
    definition = DEFINITIONS.get(key)
    if definition is None:
        raise Http404(f"series: got {key!r}, expected one of {', '.join(DEFINITIONS)}")
    axis = request.GET.get("axis", curves.NATIVE)
    if axis not in curves.AXES:
        raise Http404(f"axis: got {axis!r}, expected one of {', '.join(curves.AXES)}")
    chosen = _chosen(request)
    if len(chosen) > 1 and key in curves.GRADED:
        verdict = shown.comparability(chosen)
        if not verdict.comparable:
            return JsonResponse({"refused": verdict.names()}, status=409)
    lines = []
    for style in shown.styles(chosen):
        curve = curves.curve_of(style.run, definition, axis)
        lines.append(
            {
                "name": style.label,
                "colour": style.colour,
                "dash": style.dash,
                "x": curve.x,
                "y": curve.y,
                "nonfinite": curve.nonfinite,
                "n_stored": curve.stored,
                "n_shown": curve.shown,
                "n_dropped": curve.dropped,
            }
        )
    return JsonResponse(
        {
            "key": key,
            "title": str(definition.title),
            "unit": str(definition.unit),
            "axis": curves.axis_word(definition, axis),
            "zero": definition.zero,
            "lines": lines,
        }
    )
