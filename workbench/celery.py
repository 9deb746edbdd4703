"""The Celery app. A message only says "look at job N": the database row is the truth."""

from __future__ import annotations

import logging.config
import os
import warnings
from typing import Any

from billiard.einfo import ExceptionWithTraceback
from billiard.exceptions import WorkerLostError
from celery import Celery, Task, signals
from celery.platforms import SecurityWarning
from celery.worker.request import Request
from kombu import Queue

from workbench.child import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")

QUEUES = ("rollout", "update", "trial", "evaluate", "io")
COMPUTE_QUEUES = ("rollout", "update", "trial", "evaluate")
REAP = "worker.tasks.reap"


def expire_leases_of(owner_prefix: str) -> int:
    """End the leases of a dead process; 0 where it held none."""
    from django.db import close_old_connections
    from django.utils import timezone

    from runs.actions import jobs

    try:
        return jobs.expire_leases_of(owner_prefix, at=timezone.now())
    finally:
        close_old_connections()


class JobRequest(Request):
    """A request whose pool process may be killed at any instant."""

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        """Where the pool process died, end its leases before the message is delivered again."""
        error = exc_info.exception
        if isinstance(error, ExceptionWithTraceback):  # as the pool hands it over
            error = error.exc
        if isinstance(error, WorkerLostError):
            from django.conf import settings

            try:
                expire_leases_of(settings.PROCESS_NAME)
            except Exception:  # the lease then runs out by itself
                logging.getLogger(__name__).exception("leases of a dead process were not ended")
        return super().on_failure(exc_info, send_failed_event, return_ok)


class JobTask(Task):
    """Base of every task."""

    Request = JobRequest


# Celery warns a worker of root because of pickled messages; only JSON is accepted here.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("workbench", task_cls=JobTask)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = tuple(Queue(name, routing_key=name) for name in QUEUES)
app.autodiscover_tasks(["worker"])


@signals.setup_logging.connect
def configure_logging(**kwargs: Any) -> None:
    """One log format for every process."""
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)


@signals.worker_process_init.connect
def follow_parent(**kwargs: Any) -> None:
    """A pool process never outlives its worker, and starts without the worker's database connections."""
    from django.db import connections

    die_with_parent(os.getppid())
    connections.close_all()
