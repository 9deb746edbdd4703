"""Pause, resume and cancel: of one run, or of a whole execution."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from runs.actions.advance import advance, lock_execution
from runs.actions.jobs import cancel_jobs
from runs.actions.receipts import append_receipt
from runs.actions.transitions import move_execution, move_run
from runs.errors import NotAllowed, StaleTransition
from runs.models import Actor, Execution, Run, RunHead, RunTransition


def _require_actor(by: Actor | None) -> Actor:
    if by is None:
        raise NotAllowed("by: got nobody, expected an actor; there is no anonymous mutation")
    return by


def pause_run(run: Run, *, by: Actor, at: datetime | None = None, reason: str = "paused") -> None:
    """Stop creating jobs for the run; a job in flight ends and commits."""
    _change(run, "paused", "run.paused", by, at, reason)


def resume_run(run: Run, *, by: Actor, at: datetime | None = None, reason: str = "resumed") -> None:
    """Go on where the run stopped: it continues from its last committed batch."""
    if RunHead.objects.get(run=run).state != "paused":  # a pending run would pass its gate by
        raise StaleTransition(f"run {run.name}: it is not paused")
    before = RunTransition.objects.filter(run=run, to_state="paused").order_by("-pk").first()
    state = "pending" if before is not None and before.from_state == "pending" else "running"
    _change(run, state, "run.resumed", by, at, reason)


def cancel_run(run: Run, *, by: Actor, at: datetime | None = None, reason: str = "cancelled") -> None:
    """End the run for good: queued jobs are cancelled, a job in flight stops at its next heartbeat."""
    _change(run, "cancelled", "run.cancelled", by, at, reason)


def _change(run: Run, state: str, kind: str, by: Actor, at: datetime | None, reason: str) -> None:
    actor, at = _require_actor(by), at or timezone.now()
    with transaction.atomic():
        if run.execution is not None:
            lock_execution(run.execution)
        extra = {"phase": "done"} if state == "cancelled" else {}
        move_run(run, state, reason=reason, actor=actor, at=at, **extra)
        append_receipt(f"run:{run.uid}", kind, str(run.uid), {"reason": reason}, actor=actor, at=at)
        if state == "cancelled":
            cancel_jobs(run=run, at=at, reason=reason)
        if run.execution is not None:
            advance(run.execution, actor=actor, at=at)


def pause_execution(execution: Execution, *, by: Actor, at: datetime | None = None, reason: str = "") -> None:
    """Stop creating jobs for the whole execution. ``reason``: what made the machine do it, "" for a person's wish."""
    _change_execution(execution, "paused", by, at, "paused", cause=reason)


def resume_execution(execution: Execution, *, by: Actor, at: datetime | None = None) -> None:
    """Go on with a paused execution. An interrupted one needs ``recover_execution``."""
    if execution.state == "interrupted":
        raise NotAllowed(
            "execution: it is interrupted, expected a recorded recovery plan: study recover SLUG --plan FILE"
        )
    _change_execution(execution, "running", by, at, "resumed")


def cancel_execution(execution: Execution, *, by: Actor, at: datetime | None = None) -> None:
    """End the execution and every run of it that has not ended."""
    actor, at = _require_actor(by), at or timezone.now()
    with transaction.atomic():
        lock_execution(execution)
        cancel_jobs(execution=execution, at=at, reason="cancelled")
        for run in Run.objects.filter(
            execution=execution, head__state__in=("pending", "running", "paused", "interrupted")
        ):
            move_run(run, "cancelled", reason="execution cancelled", actor=actor, at=at, phase="done")
        _change_execution(execution, "cancelled", actor, at, "cancelled")


def _change_execution(
    execution: Execution, state: str, by: Actor, at: datetime | None, word: str, *, cause: str = ""
) -> None:
    actor, at = _require_actor(by), at or timezone.now()
    with transaction.atomic():
        lock_execution(execution)
        move_execution(execution, state, reason=cause or word, actor=actor, at=at)
        body = {"reason": cause} if cause else {}
        append_receipt(f"execution:{execution.uid}", f"execution.{word}", str(execution.uid), body, actor=actor, at=at)
        advance(execution, actor=actor, at=at)
