"""Changes of sources from pages: upload, watched folders, git, checks. Each calls one action and says what it did."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from evidence.actions import sources as actions
from evidence.ingest.roots import root_names
from evidence.models import Source, WatchedFolder
from evidence.presenters import sources as shown
from evidence.presenters.troubles import told
from evidence.views.base import refused
from evidence.views.sources import get_source, writable
from runs.access import EVIDENCE_WRITE, get_visible, principal_of, require, visible_studies
from runs.errors import DomainError
from runs.models import Study
from runs.presenters.frame import Crumb
from runs.views.base import render_page

TYPED = (
    "study", "path", "reference", "title_en", "title_zh", "cutoff", "note", "reason", "sha256", "repository", "commit",
    "root", "folder",
)  # fmt: skip


def _study(request: HttpRequest) -> Study:
    """The study that the form names, where the caller may write its evidence. Raises ``Http404`` or ``NotAllowed``."""
    slug = request.POST.get("study", "")[:100].replace("\x00", "")
    found = visible_studies(principal_of(request)).filter(slug=slug).first()
    if found is None:
        raise Http404("no such study")
    require(principal_of(request), EVIDENCE_WRITE, found)
    return found


def _acting(request: HttpRequest) -> dict[str, Any]:
    return {"by": principal_of(request).actor(), "at": timezone.now()}


def _cutoff(request: HttpRequest) -> date | None:
    text = request.POST.get("cutoff", "").strip()
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise DomainError(f"cutoff: got {text[:40]!r}, expected a day such as 2026-05-04") from error


def _described(request: HttpRequest) -> dict[str, Any]:
    names = ("reference", "title_en", "title_zh", "note", "reason")
    return {**{name: request.POST.get(name, "").strip() for name in names}, "cutoff": _cutoff(request)}


def _uploaded(request: HttpRequest) -> bytes | None:
    """The bytes of the form's file; its name is not looked at. None where only a hash is recorded."""
    file = request.FILES.get("file")
    if file is None:
        return None
    if (file.size or 0) > settings.SOURCE_LIMIT:
        raise DomainError(f"file: got {file.size} bytes, expected at most {settings.SOURCE_LIMIT}")
    return file.read()


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def source_new(request: HttpRequest) -> HttpResponse:
    """The form of every way in; a POST takes an uploaded file, or only its recorded hash, in."""
    problem = ""
    if request.method == "POST":
        study = _study(request)
        try:
            data = _uploaded(request)
            sha256 = request.POST.get("sha256", "").strip()
            if data is None and not sha256:
                raise DomainError("file: got none, expected a file, or the recorded hash of bytes that are elsewhere")
            version = actions.add_source(
                study, request.POST.get("path", "").strip(), data, origin=Source.UPLOAD, sha256=sha256,
                **_described(request), **_acting(request),
            )  # fmt: skip
        except DomainError as error:
            problem = told(str(error))
        else:
            messages.success(request, _("Taken in as version %(n)d. A receipt was written.") % {"n": version.number})
            return redirect("evidence:source", uid=version.source.uid)
    return _form(request, problem)


def _form(request: HttpRequest, problem: str = "") -> HttpResponse:
    given = request.POST if request.method == "POST" else request.GET
    studies = writable(request)
    folders = WatchedFolder.objects.filter(study__in=studies, enabled=True).select_related("study").order_by("pk")
    return render_page(
        request, "evidence/source_new.html", section="sources", title=_("New source"),
        crumbs=[Crumb(gettext_lazy("Sources"), reverse("evidence:sources")), Crumb(gettext_lazy("New source"))],
        studies=studies, typed={name: given.get(name, "")[:4000] for name in TYPED}, problem=problem,
        roots=root_names(), folders=list(folders), limit=settings.SOURCE_LIMIT, status=422 if problem else 200,
    )  # fmt: skip


@require_POST
@login_required
def source_from_git(request: HttpRequest) -> HttpResponse:
    """Take a file of a git commit in."""
    study = _study(request)
    try:
        version = actions.add_from_git(
            study, request.POST.get("repository", "").strip().lstrip("/"), request.POST.get("commit", "").strip(),
            request.POST.get("path", "").strip(), **_described(request), **_acting(request),
        )  # fmt: skip
    except DomainError as error:
        return _form(request, told(str(error)))
    messages.success(request, _("Taken in as version %(n)d. A receipt was written.") % {"n": version.number})
    return redirect("evidence:source", uid=version.source.uid)


@require_POST
@login_required
def source_watch(request: HttpRequest) -> HttpResponse:
    """Watch a folder and take its files in."""
    study = _study(request)
    try:
        folder = actions.watch_folder(
            study, request.POST.get("root", "")[:64], request.POST.get("folder", "")[:500], **_acting(request)
        )
    except DomainError as error:
        return _form(request, told(str(error)))
    messages.success(request, _("Watched from now on: %(folder)s") % {"folder": f"{folder.root}/{folder.path}"})
    return HttpResponseRedirect(f"{reverse('evidence:sources')}?study={study.slug}&origin={Source.WATCHED}")


def _folder(request: HttpRequest, pk: int) -> WatchedFolder:
    found = get_visible(principal_of(request), WatchedFolder.objects.select_related("study"), "study", pk=pk)
    require(principal_of(request), EVIDENCE_WRITE, found.study)
    return found


@require_POST
@login_required
def folder_scan(request: HttpRequest, pk: int) -> HttpResponse:
    """Look at a watched folder now."""
    folder = _folder(request, pk)
    try:
        found = actions.scan_folder(folder, **_acting(request))
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(
            request,
            _("Scanned: %(added)d new, %(changed)d changed, %(gone)d gone, %(refused)d refused.")
            % {
                "added": len(found.added), "changed": len(found.changed), "gone": len(found.gone),
                "refused": len(found.refused),
            },
        )  # fmt: skip
    return redirect("evidence:source_new")


@require_POST
@login_required
def folder_stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Watch a folder no more."""
    actions.unwatch_folder(_folder(request, pk), **_acting(request))
    messages.success(request, _("Watched no more; its sources stay."))
    return redirect("evidence:source_new")


def _of_source(request: HttpRequest, uid: UUID) -> Source:
    found = get_source(request, uid)
    require(principal_of(request), EVIDENCE_WRITE, found.study)
    return found


@require_POST
@login_required
def source_check(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Hash the newest version's bytes again."""
    found = _of_source(request, uid)
    if found.current is not None:
        state = actions.check_version(found.current, **_acting(request))
        messages.success(request, _("Checked now: %(state)s") % {"state": shown.STATES[state].word})
    return redirect("evidence:source", uid=uid)


@require_POST
@login_required
def source_take_in(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Take what the watched file holds now as the next version."""
    found = _of_source(request, uid)
    try:
        version = actions.take_in(found, reason=request.POST.get("reason", ""), **_acting(request))
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("Taken in as version %(n)d. A receipt was written.") % {"n": version.number})
    return redirect("evidence:source", uid=uid)
