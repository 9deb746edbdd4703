"""Names in terms to keys of rows, among what the reader may see: ``arm:e3`` becomes a list that an index serves."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext as _

from runs.access import Principal, sees_everything, visible, visible_studies
from runs.models import Arm, Checkpoint, PlanVersion, Run, Task, TaskSetEntry
from runs.presenters.catalogue.bound import bound_versions, visible_task_sets
from runs.query.values import Unreadable, hash_prefix, text_range, uid_prefix
from runs.visibility import visible_checkpoints

MOST_NAMED = 40  # names offered in a message
AS_LIST = 5_000  # keys handed over as a list; more stay a subquery


@dataclass(frozen=True)
class Asker:
    """Who asks, and what time it is: a query never reads a clock of its own."""

    principal: Principal
    now: datetime


class Unknown(Unreadable):
    """A name that nothing visible has. ``possible``: names that exist, ``near`` the one that was probably meant."""

    def __init__(self, expected: str, value: str, possible: Iterable[str]) -> None:
        super().__init__(expected)
        names = list(dict.fromkeys(possible))
        self.near = nearest(value, names)
        self.possible = tuple(sorted(names)[:MOST_NAMED])


def nearest(value: str, names: Iterable[str]) -> str:
    """The name that a mistyped one was probably meant to be; empty where none is near."""
    folded = {name.lower(): name for name in names}
    found = difflib.get_close_matches(value.lower(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else ""


def keys(rows: QuerySet[Any], column: str = "pk") -> Any:
    """Values of a column as a list, or as a subquery where they are many."""
    values = rows.order_by().values_list(column, flat=True)
    found = list(values[: AS_LIST + 1])
    return found if len(found) <= AS_LIST else values


def contains(model: type[Model], field: str, word: str) -> Q:
    """Rows whose text holds a word. Another table's rows are found first: they are few, and their keys indexed."""
    path, _dots, column = field.rpartition("__")
    if not path:
        return Q(**{f"{field}__icontains": word})
    for name in path.split("__"):
        model = model._meta.get_field(name).related_model  # type: ignore[assignment]
    return Q(**{f"{path}__in": keys(model._default_manager.filter(**{f"{column}__icontains": word}))})


def arms(asker: Asker, value: str) -> Any:
    """Keys of visible arms of that name."""
    rows = visible(asker.principal, Arm.objects.all())
    found = keys(rows.filter(key__iexact=value))
    if isinstance(found, list) and not found:
        raise Unknown(_("the key of an arm"), value, rows.order_by().values_list("key", flat=True).distinct())
    return found


def versions_of_study(asker: Asker, value: str) -> Any:
    """Keys of the plan versions of a visible study."""
    study = visible_studies(asker.principal).filter(slug__iexact=value).first()
    if study is None:
        names = visible_studies(asker.principal).values_list("slug", flat=True)
        raise Unknown(_("the name of a study"), value, names)
    return keys(PlanVersion.objects.filter(plan__study=study))


def versions_of_plan(asker: Asker, value: str) -> Any:
    """Keys of the versions of visible plans called so; ``study/plan`` names one."""
    study, _slash, slug = value.rpartition("/")
    rows = visible(asker.principal, PlanVersion.objects.all())
    where = Q(plan__slug__iexact=slug)
    if study:
        where &= Q(plan__study__slug__iexact=study)
    found = keys(rows.filter(where))
    if isinstance(found, list) and not found:
        names = rows.order_by().values_list("plan__slug", flat=True).distinct()
        raise Unknown(_("the name of a frozen plan, as in small or study/small"), value, names)
    return found


def runs(asker: Asker, value: str) -> Any:
    """Keys of visible runs by name, or by the beginning of a uid."""
    rows = visible(asker.principal, Run.objects.all())
    where = Q(name__iexact=value)
    if text_range(value) and len(value.replace("-", "")) <= 32:
        where |= uid_prefix("uid", value)
    found = keys(rows.filter(where))
    if isinstance(found, list) and not found:
        raise Unknown(_("the name of a run or the beginning of its uid"), value, ())
    return found


def tasks(asker: Asker, value: str) -> Any:
    """Keys of visible tasks by key, a prefix with ``*``, or the beginning of a hash."""
    where = Q(key__istartswith=value[:-1]) if value.endswith("*") else Q(key__iexact=value)
    if text_range(value) and "-" not in value:
        where |= hash_prefix("task_sha256", value)
    rows = visible_tasks(asker.principal)
    found = keys(rows.filter(where))
    if isinstance(found, list) and not found:
        near = rows.order_by().values_list("key", flat=True)[:2_000]
        raise Unknown(_("the key of a task; a prefix ends with *"), value, near)
    return found


def checkpoints(asker: Asker, value: str) -> Any:
    """Keys of visible checkpoints by the beginning of the hash."""
    return keys(visible_checkpoints(asker.principal, Checkpoint.objects.filter(hash_prefix("sha256", value))))


def visible_tasks(principal: Principal) -> QuerySet[Task]:
    """Tasks of the sets that a visible plan has bound."""
    if sees_everything(principal):
        return Task.objects.all()
    sets: list[int] = principal.once(
        "task_sets", lambda: [row.pk for row in visible_task_sets(principal, bound_versions(principal))]
    )
    return Task.objects.filter(pk__in=TaskSetEntry.objects.filter(task_set__in=sets).values("task"))
