"""Task sets and tasks belong to no study: what frozen plans have bound decides who sees them, on every way in."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from django.db.models import Q, QuerySet

from runs.access import PLAN_WRITE, REVIEW_WRITE, Principal, can, sees_everything, study_ids, visible
from runs.actions.plans import plan_body
from runs.models import ControlSet, PlanVersion, Study, Task, TaskSet


def visible_versions(principal: Principal) -> QuerySet[PlanVersion]:
    """Every frozen version of a visible study, newest last, without its bytes."""
    rows = PlanVersion.objects.select_related("plan__study").defer("bytes", "strict_pairs")
    return visible(principal, rows).order_by("pk")


@functools.lru_cache(maxsize=4096)
def bound_task_set(sha256: str) -> str:
    """Hash of the task set that the frozen body with this hash binds, "" where it binds none.

    Equal for ever, so that each body is parsed once a process.
    """
    version = PlanVersion.objects.filter(sha256=sha256).order_by("pk")[:1].get()
    found: str = (plan_body(version)["bindings"].get("task_set") or {}).get("sha256", "")
    return found


def bound_task_sets(principal: Principal) -> set[str]:
    """Hashes of the task sets that visible frozen plans bind."""
    return {bound_task_set(version.sha256) for version in visible_versions(principal)}


def visible_task_sets(principal: Principal, bound: Iterable[str] | None = None) -> QuerySet[TaskSet]:
    """Task sets that a visible frozen plan binds; a signed-in site admin sees those without a plan too.

    ``bound``: the hashes that visible plans bind, where the caller has them already.
    """
    if sees_everything(principal):
        return TaskSet.objects.all()
    return TaskSet.objects.filter(sha256__in=set(bound_task_sets(principal) if bound is None else bound))


def visible_controls(principal: Principal) -> QuerySet[ControlSet]:
    """Controls of visible task sets, and those that were asked for in a visible study."""
    rows = ControlSet.objects.select_related("task_set")
    if sees_everything(principal):
        return rows
    return rows.filter(Q(task_set__in=visible_task_sets(principal)) | Q(study__in=study_ids(principal)))


def may_see_hidden(principal: Principal, task: Task) -> bool:
    """Whether a task's hidden reference is shown: to whoever may write plans or reviews in a study that uses it.

    These are researchers, reviewers and admins; a token needs a scope that lets one of the two through.
    """
    if sees_everything(principal):
        return True
    sets = set(TaskSet.objects.filter(entries__task=task).values_list("sha256", flat=True))
    studies: set[Study] = {
        version.plan.study for version in visible_versions(principal) if bound_task_set(version.sha256) in sets
    }
    return any(can(principal, right, study) for study in studies for right in (PLAN_WRITE, REVIEW_WRITE))
