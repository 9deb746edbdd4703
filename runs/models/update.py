"""Checkpoints and optimizer batches: rows projected from update documents."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class Checkpoint(AppendOnlyModel):
    """An adapter (or full weights) by hash. ``run`` None: a parent, which any run may start from."""

    PARENT, UPDATE = "parent", "update"

    uid = models.UUIDField(unique=True, editable=False)
    run = models.ForeignKey("runs.Run", models.PROTECT, null=True, related_name="checkpoints")
    parent = models.ForeignKey("self", models.PROTECT, null=True, related_name="children")
    sha256 = models.CharField(max_length=64, db_index=True)
    policy_version = models.PositiveIntegerField()
    kind = models.CharField(max_length=16)
    base_model_sha256 = models.CharField(max_length=64)
    tokenizer_sha256 = models.CharField(max_length=64)
    adaptation = models.JSONField()
    blob_bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["run", "policy_version"], name="checkpoint_version_unique")]

    def __str__(self) -> str:
        return f"{self.sha256[:12]} (policy {self.policy_version})"


class UpdateBatch(AppendOnlyModel):
    """One optimizer batch. ``skipped`` says why nothing was trained: then both checkpoints are the same row."""

    uid = models.UUIDField(unique=True, editable=False)
    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="updates")
    batch = models.PositiveIntegerField()
    policy_version = models.PositiveIntegerField()
    checkpoint_before = models.ForeignKey("runs.Checkpoint", models.PROTECT, related_name="updates_from")
    checkpoint_after = models.ForeignKey("runs.Checkpoint", models.PROTECT, related_name="updates_into")
    optimizer_before = models.CharField(max_length=64, null=True)
    optimizer_after = models.CharField(max_length=64, null=True)
    capture_digest = models.CharField(max_length=64)
    old_logprobs_sha256 = models.CharField(max_length=64, null=True)
    trace_blob_sha256 = models.CharField(max_length=64, null=True)
    skipped = models.CharField(max_length=64, null=True)
    note = models.TextField(null=True)
    clipping_inert = models.BooleanField()
    record_sha256 = models.CharField(max_length=64)

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["run", "batch"], name="update_batch_unique")]


class UpdateStep(AppendOnlyModel):
    """One optimizer step. A non-finite value is NULL in its column and named in ``nonfinite``."""

    update = models.ForeignKey("runs.UpdateBatch", models.PROTECT, related_name="steps")
    step = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    minibatch = models.PositiveIntegerField()
    loss = models.FloatField(null=True)
    grad_norm = models.FloatField(null=True)
    update_norm = models.FloatField(null=True)
    relative_update_norm = models.FloatField(null=True)
    clip_low_share = models.FloatField(null=True)
    clip_high_share = models.FloatField(null=True)
    ratio_max_deviation = models.FloatField(null=True)
    kl_k1 = models.FloatField(null=True)
    kl_k3 = models.FloatField(null=True)
    entropy = models.FloatField(null=True)
    trained_tokens = models.PositiveBigIntegerField()
    masked_tokens = models.PositiveBigIntegerField()
    trajectories = models.PositiveIntegerField()
    nonfinite = models.JSONField(default=dict)

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["update", "step"], name="update_step_unique")]


class TrajectoryCredit(AppendOnlyModel):
    """What the credit rule did to one trajectory of an update. Drift None: the sampler gave no log-probabilities.

    ``edit``: the ``EditCreditRecord`` as JSON; None where the arm has no credit from edits.
    """

    update = models.ForeignKey("runs.UpdateBatch", models.PROTECT, related_name="credits")
    trajectory = models.ForeignKey("runs.Trajectory", models.PROTECT, related_name="credits")
    advantage = models.FloatField(null=True)
    policy_tokens = models.PositiveBigIntegerField()
    trained_tokens = models.PositiveBigIntegerField()
    masked_tokens = models.PositiveBigIntegerField()
    clamp_actionable = models.BooleanField()
    fatal_start = models.PositiveIntegerField(null=True)
    engine_drift_mean = models.FloatField(null=True)
    engine_drift_max = models.FloatField(null=True)
    nonfinite = models.JSONField(default=dict)
    edit = models.JSONField(null=True)

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["update", "trajectory"], name="trajectory_credit_unique")]
        indexes = [models.Index(fields=["masked_tokens", "trajectory"], name="credit_by_masked")]


class ConsumedGroup(AppendOnlyModel):
    """The ledger of groups that an update has taken: a group enters at most one."""

    group = models.OneToOneField("runs.Group", models.PROTECT, related_name="consumed")
    update = models.ForeignKey("runs.UpdateBatch", models.PROTECT, related_name="consumed_groups")


class TraceFrame(AppendOnlyModel):
    """Where the per-token trace of one (step, trajectory) lies in the batch's trace file."""

    update = models.ForeignKey("runs.UpdateBatch", models.PROTECT, related_name="trace_frames")
    step = models.PositiveIntegerField()
    trajectory = models.ForeignKey("runs.Trajectory", models.PROTECT, related_name="trace_frames")
    frame_sha256 = models.CharField(max_length=64)
    offset = models.PositiveBigIntegerField()
    length = models.PositiveBigIntegerField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["update", "step", "trajectory"], name="trace_frame_unique")]
