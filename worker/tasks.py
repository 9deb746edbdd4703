"""Celery tasks. They hold no logic: the job row decides, ``lifecycle`` acts."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_process_init
from django.conf import settings
from django.utils import timezone

from evidence import recording
from evidence.outward import housekeeping
from runs.actions import imports
from workbench.celery import app

from . import closing, lifecycle

COMPUTE = "/compute"  # the supervisor's name for workers that serve the engine's queues


@worker_process_init.connect
def start_engine(**_: Any) -> None:
    """A compute worker's engine process loads while nothing is asked of it yet."""
    if COMPUTE in settings.PROCESS_NAME:
        lifecycle.engine_client(1).start()


@app.task(name="worker.tasks.run_job")
def run_job(job_id: int) -> None:
    """Look at job ``job_id``."""
    lifecycle.execute(job_id)


@app.task(name="worker.tasks.reap")
def reap() -> None:
    """Look for lost leases and messages, imports that nobody moves, closings to collect, and what is due a minute."""
    lifecycle.reap()
    imports.resend_stale(timezone.now())
    closing.collect_missing(settled_s=closing.AGAIN_S)
    closing.write_missing_notes(settled_s=closing.AGAIN_S)
    housekeeping.tick(timezone.now())


@app.task(name=imports.TASK)
def import_log(import_id: int) -> None:
    """Go on with import ``import_id``."""
    imports.continue_import(import_id, clock=timezone.now)


@app.task(name=recording.TASK)
def record_evidence(study_id: int, actor_id: int) -> None:
    """Look at the evidence of study ``study_id`` for actor ``actor_id`` and write what has changed."""
    recording.record_study(study_id, actor_id, at=timezone.now())
