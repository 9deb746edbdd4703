"""Runs that were logged from elsewhere: the list, one run, its files."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.models import ImportedRollout, Run, RunParameter, Study, TrackedRun
from runs.presenters.frame import Crumb
from runs.presenters.layers.access import is_live
from runs.presenters.logged import listing as lists
from runs.presenters.logged import run as shown
from runs.presenters.logged.charts import main_charts
from runs.storage import blob_store
from runs.views.base import PAGE_SIZE, paginate, render_page
from workbench.blobs import BlobMissing

GRADES = ("A", "B", "C")
LISTED = 300  # tags and files on the page; the rest is counted, and the API has all


def get_logged(request: HttpRequest, uid: UUID) -> TrackedRun:
    """The visible logged run. Raises ``Http404`` alike where it is absent and where it is hidden."""
    found = lists.logged_runs(principal_of(request)).select_related("linked_plan__plan__study").filter(run__uid=uid)
    head = found.first()
    if head is None:
        raise Http404("no logged run that you can see matches")
    return head


def logged_crumbs(head: TrackedRun) -> list[Crumb]:
    """Breadcrumb down to a logged run."""
    return [
        Crumb(head.study.slug, reverse("runs:study", args=[head.study.slug])),
        Crumb(_("Logged runs"), reverse("runs:logged")),
        Crumb(head.name, reverse("runs:logged_run", args=[head.run.uid])),
    ]


@require_safe
def logged(request: HttpRequest) -> HttpResponse:
    """All logged runs, newest first; ``?q=`` looks for words in names, ``?study=`` shows those of one study."""
    principal = principal_of(request)
    text, slug = request.GET.get("q", "")[: lists.NAME_MOST], request.GET.get("study", "")[:64]
    study = get_visible(principal, Study.objects.all(), "pk", slug=slug) if slug else None
    rows = lists.narrowed(lists.logged_runs(principal), text)
    if study is not None:
        rows = rows.filter(study=study)
    listing = paginate(request, rows)
    above = [Crumb(study.slug, reverse("runs:study", args=[study.slug]))] if study is not None else []
    return render_page(
        request, "logged/list.html", section="logged", title=_("Logged runs"),
        crumbs=[*above, Crumb(_("Logged runs"))], study=study, of_study=study, listing=listing,
        rows=lists.listed(list(listing)), text=text,
    )  # fmt: skip


def _rollouts(request: HttpRequest, run: Run) -> tuple[str, Page[ImportedRollout]]:
    grade = request.GET.get("grade", "")
    rows = ImportedRollout.objects.filter(run=run).defer("body").order_by("step", "group_key", "pk")
    if grade in GRADES:
        rows = rows.filter(grade=grade)
    return grade, paginate(request, rows)


@require_safe
def logged_run(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One logged run. ``?page=`` turns its rollouts, ``?parameters=`` its parameters, ``?grade=`` narrows rollouts."""
    head = get_logged(request, uid)
    facts, imports = shown.facts_of(head), shown.imports_of(head.run)
    parameters = Paginator(RunParameter.objects.filter(run=head.run).order_by("key"), PAGE_SIZE)
    grade, rollouts = _rollouts(request, head.run)
    tags, artifacts = shown.tags_of(head.run), shown.artifacts_of(head.run)
    context: dict[str, Any] = {
        "head": head,
        "run": head.run,
        "facts": facts,
        "main": main_charts(head.run),
        "live": is_live(head.run),
        "headline": shown.headline(head, facts, imports),
        "imports": imports,
        "parameters": parameters.get_page(request.GET.get("parameters")),
        "tags": tags[:LISTED],
        "tags_more": max(0, len(tags) - LISTED),
        "artifacts": artifacts[:LISTED],
        "artifacts_more": max(0, len(artifacts) - LISTED),
        "segments": shown.segments_of(head.run),
        "history": shown.history_of(head.run),
        "listing": rollouts,
        "grades": shown.grades_of(head.run),
        "grade": grade,
    }
    return render_page(
        request, "logged/run.html", section="logged", title=head.name, crumbs=logged_crumbs(head), study=head.study,
        **context,
    )  # fmt: skip


@require_safe
def logged_file(request: HttpRequest, uid: UUID, file: str) -> HttpResponseBase:
    """The bytes of the newest file of a path, as an attachment: never opened by the browser on this site."""
    head = get_logged(request, uid)
    row = shown.artifact_of(head.run, file)
    if row is None:
        raise Http404(f"path: got {file[:120]!r}, expected a file of this run")
    try:
        stream = blob_store().path(row.sha256).open("rb")
    except (BlobMissing, FileNotFoundError) as error:
        raise Http404(f"path: the store holds no bytes of {row.sha256}") from error
    name = file.rpartition("/")[2]
    response = FileResponse(stream, as_attachment=True, filename=name, content_type="application/octet-stream")
    response["X-Data-SHA256"] = row.sha256
    response["X-Content-Type-Options"] = "nosniff"
    response["ETag"] = f'"{row.sha256}"'
    return response
