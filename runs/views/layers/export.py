"""Files of a card and of a comparison: CSV, Parquet, SVG, PDF, LaTeX, each named by the hash of its data."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.http import FileResponse, Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from runs.access import principal_of
from runs.exports import figures, latex, tables
from runs.exports.cards import ALL, PLOTTED, CardFile, ComparedFile, Moving, compared_sha256, snapshot
from runs.models import Run
from runs.presenters.layers.access import metric_run
from runs.presenters.layers.cards import card_of
from runs.views.layers.compare import compared_of, read_axis
from runs.views.layers.data import read_window

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "tex": "application/x-tex; charset=utf-8",
}
NAME_MOST = 60


def _named(response: HttpResponseBase, parts: Iterable[str], kind: str, sha256: str) -> HttpResponseBase:
    """Headers that every file has: its name with the hash's beginning, the whole hash, and no guessing of its type."""
    name = "-".join(slugify(part)[:NAME_MOST] or "x" for part in parts)
    response["Content-Type"] = TYPES[kind]
    response["Content-Disposition"] = f'attachment; filename="{name}-{sha256[:12]}.{kind}"'
    response["X-Data-SHA256"] = sha256
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _points(request: HttpRequest) -> str:
    chosen = request.GET.get("points") or PLOTTED
    if chosen not in (PLOTTED, ALL):
        raise Http404(f"points: got {chosen[:40]!r}, expected {PLOTTED} or {ALL}")
    return chosen


def _file(source: CardFile | ComparedFile, kind: str, points: str, sha256: str) -> HttpResponseBase:
    """The answer without its headers. Tables are streamed; figures and LaTeX are small."""
    schema = tables.POINTS if isinstance(source, CardFile) else tables.COMPARED
    if kind == "csv":
        return StreamingHttpResponse(tables.csv_stream(schema, source.batches(points)))
    if kind == "parquet":
        facts = {"data_sha256": sha256, "points": points, "title": source.title}
        return FileResponse(tables.parquet_file(schema, source.batches(points), facts))
    if kind == "tex":
        return HttpResponse(latex.render(source.table()))
    return HttpResponse(figures.render(source.sheet(), kind))


def _kind(kind: str) -> str:
    if kind not in TYPES:
        raise Http404(f"format: got {kind[:20]!r}, expected one of {', '.join(TYPES)}")
    return kind


@require_safe
def card_export(request: HttpRequest, uid: UUID, key: str, kind: str) -> HttpResponseBase:
    """One card of a run: what is plotted in the window, or ``points=all`` stored points; 503 while the run moves."""
    run = metric_run(principal_of(request), uid)
    card, kind, points, window = card_of(run, key), _kind(kind), _points(request), read_window(request)
    if card is None:
        raise Http404(f"key: got {key[:40]!r}, expected a card of this run")
    try:
        found = snapshot(run, card.series)
    except Moving as error:
        return HttpResponse(str(error), status=503, content_type="text/plain; charset=utf-8")
    name = run.name if run.origin == Run.NATIVE else run.tracked.name
    source = CardFile(run, name, card, window, found)
    parts = [name, card.name, *([points] if kind in ("csv", "parquet") else [])]
    return _named(_file(source, kind, points, found.sha256), parts, kind, found.sha256)


@require_safe
def compare_export(request: HttpRequest, key: str, kind: str) -> HttpResponseBase:
    """One quantity over the chosen runs."""
    kind, points, axis = _kind(kind), _points(request), read_axis(request)
    found = compared_of(request, key, axis)
    sha256 = compared_sha256(found)
    source = ComparedFile(found, axis, sha256)
    parts = ["compare", found.quantity.name, *([points] if kind in ("csv", "parquet") else [])]
    return _named(_file(source, kind, points, sha256), parts, kind, sha256)
