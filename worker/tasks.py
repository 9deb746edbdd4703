"""Celery tasks. They hold no logic: the job row decides, ``lifecycle`` acts."""

from __future__ import annotations

from workbench.celery import app

from . import lifecycle


@app.task(name="worker.tasks.run_job")
def run_job(job_id: int) -> None:
    """Look at job ``job_id``."""
    lifecycle.execute(job_id)


@app.task(name="worker.tasks.reap")
def reap() -> None:
    """Look for lost leases and lost messages."""
    lifecycle.reap()
