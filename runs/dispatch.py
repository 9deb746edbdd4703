"""Messages to workers, sent when the transaction commits, by task name and id.

The job row is the truth and the message only says "look at job N": a message that is lost is sent
again by the reaper, and a message that arrives twice finds nothing to claim.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.utils import timezone

from workbench.celery import app
from workbench.faults import reach

from .models import Job

logger = logging.getLogger(__name__)
RUN_JOB = "worker.tasks.run_job"


def send(job_id: int, queue: str) -> None:
    """Send now. A broker that cannot be reached is logged; the reaper sends again."""
    reach("dispatch")
    try:
        app.send_task(RUN_JOB, args=[job_id], queue=queue, retry=False)
    except Exception as error:  # any transport error: the row stays queued and is sent again
        logger.warning("job %s was not sent to queue %s: %s", job_id, queue, error)
        return
    Job.objects.filter(pk=job_id, state="queued").update(dispatched_at=timezone.now())


def send_on_commit(job: Job) -> None:
    """Send after the surrounding transaction has committed."""
    job_id, queue = job.pk, job.queue
    # robust: what has been committed stands, and an error here is not the caller's; the reaper sends again
    transaction.on_commit(lambda: send(job_id, queue), robust=True)
