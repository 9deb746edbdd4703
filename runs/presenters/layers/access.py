"""The run behind a layer page: executed here, or logged from elsewhere."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404

from runs.access import Principal, visible
from runs.models import Run, Study, TrackedRun

NATIVE_RELATIONS = ("head__checkpoint", "arm", "plan_version__plan__study", "parent_checkpoint", "execution")


def metric_run(principal: Principal, uid: UUID | str) -> Run:
    """The visible run of any origin. Raises ``Http404`` alike where it is absent and where it is hidden."""
    native = visible(principal, Run.objects.filter(origin=Run.NATIVE)).select_related(*NATIVE_RELATIONS)
    found = native.filter(uid=uid).first()
    if found is None:
        tracked = visible(principal, TrackedRun.objects.filter(deleted=False), "study")
        head = tracked.select_related("run", "study", "linked_plan__plan").filter(run__uid=uid).first()
        if head is None:
            raise Http404("no run that you can see matches")
        found = head.run
        found.tracked = head
    return found


def metric_study(run: Run) -> Study:
    """The study that a run of any origin belongs to."""
    if run.plan_version is not None:
        study: Study = run.plan_version.plan.study
        return study
    return run.tracked.study


def started_ms(run: Run) -> int:
    """Milliseconds since 1970 at which the run's wall clock starts."""
    start = run.created_at if run.origin == Run.NATIVE else run.tracked.started_at
    return round(start.timestamp() * 1000)


def is_live(run: Run) -> bool:
    """Whether more points may come."""
    if run.origin == Run.NATIVE:
        return run.head.state in ("running", "pending", "paused", "interrupted")
    return run.tracked.status in (TrackedRun.RUNNING, TrackedRun.SCHEDULED)
