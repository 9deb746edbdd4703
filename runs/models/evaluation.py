"""Evaluation items: one trajectory in one cell of the evaluation."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class EvaluationItem(AppendOnlyModel):
    """(checkpoint, condition, split, task, repeat). ``run`` None: the parent's evaluation."""

    uid = models.UUIDField(unique=True, editable=False)
    plan_version = models.ForeignKey("runs.PlanVersion", models.PROTECT, related_name="evaluation_items")
    checkpoint = models.ForeignKey("runs.Checkpoint", models.PROTECT, related_name="evaluation_items")
    run = models.ForeignKey("runs.Run", models.PROTECT, null=True, related_name="evaluation_items")
    condition = models.CharField(max_length=32)
    split = models.CharField(max_length=32)
    task = models.ForeignKey("runs.Task", models.PROTECT, related_name="evaluation_items")
    repeat = models.PositiveIntegerField()
    trajectory = models.OneToOneField("runs.Trajectory", models.PROTECT, related_name="evaluation_item")

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["plan_version", "checkpoint", "condition", "split", "task", "repeat"],
                name="evaluation_item_unique",
            )
        ]
