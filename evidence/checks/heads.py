"""Step 4, heads: mutable rows equal what their history adds up to."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q, Sum

from evidence.report import StepLog
from runs.models import (
    Execution,
    ExecutionTransition,
    Job,
    JobTransition,
    Plan,
    PlanTransition,
    RunHead,
    RunTransition,
    Trajectory,
    UpdateBatch,
)

CHUNK = 200
INITIAL = {"plan": "draft", "execution": "pending", "run": "pending", "job": "queued"}


def check_heads(log: StepLog) -> None:
    """States are the fold of their transitions; a run's counters are sums over its records."""
    for table, heads, transitions, owner in (
        ("plan", Plan.objects.all(), PlanTransition.objects.all(), "plan"),
        ("execution", Execution.objects.all(), ExecutionTransition.objects.all(), "execution"),
        ("job", Job.objects.all(), JobTransition.objects.all(), "job"),
    ):
        _states(log, table, ((head.pk, head.uid, head.state) for head in heads.iterator(CHUNK)), transitions, owner)
    run_heads = RunHead.objects.select_related("run", "checkpoint").order_by("pk")
    runs = ((head.run_id, head.run.uid, head.state) for head in run_heads.iterator(CHUNK))
    _states(log, "run", runs, RunTransition.objects.all(), "run")
    for run_head in run_heads.iterator(CHUNK):
        _counters(log, run_head)


def _states(log: StepLog, table: str, heads: Any, transitions: Any, owner: str) -> None:
    """Walk the transitions in order; each starts where the one before it ended."""
    state: dict[int, str] = {}
    for row in transitions.order_by("pk").iterator(chunk_size=1000):
        key = getattr(row, f"{owner}_id")
        before = state.get(key, INITIAL[table])
        if row.from_state != before:
            log.problem(f"runs_{table}transition", row.pk, "from_state", expected=before, got=row.from_state)
        state[key] = row.to_state
    for key, uid, got in heads:
        log.count()
        expected = state.get(key, INITIAL[table])
        if got != expected:
            log.problem("runs_runhead" if table == "run" else f"runs_{table}", uid, "state", expected=expected, got=got)


def _counters(log: StepLog, head: RunHead) -> None:
    trained = Q(group__run=head.run_id, group__purpose="train")
    sums = Trajectory.objects.filter(trained).aggregate(n=Count("pk"), tokens=Sum("generated_tokens"))
    updates = UpdateBatch.objects.filter(run=head.run_id).order_by("batch")
    last = updates.select_related("checkpoint_after").last()
    expected = {
        "trajectories": sums["n"],
        "generated_tokens": sums["tokens"] or 0,
        "batch": updates.count(),
        "steps": updates.aggregate(n=Count("steps"))["n"],
        "checkpoint_id": head.run.parent_checkpoint_id if last is None else last.checkpoint_after_id,
        "optimizer_sha256": None if last is None else last.optimizer_after,
    }
    if head.checkpoint is not None:
        expected["policy_version"] = head.checkpoint.policy_version
    if head.run.origin == "native":
        log.compare("runs_runhead", head.run.uid, expected, head)
