"""Jobs: small units of work whose truth is their row."""

from __future__ import annotations

from typing import Any

from django.db import models

from workbench.contracts.canonical import derive_uid
from workbench.db import AppendOnlyModel


class Job(models.Model):
    """Head. ``attempt`` is the fencing token: a result commits only under the current one.

    ``spec`` holds small natural parameters; ``failed`` is the experiment's, ``errored`` is ours. ``study``
    is set for work outside an execution, whose answer stands in ``result`` (None: no answer yet).
    """

    uid = models.UUIDField(unique=True, editable=False)
    key = models.CharField(max_length=255, unique=True)
    kind = models.CharField(max_length=32)
    queue = models.CharField(max_length=32)
    execution = models.ForeignKey("runs.Execution", models.PROTECT, null=True, related_name="jobs")
    run = models.ForeignKey("runs.Run", models.PROTECT, null=True, related_name="jobs")
    study = models.ForeignKey("runs.Study", models.PROTECT, null=True, related_name="jobs")
    spec = models.JSONField(default=dict)
    state = models.CharField(max_length=16, default="queued")
    attempt = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(default=3)
    owner = models.CharField(max_length=200, blank=True, default="")
    lease_until = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True)
    available_at = models.DateTimeField(null=True)
    progress = models.JSONField(default=dict)
    result = models.JSONField(null=True)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="job_state_known",
                condition=models.Q(state__in=["queued", "leased", "succeeded", "failed", "errored", "cancelled"]),
            )
        ]
        indexes = [
            models.Index(fields=["state", "queue", "available_at"], name="job_next"),
            models.Index(fields=["state", "lease_until"], name="job_lease"),
            models.Index(fields=["run", "kind", "state"], name="job_by_run"),
            models.Index(fields=["execution", "state"], name="job_by_execution"),
            models.Index(fields=["finished_at"], name="job_by_finish"),
        ]

    def __str__(self) -> str:
        return self.key

    def save(self, *args: Any, **kwargs: Any) -> None:
        """The uid follows from the key, so that the same work has the same uid in every database."""
        if self.uid is None:
            self.uid = derive_uid(None, f"job:{self.key}")
        super().save(*args, **kwargs)


class JobTransition(AppendOnlyModel):
    """One change of a job's state, under which attempt and by whom."""

    job = models.ForeignKey("runs.Job", models.PROTECT, related_name="transitions")
    from_state = models.CharField(max_length=16)
    to_state = models.CharField(max_length=16)
    attempt = models.PositiveIntegerField()
    owner = models.CharField(max_length=200, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    at = models.DateTimeField()
