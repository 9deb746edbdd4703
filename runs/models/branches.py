"""Same-state branches: rows projected from documents of kind ``branch``."""

from __future__ import annotations

from django.db import models

from workbench.contracts.branches import POINTS
from workbench.db import AppendOnlyModel


class StateBranch(AppendOnlyModel):
    """Continuations from the states before and after one decision, the ``ordinal``-th time.

    ``before``, ``after``: mean rewards, None where nothing valid is known; ``value`` = after - before. ``points``: the
    proof of each point: hashes, snapshot, prompt, terminal. ``created_at`` is hashed nowhere.
    """

    uid = models.UUIDField(unique=True, editable=False)
    trajectory = models.ForeignKey("runs.Trajectory", models.PROTECT, related_name="branches")
    decision = models.PositiveIntegerField()
    ordinal = models.PositiveIntegerField()
    count = models.PositiveIntegerField()
    seed = models.CharField(max_length=32)
    adapter_sha256 = models.CharField(max_length=64, null=True)
    policy_version = models.PositiveIntegerField()
    before = models.FloatField(null=True)
    before_n = models.PositiveIntegerField()
    after = models.FloatField(null=True)
    after_n = models.PositiveIntegerField()
    value = models.FloatField(null=True)
    points = models.JSONField()
    record_sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["trajectory", "decision", "ordinal"], name="branch_once")]


class BranchContinuation(AppendOnlyModel):
    """One continuation. ``reward``, ``success`` None: infrastructure-invalid. ``actions``: text of each turn."""

    branch = models.ForeignKey("runs.StateBranch", models.PROTECT, related_name="continuations")
    point = models.CharField(max_length=16)
    index = models.PositiveIntegerField()
    seed = models.CharField(max_length=32)
    start_state_sha256 = models.CharField(max_length=64)
    status = models.CharField(max_length=32)
    invalid_reason = models.TextField(null=True)
    terminal = models.CharField(max_length=32, null=True)
    reward = models.FloatField(null=True)
    success = models.BooleanField(null=True)
    policy_tokens = models.PositiveBigIntegerField()
    actions = models.JSONField()
    final_state_sha256 = models.CharField(max_length=64, null=True)

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["branch", "point", "index"], name="continuation_once"),
            models.CheckConstraint(name="continuation_point_known", condition=models.Q(point__in=POINTS)),
        ]
