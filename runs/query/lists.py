"""The lists that queries narrow: their rows, the columns that they can be sorted by, what free text looks at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from runs.access import Principal, sees_everything, version_ids, visible_jobs
from runs.models import Checkpoint, EvaluationItem, Group, Job, PlanVersion, Receipt, Run, Task, Trajectory
from runs.models.plan import heavy
from runs.presenters.groups import with_slots
from runs.query.resolve import visible_tasks
from runs.visibility import visible_checkpoints, visible_receipts


@dataclass(frozen=True)
class ListSpec:
    """One list. ``sorts``: name -> column. ``text``: columns of free words, ``hashes`` of prefixes.

    ``visible`` gives rows without related ones, for counting; ``load`` adds what the table shows. ``url``: name of
    its page; ``time`` the column of the histogram.
    """

    name: str
    word: Any
    model: type[Model]
    url: str
    template: str
    visible: Callable[[Principal], QuerySet[Any]]
    load: Callable[[QuerySet[Any]], QuerySet[Any]]
    sorts: Mapping[str, str]
    text: tuple[str, ...]
    hashes: tuple[str, ...]
    time: str
    time_key: str = "created"
    quick: tuple[str, ...] = ()
    default: str = "-created"


def of_versions(path: str, model: type[Any]) -> Callable[[Principal], QuerySet[Any]]:
    """Rows of visible plan versions, by their keys: one join less than by study, and an index serves it."""

    def rows(principal: Principal) -> QuerySet[Any]:
        found = model.objects.all()
        if sees_everything(principal):
            return found.filter(plan_version__isnull=False) if model is Run else found
        versions = version_ids(principal)
        # Where all are visible no join stands between a sort and its index. A run may have no version: it stays hidden.
        if model is not Run and len(versions) == principal.once("versions", PlanVersion.objects.count):
            return found
        return found.filter(**{f"{path}__in": versions})

    return rows


_MANY = {"created": "pk"}
LISTS: Mapping[str, ListSpec] = {
    spec.name: spec
    for spec in (
        ListSpec(
            "runs",
            _("Runs"),
            Run,
            "runs:runs",
            "runs/parts/runs_table.html",
            of_versions("plan_version", Run),
            lambda rows: rows.select_related("head__checkpoint", "arm", "plan_version__plan__study").defer(
                *heavy("plan_version__"), "arm__config_bytes"
            ),
            {
                **_MANY,
                "updated": "head__updated_at",
                "name": "name",
                "trajectories": "head__trajectories",
                "tokens": "head__generated_tokens",
                "steps": "head__steps",
                "batches": "head__batch",
            },
            ("name",),
            ("uid",),
            "head__updated_at",
            "updated",
            ("is:running", "is:pending", "is:completed", "is:troubled", "has:fatal"),
        ),
        ListSpec(
            "groups",
            _("Groups"),
            Group,
            "runs:groups",
            "runs/parts/groups_list.html",
            of_versions("plan_version", Group),
            lambda rows: (
                with_slots(rows)
                .select_related("task", "consumed__update", "run", "plan_version__plan")
                .defer(*heavy("plan_version__"))
            ),
            {**_MANY, "reward": "mean", "sigma": "sigma", "ordinal": "ordinal", "policy": "policy_version"},
            ("task__key", "run__name"),
            ("uid", "record_sha256"),
            "created_at",
            "created",
            ("is:train", "is:trains", "is:cut", "is:zero", "is:rejected", "has:fatal", "is:evaluate"),
        ),
        ListSpec(
            "trajectories",
            _("Trajectories"),
            Trajectory,
            "runs:trajectories",
            "runs/parts/trajectories_list.html",
            of_versions("group__plan_version", Trajectory),
            lambda rows: rows.select_related("group__task__task_set", "group__run", "group__plan_version__plan").defer(
                *heavy("group__plan_version__"), "group__task__hidden", "group__task__initial_state"
            ),
            {
                **_MANY,
                "reward": "reward_total",
                "advantage": "advantage",
                "tokens": "generated_tokens",
                "depth": "tool_depth",
            },
            ("group__task__key", "group__run__name"),
            ("uid",),
            "group__created_at",
            "created",
            ("is:train", "is:effective", "is:evaluate", "has:fatal", "has:masked", "has:error", "is:recovered"),
        ),
        ListSpec(
            "evaluations",
            _("Evaluations"),
            EvaluationItem,
            "runs:evaluations",
            "runs/parts/evaluations_list.html",
            of_versions("plan_version", EvaluationItem),
            lambda rows: rows.select_related("checkpoint", "run", "task", "trajectory", "plan_version__plan").defer(
                *heavy("plan_version__"), "task__hidden", "task__initial_state"
            ),
            {**_MANY, "reward": "trajectory__reward_total", "depth": "trajectory__tool_depth", "repeat": "repeat"},
            ("task__key", "run__name"),
            ("uid",),
            "trajectory__group__created_at",
            "created",
            (
                "condition:standard",
                "condition:stress",
                "stop:finish",
                "stop:policy_error",
                "stop:budget_exhausted",
                "is:parent",
                "has:fatal",
            ),
        ),
        ListSpec(
            "jobs",
            _("Jobs"),
            Job,
            "runs:jobs",
            "runs/parts/jobs_list.html",
            visible_jobs,
            lambda rows: rows.select_related("run__plan_version__plan").defer(*heavy("run__plan_version__")),
            {**_MANY, "finished": "finished_at", "attempt": "attempt"},
            ("key", "kind", "error"),
            ("uid",),
            "finished_at",
            "finished",
            ("is:queued", "is:running", "is:succeeded", "is:failed", "is:errored", "is:cancelled", "has:retry"),
        ),
        ListSpec(
            "receipts",
            _("Receipts"),
            Receipt,
            "runs:receipts",
            "runs/parts/receipts_list.html",
            visible_receipts,
            lambda rows: rows.select_related("actor").defer("bytes"),
            {**_MANY},
            ("kind",),
            ("sha256", "subject_uid"),
            "at",
            "created",
            ("kind:run.*", "kind:update.*", "kind:plan.*"),
        ),
        ListSpec(
            "tasks",
            _("Tasks"),
            Task,
            "runs:tasks",
            "runs/parts/tasks_list.html",
            visible_tasks,
            lambda rows: rows.select_related("task_set").defer("hidden", "initial_state"),
            {**_MANY, "name": "key", "family": "family"},
            ("key", "prompt"),
            ("uid", "task_sha256"),
            "",
            "",
            ("split:train", "split:test"),
        ),
        ListSpec(
            "checkpoints",
            _("Checkpoints"),
            Checkpoint,
            "runs:checkpoints",
            "runs/parts/checkpoints_list.html",
            visible_checkpoints,
            lambda rows: rows.select_related("run__plan_version__plan__study", "parent").defer(
                *heavy("run__plan_version__")
            ),
            {**_MANY, "policy": "policy_version", "bytes": "blob_bytes"},
            ("run__name",),
            ("uid", "sha256"),
            "created_at",
            "created",
            ("is:parent", "is:update", "is:held", "is:removed"),
        ),
    )
}
