"""The page of two trajectories of one task, and the list of pairs of a group."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.models import Trajectory
from runs.presenters.compare import divergence as shown
from runs.presenters.frame import Crumb
from runs.presenters.told import told
from runs.views.base import render_page
from runs.views.trajectories import group_crumbs

RELATIONS = (
    "group__task",
    "group__checkpoint",
    "group__plan_version__plan__study",
    "group__run__plan_version__plan__study",
    "group__run__arm",
)


@require_safe
def divergence(request: HttpRequest, uid: UUID, other: UUID) -> HttpResponse:
    """First token that differs, both sides turn by turn. Two different tasks are refused with status 422."""
    principal, rows = principal_of(request), Trajectory.objects.select_related(*RELATIONS)
    left, right = get_visible(principal, rows, uid=uid), get_visible(principal, rows, uid=other)
    same_group = left.group_id == right.group_id
    word = _("s%(a)s against s%(b)s") % {"a": left.slot, "b": right.slot}
    context = {
        "left": left,
        "right": right,
        "same_group": same_group,
        "same_policy": left.group.checkpoint_id == right.group.checkpoint_id,
        "same_seed": left.seed == right.seed,
        "refused": "",
        "unreadable": "",
        "found": None,
    }
    status = 200
    if left.group.task_id != right.group.task_id:
        context["refused"] = _("Two different tasks have no common prompt, so no first difference means anything.")
        context["headline"], status = _("Refused: the two trajectories are of different tasks."), 422
    elif left.pk == right.pk:
        context["refused"] = _("A trajectory does not differ from itself.")
        context["headline"], status = _("Refused: both addresses name one trajectory."), 422
    else:
        try:
            context["found"] = found = shown.divergence_of(left, right)
            context["headline"] = shown.headline(found)
        except shown.READ_ERRORS as error:
            context["unreadable"], context["headline"] = told(error), _("The recorded tokens are unavailable.")
    if same_group:
        siblings = list(Trajectory.objects.filter(group=left.group).order_by("slot"))
        context["siblings"] = [row for row in siblings if row.pk != left.pk and row.status == "valid"]
    own = Crumb(_("slot %(n)s") % {"n": left.slot}, reverse("runs:trajectory", args=[left.uid]))
    return render_page(
        request,
        "compare/divergence.html",
        section="trajectories",
        title=word,
        crumbs=[*group_crumbs(left.group), own, Crumb(word)],
        study=left.group.plan_version.plan.study,
        status=status,
        **context,
    )
