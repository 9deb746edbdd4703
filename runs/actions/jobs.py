"""Jobs: create, claim, heartbeat, finish, re-queue. The row is the truth.

The attempt number is the fencing token: a result commits only while the row is leased under the
attempt that produced it. Times are arguments.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from runs.dispatch import send, send_on_commit
from runs.errors import StaleLease
from runs.models import Execution, Job, JobTransition, Run, RunHead, Study
from workbench.contracts.canonical import derive_uid

LEASE = timedelta(seconds=30)
RESEND_AFTER = timedelta(seconds=8)
RESEND_BUSY_AFTER = timedelta(seconds=60)  # where the queue's workers are busy, the message most likely waits

# A job is held while its execution does not run or its run is paused. Subqueries and no joins: PostgreSQL must
# check ``state`` again on the row that it waited for, else two workers claim one job.
_GOING = (Q(execution=None) | Exists(Execution.objects.filter(pk=OuterRef("execution_id"), state="running"))) & ~Exists(
    RunHead.objects.filter(run_id=OuterRef("run_id"), state="paused")
)


def _log(job_id: int, from_state: str, to_state: str, attempt: int, owner: str, reason: str, at: datetime) -> None:
    JobTransition.objects.create(
        job_id=job_id, from_state=from_state, to_state=to_state, attempt=attempt, owner=owner, reason=reason, at=at
    )


def ensure_job(
    *,
    key: str,
    kind: str,
    queue: str,
    execution: Execution | None,
    run: Run | None,
    spec: dict[str, Any],
    max_attempts: int,
    at: datetime,
    study: Study | None = None,
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
            "study": study,
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
    """Take a queued job for ``owner``; None where there is nothing to claim (done, leased, cancelled, held)."""
    with transaction.atomic():
        changed = Job.objects.filter(_GOING, pk=job_id, state="queued", available_at__lte=at).update(
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


def finish(job: Job, state: str, *, at: datetime, error: str = "", result: dict[str, Any] | None = None) -> None:
    """End an attempt. Raises ``StaleLease`` unless the row is leased under this attempt."""
    changed = Job.objects.filter(pk=job.pk, state="leased", attempt=job.attempt).update(
        state=state, finished_at=at, error=error[:4000], result=result
    )
    if changed != 1:
        raise StaleLease(f"job {job.key}: attempt {job.attempt} no longer holds the lease; its result is discarded")
    _log(job.pk, "leased", state, job.attempt, job.owner, error[:400], at)


def give_back(job: Job, *, reason: str, at: datetime, charged: bool = True) -> bool:
    """End a lost attempt: back to the queue, or False when no attempt is left.

    ``charged`` False: nothing was tried, so the attempt does not count towards the limit. Where
    False is returned nothing has changed: the caller records the loss and finishes the job.
    Raises ``StaleLease`` when the lease is no longer this attempt's.
    """
    if charged and job.attempt >= job.max_attempts:
        return False
    with transaction.atomic():
        changed = Job.objects.filter(pk=job.pk, state="leased", attempt=job.attempt).update(
            state="queued",
            owner="",
            lease_until=None,
            available_at=at,
            dispatched_at=None,
            max_attempts=F("max_attempts") + (0 if charged else 1),
        )
        if changed != 1:
            raise StaleLease(f"job {job.key}: attempt {job.attempt} no longer holds the lease")
        _log(job.pk, "leased", "queued", job.attempt, job.owner, reason, at)
        send_on_commit(job)
    return True


def holds(job: Job, *, expired_at: datetime | None = None) -> bool:
    """Whether the row is still leased under this attempt (and, where given, its lease ran out by ``expired_at``)."""
    rows = Job.objects.filter(pk=job.pk, state="leased", attempt=job.attempt)
    return (rows if expired_at is None else rows.filter(lease_until__lt=expired_at)).exists()


def expired(at: datetime) -> list[Job]:
    """Leased jobs whose lease ran out."""
    return list(
        Job.objects.filter(state="leased", lease_until__lt=at).select_related("execution__plan_version", "run")[:200]
    )


def resend_unanswered(at: datetime) -> int:
    """Send queued jobs again whose message was never sent or not answered for a while.

    A busy queue answers late, and messages sent again in the meantime would only pile up.
    """
    busy = list(Job.objects.filter(state="leased", lease_until__gte=at).values_list("queue", flat=True).distinct())
    waiting = Job.objects.filter(_GOING, state="queued", available_at__lte=at).filter(
        Q(dispatched_at=None, created_at__lt=at - timedelta(seconds=1))
        | (Q(dispatched_at__lt=at - RESEND_AFTER) & ~Q(queue__in=busy))
        | Q(dispatched_at__lt=at - RESEND_BUSY_AFTER)
    )
    found = list(waiting.order_by("pk").values_list("pk", "queue")[:64])
    for job_id, queue in found:
        send(job_id, queue)
    return len(found)


def expire_leases_of(owner_prefix: str, *, at: datetime) -> int:
    """End the leases of a process that is known to be dead, so that the reaper need not wait for them.

    ``owner_prefix``: a whole owner, or a process name with its slash.
    """
    owned = Q(owner__startswith=owner_prefix) if owner_prefix.endswith("/") else Q(owner=owner_prefix)
    return Job.objects.filter(owned, state="leased").update(lease_until=at - timedelta(seconds=1))


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
