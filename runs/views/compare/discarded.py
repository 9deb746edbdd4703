"""Discarded and cancelled work, of one run or of a whole plan."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.models import Job, Plan, Run
from runs.presenters.compare import discarded as shown
from runs.presenters.frame import Crumb
from runs.views.base import render_page, run_crumbs
from runs.views.plans import chosen_version, plan_crumbs

RELATIONS = ("head", "arm", "plan_version__plan__study")


@require_safe
def of_run(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One run."""
    rows = Run.objects.select_related(*RELATIONS)
    found = get_visible(principal_of(request), rows, uid=uid)
    account = shown.training_accounts([found])[found.pk]
    jobs = Job.objects.filter(run=found)
    version = found.plan_version
    return render_page(
        request,
        "compare/discarded.html",
        section="runs",
        title=_("Discarded and cancelled"),
        crumbs=[*run_crumbs(found), Crumb(_("Discarded and cancelled"))],
        study=version.plan.study if version else None,
        scope=found.name,
        account=account,
        evaluation=shown.evaluation_account(version, [found], False) if version else None,
        selection=shown.selection([found]),
        jobs=shown.job_lines(jobs),
        job_states=shown.JOB_STATES,
        lists=shown.case_lists([found], jobs, None),
        headline=shown.headline(account),
        limit=shown.LISTED,
    )


@require_safe
def of_plan(request: HttpRequest, study: str, plan: str) -> HttpResponse:
    """Every run of a plan's version, and the jobs of its execution."""
    plans = Plan.objects.select_related("study", "current_version__created_by")
    found = get_visible(principal_of(request), plans, study__slug=study, slug=plan)
    version = chosen_version(request, found)
    if version is None:
        raise Http404("plan: it is a draft, so nothing was requested")
    runs = list(
        Run.objects.filter(plan_version=version).select_related(*RELATIONS).order_by("arm__position", "seed", "pk")
    )
    accounts = shown.training_accounts(runs)
    account = shown.total(accounts.values())
    jobs = Job.objects.filter(Q(execution__plan_version=version) | Q(run__in=runs))
    return render_page(
        request,
        "compare/discarded.html",
        section="discarded",
        title=_("Discarded and cancelled"),
        crumbs=[*plan_crumbs(found), Crumb(_("Discarded and cancelled"))],
        study=found.study,
        scope=found.slug,
        account=account,
        evaluation=shown.evaluation_account(version, runs, True),
        selection=shown.selection(runs),
        jobs=shown.job_lines(jobs),
        job_states=shown.JOB_STATES,
        lists=shown.case_lists(runs, jobs, version),
        by_run=[(run, accounts[run.pk]) for run in runs],
        headline=shown.headline(account),
        limit=shown.LISTED,
    )
