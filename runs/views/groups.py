"""One group."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.models import Group
from runs.presenters import group as shown
from runs.presenters.trials.links import interventions_of
from runs.views.base import render_page
from runs.views.trajectories import group_crumbs


@require_safe
def group(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Slots side by side."""
    rows = Group.objects.select_related(
        "task",
        "checkpoint",
        "run__arm",
        "run__plan_version__plan__study",
        "plan_version__plan__study",
        "consumed__update",
        "trial_set",
    ).prefetch_related("trajectories__turns__tool_call__observation", "trajectories__reward_components")
    found = get_visible(principal_of(request), rows, uid=uid)
    columns = shown.columns(found)
    partings, unreadable = shown.partings(found, columns)
    same = Group.objects.filter(run=found.run, purpose=found.purpose)
    if found.purpose == "evaluate":
        same = same.filter(checkpoint=found.checkpoint, condition=found.condition, split=found.split)
    return render_page(
        request,
        "runs/group.html",
        section="groups",
        title=_("group %(n)s") % {"n": found.ordinal},
        crumbs=group_crumbs(found),
        study=found.plan_version.plan.study,
        group=found,
        columns=columns,
        aligned=shown.aligned(columns),
        signal=shown.signal_of(found, columns),
        heat=shown.heat(columns),
        partings=partings,
        unreadable=unreadable,
        headline=shown.headline(found, columns),
        tried=interventions_of(found),
        update=getattr(getattr(found, "consumed", None), "update", None),
        previous=same.filter(ordinal__lt=found.ordinal).order_by("-ordinal").first(),
        next=same.filter(ordinal__gt=found.ordinal).order_by("ordinal").first(),
    )
