"""Lineage of a plan's checkpoints, and one checkpoint with what changed since another."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.models import Checkpoint, EvaluationItem, Plan, Run
from runs.presenters.checkpoints import tombstones_of
from runs.presenters.compare import lineage as shown
from runs.presenters.frame import Crumb
from runs.views.base import render_page
from runs.views.plans import chosen_version, plan_crumbs
from runs.visibility import visible_checkpoints

LISTED = 60


@require_safe
def of_plan(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """Every policy of a plan's version as one graph."""
    plans = Plan.objects.select_related("study", "current_version__created_by")
    found = get_visible(principal_of(request), plans, study__slug=study, slug=plan)
    version = chosen_version(request, found)
    if version is None:
        raise Http404("plan: it is a draft, so it has no checkpoint")
    runs = list(
        Run.objects.filter(plan_version=version)
        .select_related("head__checkpoint", "arm", "parent_checkpoint")
        .order_by("arm__position", "seed", "pk")
    )
    return render_page(
        request,
        "compare/lineage.html",
        section="lineage",
        title=_("Lineage"),
        crumbs=[*plan_crumbs(found), Crumb(_("Lineage"))],
        study=found.study,
        plan=found,
        version=version,
        drawing=shown.build_drawing(version, runs),
        runs=runs,
    )


def _load(request: HttpRequest, uid: UUID) -> Checkpoint:
    rows = visible_checkpoints(principal_of(request))
    chosen = rows.select_related("parent", "run__plan_version__plan__study", "run__parent_checkpoint", "run__arm")
    found = chosen.filter(uid=uid).first()
    if found is None:
        raise Http404("no checkpoint that you can see matches")
    return found


def _since(request: HttpRequest, own: Checkpoint) -> Checkpoint | None:
    """The checkpoint that ``?since=`` names, else the one that it came from."""
    text = request.GET.get("since", "")
    if not text:
        return own.parent
    try:
        return _load(request, UUID(text))
    except ValueError as error:
        raise Http404(f"since: got {text!r}, expected a uid") from error


@require_safe
def checkpoint(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One policy: where it came from, what its update did, and what changed since another policy."""
    own = _load(request, uid)
    since = _since(request, own)
    made = shown.way(own.parent, own) if own.parent is not None else None
    change = shown.change_between(since, own) if since is not None else None
    tombstone = tombstones_of([own.sha256]).get(own.sha256)
    line = list(Checkpoint.objects.filter(run=own.run).order_by("policy_version")) if own.run is not None else []
    at = next((i for i, row in enumerate(line) if row.pk == own.pk), 0)
    version = own.run.plan_version if own.run is not None else None
    cells = (
        EvaluationItem.objects.filter(checkpoint=own).order_by("condition", "split").values("condition", "split")
    ).annotate(n=Count("pk"))
    crumbs = [Crumb(_("Checkpoints"), reverse("runs:checkpoints"))]
    if own.run is not None:
        crumbs.append(Crumb(own.run.name, reverse("runs:run", args=[own.run.uid])))
    return render_page(
        request,
        "compare/checkpoint.html",
        section="checkpoints",
        title=f"v{own.policy_version}",
        crumbs=[*crumbs, Crumb(f"v{own.policy_version}")],
        study=version.plan.study if version is not None else None,
        own=own,
        since=since,
        change=change,
        tombstone=tombstone,
        headline=shown.headline(own, made, tombstone),
        line=line[:: max(1, len(line) // LISTED)] if len(line) > LISTED else line,
        previous=line[at - 1] if line and at else own.parent,
        next=line[at + 1] if at + 1 < len(line) else None,
        children=list(own.child_runs.select_related("head").filter(plan_version__isnull=False)[:LISTED])
        if own.run is None
        else [],
        cells=list(cells),
        version=version,
        listed=LISTED,
    )
