"""Data of the charts: JSON for drawing, CSV for keeping."""

from __future__ import annotations

import math
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.models import Run
from runs.presenters.series import DEFINITIONS, MAX_POINTS, Definition, Point, thin, to_csv


def _read(request: HttpRequest, uid: UUID, key: str) -> tuple[Run, Definition, list[Point]]:
    run = get_visible(principal_of(request), Run.objects.select_related("head"), uid=uid)
    definition = DEFINITIONS.get(key)
    if definition is None:
        raise Http404(f"series: got {key!r}, expected one of {', '.join(DEFINITIONS)}")
    return run, definition, definition.read(run)


@require_safe
def series_json(request: HttpRequest, uid: UUID, key: str) -> JsonResponse:
    """Points to draw; ``?from=`` and ``?to=`` give the exact points of a zoomed range."""
    run, definition, points = _read(request, uid, key)
    try:
        low = float(request.GET.get("from", "-inf"))
        high = float(request.GET.get("to", "inf"))
    except ValueError as error:
        raise Http404(f"range: {error}, expected numbers") from error
    if math.isnan(low) or math.isnan(high):
        raise Http404("range: got NaN, expected numbers")
    inside = [point for point in points if low <= point[0] <= high]
    thinned = thin(inside, MAX_POINTS)
    finite = [p for p in thinned.points if p[1] is not None and math.isfinite(p[1])]
    rail = [
        [p[0], p[2] or ("nan" if p[1] is not None and math.isnan(p[1]) else "")]
        for p in thinned.points
        if p not in finite
    ]
    return JsonResponse(
        {
            "key": key,
            "title": str(definition.title),
            "unit": str(definition.unit),
            "axis": str(definition.axis),
            "digits": definition.digits,
            "zero": definition.zero,
            "x": [p[0] for p in finite],
            "y": [p[1] for p in finite],
            "nonfinite": [[x, word] for x, word in rail if word],
            "absent": [x for x, word in rail if not word],
            "n_stored": len(inside),
            "n_shown": thinned.shown,
            "sampler": thinned.sampler,
            "sha256": to_csv(definition, points)[1],
            "live": run.head.state == "running",
        }
    )


@require_safe
def series_csv(request: HttpRequest, uid: UUID, key: str) -> HttpResponse:
    """Every stored point; the hash of the bytes stands in the ``X-Data-SHA256`` header and in the name."""
    run, definition, points = _read(request, uid, key)
    data, sha256 = to_csv(definition, points)
    response = HttpResponse(data, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{run.name}-{key}-{sha256[:12]}.csv"'
    response["X-Data-SHA256"] = sha256
    return response
