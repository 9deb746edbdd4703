"""The layer page of a run, what stands behind a point, and verdicts on readings."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from runs.access import REVIEW_WRITE, RUN_CONTROL, can, get_visible, principal_of, visible
from runs.actions.readings import judge_reading
from runs.errors import DomainError
from runs.metrics.read import series_of
from runs.models import Group, Run, Trajectory, UpdateBatch
from runs.presenters.frame import Crumb
from runs.presenters.layers.access import is_live, metric_run, metric_study
from runs.presenters.layers.cards import LAYERS, TRAIN
from runs.presenters.layers.page import build_sections, headline, phases_of
from runs.presenters.layers.titles import word_of
from runs.presenters.layers.update import contributions_of
from runs.presenters.trials.links import credits_edits
from runs.views.base import refused, render_page, run_crumbs
from runs.visibility import visible_checkpoints

AXES = (
    ("step", _("step")),
    ("trajectories", _("trajectories")),
    ("tokens", _("generated tokens")),
    ("wall", _("seconds since start")),
)


def layer_crumbs(run: Run) -> list[Crumb]:
    """Breadcrumb down to the run, wherever it was executed."""
    if run.origin == Run.NATIVE:
        return run_crumbs(run)
    study = metric_study(run)
    return [Crumb(study.slug, reverse("runs:study", args=[study.slug])), Crumb(run.tracked.name)]


@require_safe
def layers(request: HttpRequest, uid: UUID) -> HttpResponse:
    """All six layers of one run."""
    run = metric_run(principal_of(request), uid)
    native = run.origin == Run.NATIVE
    phases = phases_of(series_of(run)) if native else []
    phase = request.GET.get("phase", TRAIN)
    if phase != TRAIN and phase not in phases:
        raise Http404(f"phase: got {phase[:40]!r}, expected one of {', '.join(phases) or TRAIN}")
    sections = build_sections(run, phase)
    study = metric_study(run)
    context: dict[str, Any] = {
        "run": run,
        "name": run.name if native else run.tracked.name,
        "native": native,
        "sections": sections,
        "unlogged": [key for key in LAYERS if key not in {section.key for section in sections}],
        "headline": headline(sections),
        "live": is_live(run),
        "axes": (("step", _("batch")), *AXES[1:]) if native else AXES,
        "phase": phase,
        "phases": [(key, word_of(key)) for key in phases],
        "may_judge": _may_judge(request, run),
    }
    crumbs = [*layer_crumbs(run), Crumb(_("Layers"))]
    title = _("Layers of %(name)s") % {"name": context["name"]}
    return render_page(
        request, "layers/run.html", section="metrics", title=title, crumbs=crumbs, study=study, **context
    )


def _may_judge(request: HttpRequest, run: Run) -> bool:
    principal, study = principal_of(request), metric_study(run)
    return can(principal, REVIEW_WRITE, study) or can(principal, RUN_CONTROL, study)


@require_POST
@login_required
def judge(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Confirm or dismiss a reading with a reason; researchers and reviewers of the study may."""
    principal = principal_of(request)
    run = metric_run(principal, uid)
    if not _may_judge(request, run):
        raise PermissionDenied("reading: expected a researcher or reviewer of the study")
    form = request.POST
    try:
        judge_reading(
            run, form.get("rule", ""), form.get("fired_sha256", ""), form.get("verdict", ""), form.get("reason", ""),
            by=principal.actor(), at=timezone.now(),
        )  # fmt: skip
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("Your verdict was recorded."))
    anchor = form.get("rule", "")[:100]
    return HttpResponseRedirect(f"{reverse('runs:layers', args=[run.uid])}#reading-{anchor}")


@require_safe
def behind(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Where a point leads: the group, trajectory, update or checkpoint that its subject names."""
    principal = principal_of(request)
    behind_it: tuple[tuple[QuerySet[Any], str], ...] = (
        (visible(principal, Trajectory.objects.all()), "runs:trajectory"),
        (visible(principal, Group.objects.all()), "runs:group"),
        (visible(principal, UpdateBatch.objects.all()), "runs:update"),
        (visible_checkpoints(principal), "runs:checkpoint"),
    )
    for rows, name in behind_it:
        if rows.filter(uid=uid).exists():
            return HttpResponseRedirect(reverse(name, args=[uid]))
    raise Http404("no group, trajectory, update or checkpoint that you can see matches")


@require_safe
def update(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One update: what it trained, and its trajectories by gradient norm."""
    rows = UpdateBatch.objects.select_related(
        "run__plan_version__plan__study", "run__arm", "checkpoint_before", "checkpoint_after"
    ).prefetch_related("steps")
    found = get_visible(principal_of(request), rows, uid=uid)
    steps, contributions = contributions_of(found)
    title = _("Update %(batch)d of %(run)s") % {"batch": found.batch, "run": found.run.name}
    return render_page(
        request, "layers/update.html", section="runs", title=title, study=found.run.plan_version.plan.study,
        crumbs=[*run_crumbs(found.run), Crumb(_("Update %(batch)d") % {"batch": found.batch})],
        has_edit_credit=credits_edits(found.run),
        update=found, step_rows=list(found.steps.order_by("step")), steps=steps, contributions=contributions,
        first=contributions[0] if contributions else None,
        rows=[(item, list(zip(steps, item.norms, strict=True))) for item in contributions],
    )  # fmt: skip
