"""Jobs: the small units of work, their attempts, leases and errors."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of, visible_jobs
from runs.presenters.frame import Crumb
from runs.presenters.jobs import headline
from runs.query.listing import build_listing
from runs.states import JOB_TRANSITIONS
from runs.views.base import render_page
from runs.views.lists import list_page


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """All jobs, newest first."""
    principal = principal_of(request)
    counts = dict(visible_jobs(principal).values_list("state").annotate(n=Count("pk")).order_by())
    return list_page(
        request,
        build_listing("jobs", principal, request.GET),
        "runs/jobs.html",
        counts=[(state, counts.get(state, 0)) for state in JOB_TRANSITIONS],
    )


@require_safe
def job(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One job with its history."""
    found = get_object_or_404(
        visible_jobs(principal_of(request)).select_related("run", "study", "execution__plan_version__plan__study"),
        uid=uid,
    )
    return render_page(
        request,
        "runs/job.html",
        section="jobs",
        title=found.kind,
        crumbs=[Crumb(_("Jobs"), reverse("runs:jobs")), Crumb(found.kind)],
        job=found,
        headline=headline(found),
        transitions=list(found.transitions.order_by("at", "pk")),
    )
