"""One trajectory: reading column and token strip."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.models import EvaluationItem, Trajectory, TrajectoryCredit
from runs.presenters import trajectory as shown
from runs.presenters.frame import Crumb
from runs.presenters.progress import run_config
from runs.presenters.tokens import payload
from runs.presenters.told import told
from runs.query.listing import within
from runs.views.base import render_page, run_crumbs
from workbench.blobs import BlobError
from workbench.contracts.errors import ContractError


def group_crumbs(group: Any) -> list[Crumb]:
    """Breadcrumb down to a group."""
    word = gettext_lazy("group %(n)s") % {"n": group.ordinal}
    if group.run is not None:
        base = run_crumbs(group.run)
    else:
        study = group.plan_version.plan.study
        base = [
            Crumb(study.slug, reverse("runs:study", args=[study.slug])),
            Crumb(gettext_lazy("Evaluations"), reverse("runs:evaluations")),
        ]
    return [*base, Crumb(word, reverse("runs:group", args=[group.uid]))]


def _clip(found: Trajectory) -> dict[str, Any]:
    objective = run_config(found.group.run).get("objective", {}) if found.group.run else {}
    return {"clip_low": objective.get("clip_low", 0.2), "clip_high": objective.get("clip_high", 0.2)}


def _neighbours(siblings: list[Trajectory], own: Trajectory) -> dict[str, Any]:
    at = next(i for i, row in enumerate(siblings) if row.pk == own.pk)
    return {
        "previous": siblings[at - 1] if at else None,
        "next": siblings[at + 1] if at + 1 < len(siblings) else None,
    }


@require_safe
def trajectory(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The whole page; tokens follow as JSON."""
    rows = Trajectory.objects.select_related(
        "group__task",
        "group__checkpoint",
        "group__plan_version__plan__study",
        "group__run__plan_version__plan__study",
        "group__run__arm",
        "intervention",
    ).prefetch_related("turns__tool_call__observation", "reward_components")
    found = get_visible(principal_of(request), rows, uid=uid)
    siblings = list(Trajectory.objects.filter(group=found.group).order_by("slot"))
    credit = TrajectoryCredit.objects.filter(trajectory=found).select_related("update").first()
    item = EvaluationItem.objects.filter(trajectory=found).first()
    crumbs = [*group_crumbs(found.group), Crumb(gettext_lazy("slot %(n)s") % {"n": found.slot})]
    return render_page(
        request,
        "runs/trajectory.html",
        section="trajectories" if item is None else "evaluations",
        title=_("slot %(n)s") % {"n": found.slot},
        crumbs=crumbs,
        study=found.group.plan_version.plan.study,
        trajectory=found,
        group=found.group,
        siblings=siblings,
        credit=credit,
        tried=getattr(found, "intervention", None),
        item=item,
        turns=shown.turn_views(found, credit),
        reward=shown.reward_view(found),
        headline=shown.headline(found, siblings, credit),
        credit_note=shown.credit_note(credit),
        within=within(principal_of(request), request.GET, "trajectories", found, "runs:trajectory"),
        holds=sum(bool(v["holds"]) for v in found.invariants),
        **_clip(found),
        **_neighbours(siblings, found),
    )


@require_safe
def tokens(request: HttpRequest, uid: UUID) -> JsonResponse:
    """Token data; ``?step=`` chooses the optimizer step. Unreadable bytes are named, with status 200."""
    found = get_visible(principal_of(request), Trajectory.objects.select_related("group"), uid=uid)
    raw = request.GET.get("step", "")
    if raw and not raw.isdecimal():
        raise Http404(f"step: got {raw!r}, expected a whole number")
    siblings = list(Trajectory.objects.filter(group=found.group).order_by("slot"))
    try:
        return JsonResponse(payload(found, siblings, int(raw) if raw else None))
    except (BlobError, ContractError) as error:
        return JsonResponse({"unavailable": told(error)})
