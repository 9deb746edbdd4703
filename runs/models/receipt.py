"""Receipts: hash-chained streams, their heads, and the anchors over all heads."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class StreamHead(models.Model):
    """Last position and hash of a stream; its row lock orders the appends. ``seq`` 0: nothing appended.

    ``study``: whose readers may read the stream; None for one of no study, which the site's admins alone see.
    """

    stream = models.CharField(max_length=200, unique=True)
    study = models.ForeignKey("runs.Study", models.PROTECT, null=True, related_name="+")
    seq = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64)


class Receipt(AppendOnlyModel):
    """One thing that happened. ``bytes`` are the exact RFC 8785 bytes that ``sha256`` covers."""

    stream = models.CharField(max_length=200)
    seq = models.PositiveBigIntegerField()
    prev = models.CharField(max_length=64)
    sha256 = models.CharField(max_length=64, db_index=True)
    bytes = models.BinaryField()
    kind = models.CharField(max_length=100)
    subject_uid = models.UUIDField(null=True, db_index=True)
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="receipts")
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["stream", "seq"], name="receipt_seq_unique"),
            models.UniqueConstraint(fields=["stream", "prev"], name="receipt_prev_unique"),
        ]
        indexes = [models.Index(fields=["-at"], name="receipt_newest")]


class Anchor(AppendOnlyModel):
    """All stream heads at one moment: canonical list of [stream, seq, head], chained by ``prev``."""

    seq = models.PositiveBigIntegerField(unique=True)
    prev = models.CharField(max_length=64, unique=True)
    sha256 = models.CharField(max_length=64)
    bytes = models.BinaryField()
