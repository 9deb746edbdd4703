"""Data of layer charts: one request for several lines, a window of an axis, or only what is new."""

from __future__ import annotations

import math
from uuid import UUID

from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from runs.access import principal_of
from runs.metrics.draw import SHOWN
from runs.metrics.read import AXES, SeriesInfo, series_of
from runs.models import Run
from runs.presenters.layers.access import is_live, metric_run
from runs.presenters.layers.data import Window, cursor_of, layer_data

SERIES_MOST = 200  # lines in one answer


def _number(request: HttpRequest, name: str) -> float | None:
    text = request.GET.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError as error:
        raise Http404(f"{name}: got {text[:40]!r}, expected a number") from error
    if math.isnan(value):
        raise Http404(f"{name}: got nan, expected a number")
    return value


def read_window(request: HttpRequest) -> Window:
    """``axis``, ``from``, ``to`` and ``limit`` of the query. Raises ``Http404`` naming what is wrong."""
    axis = request.GET.get("axis", "step")
    if axis not in AXES:
        raise Http404(f"axis: got {axis[:40]!r}, expected one of {', '.join(AXES)}")
    limit = _number(request, "limit")
    size = SHOWN if limit is None or not 8 <= limit <= 20000 else int(limit) // 4 * 4
    return Window(axis, _number(request, "from"), _number(request, "to"), size)


def read_series(request: HttpRequest, run: Run) -> list[SeriesInfo]:
    """The series that ``series=`` names (uids, comma-separated or repeated), in their order; those of this run only."""
    wanted = [part for text in request.GET.getlist("series") for part in text.split(",") if part]
    if not 0 < len(wanted) <= SERIES_MOST:
        raise Http404(f"series: got {len(wanted)}, expected 1 to {SERIES_MOST} uids")
    known = {item.uid: item for item in series_of(run)}
    strangers = [uid for uid in wanted if uid not in known]
    if strangers:
        raise Http404(f"series: got {strangers[0][:40]!r}, expected a series of this run")
    return [known[uid] for uid in dict.fromkeys(wanted)]


@require_safe
def layer_json(request: HttpRequest, uid: UUID) -> JsonResponse:
    """Points to draw. With ``cursor=`` of an earlier answer: only what was stored since, and
    ``{"changed": false}`` where that is nothing."""
    run = metric_run(principal_of(request), uid)
    cursor = request.GET.get("cursor", "")
    if cursor and cursor == cursor_of(run):
        return JsonResponse({"changed": False, "cursor": cursor, "live": is_live(run)})
    data = layer_data(run, read_series(request, run), read_window(request), cursor)
    return JsonResponse({"changed": True, **data})
