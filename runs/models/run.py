"""Execution of a frozen plan, and its runs: immutable identity, mutable head, transition log."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class Execution(models.Model):
    """Head: how far the execution of one plan version is. ``counters``: small whole numbers by name."""

    uid = models.UUIDField(unique=True, editable=False)
    plan_version = models.OneToOneField("runs.PlanVersion", models.PROTECT, related_name="execution")
    state = models.CharField(max_length=32)
    phase = models.CharField(max_length=64, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    counters = models.JSONField(default=dict)
    updated_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["state"], name="execution_by_state")]


class ExecutionTransition(AppendOnlyModel):
    """One change of an execution's state."""

    execution = models.ForeignKey("runs.Execution", models.PROTECT, related_name="transitions")
    from_state = models.CharField(max_length=32)
    to_state = models.CharField(max_length=32)
    reason = models.TextField(blank=True, default="")
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    at = models.DateTimeField()


class Run(AppendOnlyModel):
    """One arm at one seed. ``seed`` is a decimal string. Only native runs must have an arm."""

    NATIVE, IMPORTED, TRACKED = "native", "imported", "tracked"

    uid = models.UUIDField(unique=True, editable=False)
    execution = models.ForeignKey("runs.Execution", models.PROTECT, null=True, related_name="runs")
    plan_version = models.ForeignKey("runs.PlanVersion", models.PROTECT, null=True, related_name="runs")
    arm = models.ForeignKey("runs.Arm", models.PROTECT, null=True, related_name="runs")
    seed = models.CharField(max_length=40)
    origin = models.CharField(max_length=16, default="native")
    name = models.CharField(max_length=200)
    parent_checkpoint = models.ForeignKey("runs.Checkpoint", models.PROTECT, null=True, related_name="child_runs")
    created_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        indexes = [models.Index(fields=["-created_at"], name="run_newest")]
        constraints = [
            models.CheckConstraint(
                name="run_native_has_arm", condition=~models.Q(origin="native") | models.Q(arm__isnull=False)
            ),
            models.CheckConstraint(
                name="run_origin_known", condition=models.Q(origin__in=["native", "imported", "tracked"])
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RunHead(models.Model):
    """Mutable state of a run. ``checkpoint`` None: no policy loaded yet.

    ``batch`` counts optimizer batches, ``steps`` optimizer steps, ``optimizer_sha256`` None a fresh optimizer.
    """

    run = models.OneToOneField("runs.Run", models.PROTECT, related_name="head")
    state = models.CharField(max_length=32)
    phase = models.CharField(max_length=64, blank=True, default="")
    policy_version = models.PositiveIntegerField(default=0)
    checkpoint = models.ForeignKey("runs.Checkpoint", models.PROTECT, null=True, related_name="+")
    optimizer_sha256 = models.CharField(max_length=64, null=True)
    batch = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    reason = models.TextField(blank=True, default="")
    runtime = models.CharField(max_length=200, blank=True, default="")
    trajectories = models.PositiveBigIntegerField(default=0)
    generated_tokens = models.PositiveBigIntegerField(default=0)
    updated_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["state"], name="run_head_by_state"),
            models.Index(fields=["updated_at"], name="run_head_by_change"),
        ]


class RunTransition(AppendOnlyModel):
    """One change of a run's state."""

    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="transitions")
    from_state = models.CharField(max_length=32)
    to_state = models.CharField(max_length=32)
    reason = models.TextField(blank=True, default="")
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    at = models.DateTimeField()
