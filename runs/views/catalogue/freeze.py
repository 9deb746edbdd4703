"""Freeze page: what would be bound, then the freeze, the start, and superseding. One action each."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from runs.access import PLAN_FREEZE, RUN_CONTROL, Principal, can
from runs.actions.drafts import check_draft
from runs.actions.execution import start_execution
from runs.actions.inspection import (
    OPEN,
    freeze_inspected,
    freeze_preview,
    inspected_bindings,
    inspection_of,
    request_inspection,
)
from runs.actions.plans import plan_body, supersede_plan
from runs.actions.provenance import provenance
from runs.errors import AlreadyFrozen, DomainError, StaleTransition
from runs.models import Execution, Job, Plan
from runs.presenters.catalogue.freezing import bytes_of, pair_views, summary
from runs.presenters.catalogue.problems import translated
from runs.presenters.executions import part_left, stage_word
from runs.presenters.states import state_view
from runs.presenters.told import told
from runs.views.base import refused, render_page
from runs.views.catalogue.base import crumbs_of, guarded, open_plan
from workbench.contracts.errors import ContractError, PlanInvalid, Problem


def _counts(done: Any, total: Any) -> bool:
    return isinstance(done, int) and isinstance(total, int) and total > 0 and done >= 0


def _inspection(job: Job | None) -> dict[str, Any]:
    """How the inspection stands: its job, whether it goes on, and its progress in words."""
    progress = (job.progress or {}) if job is not None else {}
    done, total = progress.get("done") or 0, progress.get("total") or 0
    share = round(100 * min(done, total) / total, 1) if _counts(done, total) else None
    stage = progress.get("stage")
    return {
        "job": job,
        "running": job is not None and job.state in OPEN,
        "word": state_view("job", job.state).word if job is not None else "",
        "stage": stage_word(str(stage)[:60]) if stage else "",
        "part": str(progress.get("part") or "")[:60].replace("_", " "),
        "left": part_left(progress),
        "share": share,
        "done": done if share is not None else None,
        "total": total if share is not None else None,
    }


def _draft(plan: Plan) -> dict[str, Any]:
    """What the page of a draft shows, as far as it has come."""
    checked = check_draft(plan.study.slug, plan.slug, plan.draft_text)
    job = inspection_of(plan)
    problems: list[Problem] = list(checked.problems)
    shown: dict[str, Any] = {}
    fault = ""
    if not problems and job is not None and job.state == "succeeded":
        try:
            shown = summary(freeze_preview(plan, inspected_bindings(job)))
        except PlanInvalid as error:
            problems = error.problems
        except (DomainError, ContractError, OSError) as error:  # the answer does not fit, or its blob is gone
            fault = told(error)
    pairs = shown.get("pairs") or (pair_views(checked.complete) if checked.complete else [])
    return {**shown, "problems": translated(problems), "fault": fault, "pairs": pairs, "inspection": _inspection(job)}


def _state(request: HttpRequest, principal: Principal, plan: Plan) -> dict[str, Any]:
    version = plan.current_version
    context: dict[str, Any] = {
        "plan": plan,
        "version": version,
        "may_freeze": can(principal, PLAN_FREEZE, plan.study),
        "may_start": can(principal, RUN_CONTROL, plan.study),
        "execution": None,
        "reason": request.GET.get("reason", "")[:300],
    }
    if version is None:
        return context | _draft(plan)
    context["execution"] = Execution.objects.filter(plan_version=version).first()
    return context | summary(plan_body(version))


def _step(context: dict[str, Any]) -> int:
    """Which of the four steps comes next; 5 when all are done."""
    if context["version"] is not None:
        return 5 if context["execution"] is not None else 4
    if context["problems"] and not context.get("body"):
        return 1
    return 3 if context.get("body") else 2


@require_safe
@guarded
def freeze(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """The page."""
    principal, found = open_plan(request, study, plan)
    context = _state(request, principal, found)
    return render_page(
        request, "catalogue/freeze.html", section="plans", title=_("Freeze %(plan)s") % {"plan": found.slug},
        crumbs=crumbs_of(found, _("Freeze")), study=found.study, step=_step(context), **context,
    )  # fmt: skip


@require_safe
@guarded
def freeze_live(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """The part that moves while a worker loads the model; when it has ended, the whole page is asked for again."""
    _principal, found = open_plan(request, study, plan)
    inspection = _inspection(inspection_of(found))
    if found.state != "draft" or not inspection["running"]:
        response = HttpResponse()
        response["HX-Refresh"] = "true"
        return response
    return render(request, "catalogue/parts/inspection.html", {"plan": found, "inspection": inspection})


def _back(plan: Plan) -> HttpResponse:
    return redirect("runs:plan_freeze", plan.study.slug, plan.slug)


@require_POST
@login_required
@guarded
def inspect(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """Ask a worker what a freeze would bind; one that is under way is not asked for twice."""
    principal, found = open_plan(request, study, plan, PLAN_FREEZE)
    try:
        request_inspection(found, by=principal.actor(), at=timezone.now())
    except (DomainError, PlanInvalid) as error:
        refused(request, error)
    return _back(found)


@require_POST
@login_required
@guarded
def do_freeze(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """Freeze exactly the bytes whose hash the page showed."""
    principal, found = open_plan(request, study, plan, PLAN_FREEZE)
    try:
        if found.state != "draft":
            raise AlreadyFrozen(_("someone froze this plan first; what is bound stands below"))
        job, seen = inspection_of(found), request.POST.get("sha256", "")
        if job is None:
            raise StaleTransition(_("the draft was saved again since you looked; ask what the new one binds"))
        now = bytes_of(freeze_preview(found, inspected_bindings(job))).sha256
        if now != seen:
            raise StaleTransition(
                _("you saw the bytes %(seen)s, now they would be %(now)s; look again")
                % {"seen": seen[:12] or "—", "now": now[:12]}
            )
        version = freeze_inspected(found, by=principal.actor(), at=timezone.now())
    except (DomainError, ContractError) as error:
        refused(request, error)
    else:
        messages.success(request, _("Frozen as %(sha)s. A receipt was written.") % {"sha": version.sha256[:12]})
    return _back(found)


@require_POST
@login_required
@guarded
def start(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """Start the frozen plan's execution; one that exists is not started twice."""
    principal, found = open_plan(request, study, plan, RUN_CONTROL)
    try:
        if found.current_version is None or found.state != "frozen":
            word = state_view("plan", found.state).word
            raise StaleTransition(_("the plan is %(state)s, and only a frozen one can start") % {"state": word})
        start_execution(found.current_version, by=principal.actor(), at=timezone.now(), provenance=provenance())
    except DomainError as error:
        refused(request, error)
        return _back(found)
    messages.success(request, _("Started. Workers take its jobs as they are free."))
    return redirect("runs:results", found.study.slug, found.slug)


@require_POST
@login_required
@guarded
def supersede(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """Mark the frozen plan as superseded, with a reason; bytes and results stay readable."""
    principal, found = open_plan(request, study, plan, PLAN_FREEZE)
    reason = " ".join(request.POST.get("reason", "").split())
    try:
        if not 3 <= len(reason) <= 500:
            raise DomainError(_("reason: got %(n)d characters, expected 3 to 500") % {"n": len(reason)})
        supersede_plan(found, reason=reason, by=principal.actor(), at=timezone.now())
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("Superseded. Its bytes and results stay readable."))
    return _back(found)
