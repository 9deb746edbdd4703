"""Jobs: create, claim, heartbeat, finish, re-queue. The row is the truth.

The attempt number is the fencing token: a result commits only while the row is leased under the
attempt that produced it. Times are arguments.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from runs.dispatch import send, send_on_commit
from runs.errors import StaleLease
from runs.models import Execution, Job, JobTransition, Run
from workbench.contracts.canonical import derive_uid

LEASE = timedelta(seconds=30)
RESEND_AFTER = timedelta(seconds=8)


def _log(job_id: int, from_state: str, to_state: str, attempt: int, owner: str, reason: str, at: datetime) -> None:
    JobTransition.objects.create(
        job_id=job_id, from_state=from_state, to_state=to_state, attempt=attempt, owner=owner, reason=reason, at=at
    )


def ensure_job(
    *,
    key: str,
    kind: str,
    queue: str,
    execution: Execution,
    run: Run | None,
    spec: dict[str, Any],
    max_attempts: int,
    at: datetime,
) -> Job:
    """The job with this key; created and dispatched on commit when it does not exist yet."""
    job, created = Job.objects.get_or_create(
        key=key,
        defaults={
            "uid": derive_uid(None, f"job:{key}"),
            "kind": kind,
            "queue": queue,
            "execution": execution,
            "run": run,
            "spec": spec,
            "state": "queued",
            "max_attempts": max_attempts,
            "created_at": at,
            "available_at": at,
        },
    )
    if created:
        send_on_commit(job)
    return job


def claim(job_id: int, *, owner: str, at: datetime) -> Job | None:
    """Take a queued job for ``owner``; None where there is nothing to claim (done, leased, cancelled)."""
    with transaction.atomic():
        changed = Job.objects.filter(pk=job_id, state="queued", available_at__lte=at).update(
            state="leased", owner=owner, lease_until=at + LEASE, heartbeat_at=at, attempt=F("attempt") + 1, progress={}
        )
        if changed != 1:
            return None
        job = Job.objects.select_related("execution__plan_version", "run").get(pk=job_id)
        _log(job_id, "queued", "leased", job.attempt, owner, "", at)
    return job


def heartbeat(job: Job, *, at: datetime, progress: dict[str, Any] | None = None) -> bool:
    """Extend the lease; False when it is lost or the job was cancelled, and the work must stop."""
    values: dict[str, Any] = {"lease_until": at + LEASE, "heartbeat_at": at}
    if progress is not None:
        values["progress"] = progress
    return Job.objects.filter(pk=job.pk, state="leased", attempt=job.attempt).update(**values) == 1


def finish(job: Job, state: str, *, at: datetime, error: str = "") -> None:
    """End an attempt. Raises ``StaleLease`` unless the row is leased under this attempt."""
    changed = Job.objects.filter(pk=job.pk, state="leased", attempt=job.attempt).update(
        state=state, finished_at=at, error=error[:4000]
    )
    if changed != 1:
        raise StaleLease(f"job {job.key}: attempt {job.attempt} no longer holds the lease; its result is discarded")
    _log(job.pk, "leased", state, job.attempt, job.owner, error[:400], at)


def give_back(job: Job, *, reason: str, at: datetime) -> bool:
    """End a lost attempt: back to the queue, or False when no attempt is left.

    Where False is returned nothing has changed: the caller records the loss and finishes the job.
    Raises ``StaleLease`` when the lease is no longer this attempt's.
    """
    if job.attempt >= job.max_attempts:
        return False
    with transaction.atomic():
        changed = Job.objects.filter(pk=job.pk, state="leased", attempt=job.attempt).update(
            state="queued", owner="", lease_until=None, available_at=at, dispatched_at=None
        )
        if changed != 1:
            raise StaleLease(f"job {job.key}: attempt {job.attempt} no longer holds the lease")
        _log(job.pk, "leased", "queued", job.attempt, job.owner, reason, at)
        send_on_commit(job)
    return True


def expired(at: datetime) -> list[Job]:
    """Leased jobs whose lease ran out."""
    return list(
        Job.objects.filter(state="leased", lease_until__lt=at).select_related("execution__plan_version", "run")[:200]
    )


def resend_unanswered(at: datetime) -> int:
    """Send queued jobs again whose message was never sent or not answered for a while."""
    waiting = Job.objects.filter(state="queued", available_at__lte=at, execution__state="running").filter(
        Q(dispatched_at=None, created_at__lt=at - timedelta(seconds=1)) | Q(dispatched_at__lt=at - RESEND_AFTER)
    )
    found = list(waiting.order_by("pk").values_list("pk", "queue")[:64])
    for job_id, queue in found:
        send(job_id, queue)
    return len(found)


def expire_leases_of(owner_prefix: str, *, at: datetime) -> int:
    """End the leases of a process that is known to be dead, so that the reaper need not wait for them."""
    return Job.objects.filter(state="leased", owner__startswith=owner_prefix).update(
        lease_until=at - timedelta(seconds=1)
    )


def cancel_jobs(*, at: datetime, reason: str, run: Run | None = None, execution: Execution | None = None) -> int:
    """Cancel queued and leased jobs of a run or an execution; leased ones stop at their next heartbeat."""
    jobs = Job.objects.filter(state__in=("queued", "leased"))
    jobs = jobs.filter(run=run) if run is not None else jobs.filter(execution=execution)
    cancelled = 0
    with transaction.atomic():
        for job in jobs.order_by("pk"):
            if Job.objects.filter(pk=job.pk, state=job.state, attempt=job.attempt).update(
                state="cancelled", finished_at=at, error=reason
            ):
                _log(job.pk, job.state, "cancelled", job.attempt, job.owner, reason, at)
                cancelled += 1
    return cancelled
