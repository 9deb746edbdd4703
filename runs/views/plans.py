"""Studies and plans."""

from __future__ import annotations

from typing import Any

from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import PLAN_WRITE, Principal, can, get_visible, principal_of, studies_with, visible, visible_studies
from runs.actions.plans import plan_body
from runs.models import Plan, PlanVersion, Receipt, Run, Study
from runs.models.plan import heavy
from runs.presenters import plans as shown
from runs.presenters.frame import Crumb, evidence_of
from runs.presenters.now import study_cards
from runs.presenters.trials.links import has_trials, tried_plans
from runs.views.base import paginate, render_page


def load_plan(request: HttpRequest, study: str, plan: str) -> Plan:
    """The plan of a visible study, with its current version."""
    rows = Plan.objects.select_related("study", "current_version__created_by")
    return get_visible(principal_of(request), rows, study__slug=study, slug=plan)


def chosen_version(request: HttpRequest, plan: Plan) -> PlanVersion | None:
    """The version that ``?version=`` names by hash, else the current one; None for a draft."""
    wanted = request.GET.get("version", "")
    if wanted:
        return get_object_or_404(PlanVersion.objects.select_related("created_by"), plan=plan, sha256=wanted)
    return plan.current_version


def plan_crumbs(plan: Plan) -> list[Crumb]:
    """Breadcrumb down to a plan."""
    return [
        Crumb(plan.study.slug, reverse("runs:study", args=[plan.study.slug])),
        Crumb(_("Plans"), reverse("runs:plans")),
        Crumb(plan.slug, reverse("runs:plan", args=[plan.study.slug, plan.slug])),
    ]


@require_safe
def study(request: HttpRequest, study: str) -> HttpResponse:
    """One study: its plans and its runs."""
    principal = principal_of(request)
    found = get_object_or_404(visible_studies(principal), slug=study)
    (card,) = study_cards(principal, found)
    plans = list(
        Plan.objects.filter(study=found)
        .select_related("study", "current_version__execution")
        .defer("draft_text", "current_version__bytes", "current_version__strict_pairs")
        .annotate(arm_count=Count("current_version__arms"))
        .order_by("slug")
    )
    runs = (
        Run.objects.filter(plan_version__plan__study=found)
        .select_related("head__checkpoint", "arm", "plan_version__plan__study")
        .defer(*heavy("plan_version__"), "arm__config_bytes")
        .order_by("plan_version_id", "arm__position", "seed")
    )
    return render_page(
        request,
        "runs/study.html",
        section="study",
        title=found.slug,
        crumbs=[Crumb(_("Studies"), reverse("runs:now")), Crumb(found.slug)],
        study=found,
        own=found,
        may_write=can(principal, PLAN_WRITE, found),
        card=card,
        evidence=evidence_of(found),
        tried=tried_plans(found),
        plans=plans,
        listing=paginate(request, runs),
    )


@require_safe
def plans(request: HttpRequest) -> HttpResponse:
    """All plans, and where the reader may begin one."""
    principal = principal_of(request)
    rows = (
        visible(principal, Plan.objects.all())
        .select_related("study", "current_version__execution")
        .defer("draft_text", "current_version__bytes", "current_version__strict_pairs")
        .annotate(arm_count=Count("current_version__arms"))
        .order_by("study__slug", "slug")
    )
    return render_page(
        request,
        "runs/plans.html",
        section="plans",
        title=_("Plans"),
        crumbs=[Crumb(_("Plans"))],
        listing=paginate(request, rows),
        writable=writable_studies(principal),
    )


def writable_studies(principal: Principal, most: int = 12) -> list[Study]:
    """The first studies in which the reader may write plans."""
    return studies_with(principal, PLAN_WRITE, most)


@require_safe
def plan(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """One plan: what was bound before any result, field by field."""
    found = load_plan(request, study, plan)
    version = chosen_version(request, found)
    draft = shown.read_draft(found) if version is None else None
    context: dict[str, Any] = {
        "plan": found,
        "version": version,
        "draft": draft,
        "headline": shown.headline(found, version, draft),
        "may_write": can(principal_of(request), PLAN_WRITE, found.study),
    }
    document = draft.document if draft else None
    if version is not None:
        body = plan_body(version)
        document = body["plan"]
        arms = {arm.key: arm for arm in version.arms.order_by("position")}
        context |= {
            "body": body,
            "contracts": shown.contracts(version),
            "bindings": body["bindings"],
            "arms": [(item, arms.get(item["key"])) for item in body["arms"]],
            "runs": shown.runs_by_arm(version),
            "versions": list(found.versions.order_by("-number")),
            "execution": getattr(version, "execution", None),
            "receipts": list(
                Receipt.objects.filter(stream=f"plan:{found.uid}").select_related("actor").order_by("seq")
            ),
            "size": len(bytes(version.bytes)),
            "tried": has_trials(version),
            "splits": {k: len(v) for k, v in body["bindings"]["task_set"]["splits"].items()},
        }
    context |= {"document": document, "sections": shown.settings_of(document) if document else {}}
    return render_page(
        request,
        "runs/plan.html",
        section="plans",
        title=found.slug,
        crumbs=plan_crumbs(found),
        study=found.study,
        transitions=list(found.transitions.select_related("actor", "version").order_by("at", "pk")),
        **context,
    )


@require_safe
def plan_bytes(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """The exact canonical bytes that the plan's hash covers."""
    version = chosen_version(request, load_plan(request, study, plan))
    if version is None:
        raise Http404("plan: it is a draft, which has no canonical bytes")
    response = HttpResponse(bytes(version.bytes), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{plan}-{version.sha256}.json"'
    response["X-Data-SHA256"] = version.sha256
    return response
