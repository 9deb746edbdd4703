"""Metric series and their points."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class MetricSeries(AppendOnlyModel):
    """Identity of a series. ``labels_key`` is the canonical JSON of ``labels``; ``uid`` derives from all of it.

    ``definition`` is an id of the table, or ``logged/1`` for a series that a trainer named itself: ``name``
    is then the name as received, never shortened, and ``segment`` the number of the attempt.
    """

    uid = models.UUIDField(unique=True, editable=False)
    run = models.ForeignKey("runs.Run", models.PROTECT, null=True, related_name="metric_series")
    definition = models.CharField(max_length=200)
    phase = models.CharField(max_length=32)
    split = models.CharField(max_length=32)
    labels = models.JSONField(default=dict)
    labels_key = models.CharField(max_length=500)
    segment = models.CharField(max_length=100, blank=True, default="")
    name = models.CharField(max_length=500, blank=True, default="")

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["run", "definition", "phase", "split", "labels_key", "segment", "name"],
                name="metric_series_unique",
            )
        ]
        indexes = [models.Index(fields=["run", "segment", "name"], name="metric_series_by_name")]


class MetricPoint(AppendOnlyModel):
    """One value. ``value`` None with ``nonfinite`` "": the metric does not exist here; never a zero.

    ``count`` is the denominator; ``wall_seconds`` and ``at`` are hashed nowhere. ``document`` and
    ``position`` say which stored record this row is projected from.
    """

    series = models.ForeignKey("runs.MetricSeries", models.PROTECT, related_name="points")
    value = models.FloatField(null=True)
    nonfinite = models.CharField(max_length=4, blank=True, default="")
    count = models.PositiveBigIntegerField(null=True)
    policy_version = models.PositiveIntegerField()
    update = models.PositiveIntegerField(null=True)
    trajectories = models.PositiveBigIntegerField(null=True)
    generated_tokens = models.PositiveBigIntegerField(null=True)
    wall_seconds = models.FloatField(null=True)
    subject_uid = models.UUIDField(null=True, db_index=True)
    at = models.DateTimeField()
    document = models.ForeignKey("runs.Document", models.PROTECT, related_name="metric_points")
    position = models.PositiveIntegerField()

    class Meta(AppendOnlyModel.Meta):
        indexes = [models.Index(fields=["series", "policy_version", "update", "id"], name="metric_point_order")]
        constraints = [
            models.UniqueConstraint(fields=["document", "position"], name="metric_point_position_unique"),
            models.CheckConstraint(
                name="metric_point_nonfinite_known",
                condition=models.Q(nonfinite="") | models.Q(nonfinite__in=["nan", "inf", "-inf"], value__isnull=True),
            ),
        ]
