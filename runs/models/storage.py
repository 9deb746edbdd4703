"""What the blob store is known to hold, and what was removed from it on purpose."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class BlobRef(AppendOnlyModel):
    """A blob that rows rely on. ``kind``: captures, adapter, optimizer, trace, old_logprobs, task_set, ..."""

    sha256 = models.CharField(max_length=64, unique=True)
    bytes = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=32)


class Tombstone(AppendOnlyModel):
    """A blob's bytes were removed by retention; ``recipe`` says how to make them again."""

    sha256 = models.CharField(max_length=64, unique=True)
    reason = models.TextField()
    recipe = models.JSONField()
    at = models.DateTimeField()
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
