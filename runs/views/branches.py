"""Same-state branches of a trajectory: what was sampled, and the request for more."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from runs.access import RUN_CONTROL, can, get_visible, principal_of, require
from runs.actions.record_branches import jobs_of, request_branch
from runs.errors import DomainError, NotAllowed
from runs.models import StateBranch, Trajectory
from runs.presenters import branches as shown
from runs.presenters.frame import Crumb
from runs.views.base import refused, render_page
from runs.views.trajectories import group_crumbs
from workbench.contracts.branches import MOST_CONTINUATIONS

DEFAULT = 8


def _trajectory(request: HttpRequest, uid: UUID) -> Trajectory:
    rows = Trajectory.objects.select_related(
        "group__task", "group__checkpoint", "group__plan_version__plan__study",
        "group__run__plan_version__plan__study", "group__run__arm",
    )  # fmt: skip
    return get_visible(principal_of(request), rows, uid=uid)


@require_safe
def branches(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Every branch of the trajectory by decision, newest of each first, and its jobs under way."""
    found = _trajectory(request, uid)
    own = StateBranch.objects.filter(trajectory=found).select_related("trajectory").order_by("decision", "-ordinal")
    study = found.group.plan_version.plan.study
    crumbs: list[Any] = [
        *group_crumbs(found.group),
        Crumb(gettext_lazy("slot %(n)s") % {"n": found.slot}, reverse("runs:trajectory", args=[found.uid])),
        Crumb(gettext_lazy("Same-state branches")),
    ]
    return render_page(
        request, "branches/trajectory.html", section="trajectories", title=gettext_lazy("Same-state branches"),
        crumbs=crumbs, study=study, trajectory=found, views=[shown.view_of(row) for row in own],
        turns=list(found.turns.order_by("decision")), jobs=list(jobs_of(found)[:10]),
        may_ask=can(principal_of(request), RUN_CONTROL, study), most=MOST_CONTINUATIONS, default=DEFAULT,
    )  # fmt: skip


@require_POST
@login_required
def ask(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Ask a worker for continuations from a decision."""
    found = _trajectory(request, uid)
    principal = principal_of(request)
    try:
        require(principal, RUN_CONTROL, found.group.plan_version.plan.study)
    except NotAllowed as error:
        raise PermissionDenied(str(error)) from error
    given = [request.POST.get(name, "") for name in ("decision", "continuations")]
    try:
        if not all(text.isascii() and text.isdigit() and len(text) < 6 for text in given):
            raise DomainError(f"decision, continuations: got {given}, expected two whole numbers")
        request_branch(found, int(given[0]), int(given[1]), by=principal.actor(), at=timezone.now())
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("Asked for: a worker continues from this state."))
    return redirect("runs:branches", uid=uid)
