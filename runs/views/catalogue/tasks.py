"""Catalogue: task sets and tasks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of
from runs.models import Task, TaskSet
from runs.presenters.catalogue import bound as binding
from runs.presenters.catalogue import tasksets as shown
from runs.presenters.frame import Crumb
from runs.tasksets import may_see_hidden, visible_task_sets
from runs.views.base import paginate, render_page


@require_safe
def task_sets(request: HttpRequest) -> HttpResponse:
    """Task sets that a visible plan has bound."""
    principal = principal_of(request)
    bound = binding.bound_versions(principal)
    listing = paginate(request, binding.visible_task_sets(principal, bound))
    rows = [(row, *_splits(row), binding.users_of(bound, row.sha256)) for row in listing]
    return render_page(
        request, "catalogue/task_sets.html", section="task_sets", title=_("Task sets"), crumbs=[Crumb(_("Task sets"))],
        listing=listing, rows=rows,
    )  # fmt: skip


def _splits(row: TaskSet) -> tuple[list[tuple[str, int]], int]:
    splits, table, sums = shown.counts(row)
    return list(zip(splits, sums, strict=True)), len(table)


def _visible_set(request: HttpRequest, sha256: str) -> tuple[TaskSet, list[binding.Bound]]:
    principal = principal_of(request)
    bound = binding.bound_versions(principal)
    users = binding.users_of(bound, sha256)
    found = visible_task_sets(principal, (item.facts.task_set for item in bound)).filter(sha256=sha256).first()
    if found is None:
        raise Http404("no task set that you can see matches")
    return found, users


@require_safe
def task_set(request: HttpRequest, sha256: str) -> HttpResponse:
    """One set: its counts, identities, overlap between splits, and its tasks."""
    found, users = _visible_set(request, sha256)
    splits, table, sums = shown.counts(found)
    tasks = found.all_tasks()
    chosen = {name: request.GET.get(name, "") for name in ("split", "family")}
    for name, value in chosen.items():
        if value:
            tasks = tasks.filter(**{name: value})
    overlaps = shown.overlaps(found)
    return render_page(
        request, "catalogue/task_set.html", section="task_sets", title=_("Task set"),
        crumbs=[Crumb(_("Task sets"), reverse("runs:task_sets")), Crumb(found.sha256[:12])],
        own=found, users=users, splits=splits, table=table, sums=sums, chosen=chosen,
        overlaps=overlaps, clean=not any(item.shared for item in overlaps), listing=paginate(request, tasks),
    )  # fmt: skip


@require_safe
def task(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One task: what the policy is given, what it is judged by for those who may know, and what came of it."""
    principal = principal_of(request)
    found = Task.objects.filter(uid=uid).first()
    bound = binding.bound_versions(principal)
    seen = visible_task_sets(principal, (item.facts.task_set for item in bound))
    sets = list(seen.filter(entries__task=found).order_by("pk")) if found is not None else []
    users = [item for item in bound if item.facts.task_set in {row.sha256 for row in sets}]
    if found is None or not sets:
        raise Http404("no task that you can see matches")
    outcomes: list[Any] = shown.outcomes(principal, found)
    groups, count = shown.training_groups(principal, found)
    return render_page(
        request, "catalogue/task.html", section="task_sets", title=found.key,
        crumbs=[
            Crumb(_("Task sets"), reverse("runs:task_sets")),
            *(Crumb(row.sha256[:12], reverse("runs:task_set", args=[row.sha256])) for row in sets[:1]),
            Crumb(found.key),
        ],
        own=found, sets=sets, users=users, hidden_allowed=may_see_hidden(principal, found),
        listing=paginate(request, outcomes), success=sum(o.success for o in outcomes),
        valid=sum(o.valid for o in outcomes), groups=groups, group_count=count,
    )  # fmt: skip
