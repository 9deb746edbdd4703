"""The page of exports of a study, and the files that it builds."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from evidence.outward.download import build, may_export, require_export, sees_every_stream
from evidence.presenters.outward import holdings, signing
from evidence.views.base import refused
from evidence.views.notes import get_study
from runs.access import principal_of
from runs.errors import DomainError
from runs.views.base import render_page
from runs.views.people.base import study_crumbs
from workbench.contracts.errors import ContractError


@require_safe
def exports(request: HttpRequest, study: str) -> HttpResponse:
    """What each form of export holds, its button and its command."""
    found = get_study(request, study)
    principal = principal_of(request)
    may = may_export(principal, found)
    return render_page(
        request, "evidence/exports.html", section="exports", title=_("Exports"), study=found,
        crumbs=study_crumbs(found, _("Exports")), of_study=found, holds=holdings(found), may=may, may_export=may,
        may_anchored=may and sees_every_stream(principal),
        signing=signing(found) if may else None,
    )  # fmt: skip


@require_POST
@login_required
def export(request: HttpRequest, study: str, form: str) -> HttpResponseBase:
    """Build an export now and send it; raw trajectories are never in it."""
    found = get_study(request, study)
    require_export(principal_of(request), found, form)
    try:
        made = build(found, form)
    except (DomainError, ContractError) as error:
        refused(request, error)
        return HttpResponseRedirect(reverse("evidence:exports", args=[found.slug]))
    response = FileResponse(made.file, as_attachment=True, filename=made.name, content_type="application/zip")
    response["Content-Length"] = str(made.size)
    response["X-Data-SHA256"] = made.sha256
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response
