"""Progress of a run: done of total, rate, time left, and what happens right now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min
from django.utils.translation import gettext as _

from runs.actions.plans import plan_body
from runs.models import EvaluationItem, Group, Job, Run
from workbench.contracts import layout


@dataclass(frozen=True)
class Progress:
    """``rate`` in units per minute, ``left`` in seconds: None where too little has happened to say."""

    done: int
    total: int
    unit: str
    rate: float | None
    left: float | None
    doing: str
    steps: int
    max_steps: int

    @property
    def share(self) -> float:
        """0..100, for the bar."""
        return 100.0 * self.done / self.total if self.total else 0.0


def run_config(run: Run) -> dict[str, Any]:
    """The arm's resolved configuration from the frozen bytes; empty for a run without an arm."""
    if run.arm is None or run.plan_version is None:
        return {}
    config: dict[str, Any] = layout.arm_of(plan_body(run.plan_version), run.arm.key)["config"]
    return config


def describe_job(job: Job | None) -> str:
    """What a leased job does, in words."""
    if job is None:
        return ""
    progress = job.progress or {}
    word = {
        "collect_shard": _("collecting rollouts"),
        "apply_update": _("updating the policy"),
        "evaluate_shard": _("evaluating"),
        "probe_shard": _("probing the reasoning"),
        "run_trials": _("testing again without one edit"),
        "close_execution": _("closing the execution"),
    }.get(job.kind, job.kind)
    parts = [str(word)]
    done = progress.get("finished", progress.get("done"))
    if done is not None and progress.get("total") is not None:
        parts.append(_("%(done)s of %(total)s") % {"done": done, "total": progress["total"]})
    detail = progress.get("what") or (progress.get("stage") if progress.get("stage") != "rollout" else None)
    if detail:
        parts.append(str(detail))
    return _(", ").join(parts)


def _rate(first: datetime | None, last: datetime | None, count: int) -> float | None:
    if first is None or last is None or count < 2 or last <= first:
        return None
    return (count - 1) / ((last - first).total_seconds() / 60)


def held_by_execution(run: Run) -> bool:
    """Whether a running run stands still because its whole execution is paused. Needs ``head`` and ``execution``."""
    return run.head.state == "running" and run.execution is not None and run.execution.state == "paused"


def _doing(run: Run, job: Job | None) -> str:
    """What happens now; empty unless the run is running."""
    if run.head.state != "running":
        return ""
    if held_by_execution(run):
        if run.execution is not None and run.execution.reason != "paused":
            return _("paused with its plan: %(reason)s") % {"reason": run.execution.reason}
        return _("paused with its plan")
    return describe_job(job) or _("waiting for a worker")


_GROUPS_SEEN = {"n": Count("pk"), "first": Min("created_at"), "last": Max("created_at")}


def groups_seen(runs: Iterable[Run]) -> dict[int, dict[str, Any]]:
    """By run: how many training groups there are, and when the first and the last were made. One query."""
    found: dict[int, dict[str, Any]] = {run.pk: {"n": 0, "first": None, "last": None} for run in runs}
    rows = Group.objects.filter(run__in=list(found), purpose="train").order_by().values("run").annotate(**_GROUPS_SEEN)
    found.update({row["run"]: dict(row) for row in rows})
    return found


def run_progress(run: Run, job: Job | None, seen_groups: Mapping[str, Any] | None = None) -> Progress:
    """Progress in groups while training, in evaluation items afterwards. Needs ``head`` loaded.

    ``seen_groups``: the run's entry of ``groups_seen``, where several runs were counted together.
    """
    config, head = run_config(run), run.head
    batches = config.get("budget", {}).get("batches", head.batch)
    per_batch = config.get("rollout", {}).get("groups_per_batch", 1)
    max_steps = config.get("budget", {}).get("max_steps", head.steps)
    doing = _doing(run, job)
    if head.phase == "evaluate" and run.plan_version is not None:
        plan = plan_body(run.plan_version)["plan"]
        total = sum(s["tasks"] for s in plan["evaluation"]["splits"]) * plan["evaluation"]["repeats"]
        total *= len(plan["evaluation"]["conditions"])
        seen: Mapping[str, Any] = EvaluationItem.objects.filter(run=run).aggregate(
            n=Count("pk"), first=Min("trajectory__group__created_at"), last=Max("trajectory__group__created_at")
        )
        unit = _("evaluation items")
    else:
        total, unit = batches * per_batch, _("groups")
        seen = seen_groups or groups_seen([run])[run.pk]
    rate = _rate(seen["first"], seen["last"], seen["n"])
    running = head.state == "running" and not held_by_execution(run)
    left = 60 * (total - seen["n"]) / rate if running and rate and total > seen["n"] else None
    return Progress(
        seen["n"], max(total, seen["n"]), unit, rate if running else None, left, doing, head.steps, max_steps
    )
