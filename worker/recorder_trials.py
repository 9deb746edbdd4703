"""Trials of a group -> rows: one transaction a job, fenced by the attempt, ending in ``advance``."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from runs.actions import jobs
from runs.actions.actors import service_actor
from runs.actions.advance import advance, lock_execution
from runs.actions.record_trials import (
    TRIALS_RECORDED,
    TRIALS_UNAVAILABLE,
    record_trials,
    trials_body,
    unavailable_result,
)
from runs.models import Execution, Group, Job, JobTransition
from workbench.contracts.trials import TrialsResult
from worker.recorder import write_receipt


def group_of(job: Job) -> Group | None:
    """The group that a job tries; None where it was never recorded."""
    return Group.objects.select_related("plan_version", "run__arm").filter(uid=job.spec["group"]).first()


def waited_seconds(job: Job) -> float:
    """From when this attempt could be claimed to when it was."""
    claimed = JobTransition.objects.filter(job=job, attempt=job.attempt, to_state="leased").order_by("-pk").first()
    if claimed is None or job.available_at is None:
        return 0.0
    return max(0.0, (claimed.at - job.available_at).total_seconds())


def commit_trials(job: Job, result: TrialsResult) -> None:
    """Store the trials of a group; the update of its batch may follow."""
    at, actor, group = timezone.now(), service_actor("worker"), group_of(job)
    if group is None:
        raise ValueError(f"job {job.key}: got no group {job.spec['group']}, expected the one that it tried")
    with transaction.atomic():
        execution = lock_execution(job.execution)
        jobs.finish(job, "succeeded", at=at)
        made = record_trials(group=group, run=job.run, result=result, waited_s=waited_seconds(job), at=at)
        write_receipt(job, TRIALS_RECORDED, trials_body(made), actor, at, result.timing)
        advance(execution, actor=actor, at=at)


def commit_trials_unavailable(job: Job, state: str, reason: str) -> None:
    """A group that could not be tried: each of its interventions says so, and the run goes on without them."""
    at, actor = timezone.now(), service_actor("worker")
    with transaction.atomic():
        execution = lock_execution(job.execution)
        jobs.finish(job, state, at=at, error=reason)
        body = {"purpose": job.spec["purpose"], "ordinal": job.spec["ordinal"], "state": state, "reason": reason}
        body |= _recorded(job, execution, state, at)
        write_receipt(job, TRIALS_UNAVAILABLE, body, actor, at, None)
        advance(execution, actor=actor, at=at)


def _recorded(job: Job, execution: Execution, state: str, at: datetime) -> dict[str, object]:
    """What the receipt adds: the record of a group that is there; nothing for one that never was."""
    group = group_of(job)
    if group is None:
        return {}
    made = record_trials(group=group, run=job.run, result=unavailable_result(group, job.run, state), at=at)
    return trials_body(made)
