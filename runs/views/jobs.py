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
from runs.states import JOB_TRANSITIONS
from runs.views.base import paginate, render_page


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """All jobs, newest first; ``?state=`` narrows."""
    principal = principal_of(request)
    rows = visible_jobs(principal).select_related("run__plan_version__plan").order_by("-created_at", "-pk")
    chosen = request.GET.get("state", "")
    if chosen in JOB_TRANSITIONS:
        rows = rows.filter(state=chosen)
    counts = dict(visible_jobs(principal).values_list("state").annotate(n=Count("pk")).order_by())
    return render_page(
        request,
        "runs/jobs.html",
        section="jobs",
        title=_("Jobs"),
        crumbs=[Crumb(_("Jobs"))],
        listing=paginate(request, rows),
        counts=[(state, counts.get(state, 0)) for state in JOB_TRANSITIONS],
        chosen=chosen,
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
        transitions=list(found.transitions.order_by("at", "pk")),
    )
