"""Compare-and-set transitions with their log rows, for plans, executions and runs.

Each call locks nothing: it updates the head only if its state is still the one that was read, in
the caller's transaction, and appends the transition's row. A lost race raises ``StaleTransition``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from runs.errors import StaleTransition
from runs.models import (
    Actor,
    Execution,
    ExecutionTransition,
    Plan,
    PlanTransition,
    PlanVersion,
    Run,
    RunHead,
    RunTransition,
)
from runs.states import allowed


def _check(table: str, name: str, from_state: str, to_state: str) -> None:
    if from_state == to_state:
        raise StaleTransition(f"{table} {name}: it is {to_state} already")
    if not allowed(table, from_state, to_state):
        raise StaleTransition(
            f"{table} {name}: got {from_state} -> {to_state}, expected a transition of its state table"
        )


def move_plan(
    plan: Plan, to_state: str, *, version: PlanVersion | None, reason: str, actor: Actor, at: datetime
) -> None:
    """Move a plan's head and log it."""
    from_state = plan.state
    _check("plan", plan.slug, from_state, to_state)
    values: dict[str, Any] = {"state": to_state}
    if version is not None:
        values["current_version"] = version
    if Plan.objects.filter(pk=plan.pk, state=from_state).update(**values) != 1:
        raise StaleTransition(f"plan {plan.slug}: no longer {from_state}")
    PlanTransition.objects.create(
        plan=plan, from_state=from_state, to_state=to_state, version=version, reason=reason, actor=actor, at=at
    )
    plan.refresh_from_db()


def move_execution(
    execution: Execution, to_state: str, *, reason: str, actor: Actor, at: datetime, **values: Any
) -> None:
    """Move an execution's head and log it; ``values`` are other head fields that change with it."""
    from_state = execution.state
    _check("execution", str(execution.uid), from_state, to_state)
    changed = Execution.objects.filter(pk=execution.pk, state=from_state).update(
        state=to_state, reason=reason, updated_at=at, **values
    )
    if changed != 1:
        raise StaleTransition(f"execution {execution.uid}: no longer {from_state}")
    ExecutionTransition.objects.create(
        execution=execution, from_state=from_state, to_state=to_state, reason=reason, actor=actor, at=at
    )
    execution.refresh_from_db()


def move_run(run: Run, to_state: str, *, reason: str, actor: Actor, at: datetime, **values: Any) -> None:
    """Move a run's head and log it; ``values`` are other head fields that change with it."""
    head = RunHead.objects.get(run=run)
    from_state = head.state
    _check("run", run.name, from_state, to_state)
    changed = RunHead.objects.filter(run=run, state=from_state).update(
        state=to_state, reason=reason, updated_at=at, **values
    )
    if changed != 1:
        raise StaleTransition(f"run {run.name}: no longer {from_state}")
    RunTransition.objects.create(run=run, from_state=from_state, to_state=to_state, reason=reason, actor=actor, at=at)
