"""Counterfactual trials: rows projected from documents of kind ``trials``."""

from __future__ import annotations

from django.db import models

from workbench.contracts.trials import KINDS, STATUSES
from workbench.db import AppendOnlyModel


class TrialSet(AppendOnlyModel):
    """The trials of one group. ``run`` None: preflight groups of the parent. ``mode``: execute | select.

    ``unavailable``: why nothing of the group could be tried; None otherwise. ``snapshots_sha256`` names the blob of
    trees and contents, None where no tree was rebuilt. ``created_at`` is hashed nowhere.
    """

    uid = models.UUIDField(unique=True, editable=False)
    group = models.OneToOneField("runs.Group", models.PROTECT, related_name="trial_set")
    run = models.ForeignKey("runs.Run", models.PROTECT, null=True, related_name="trial_sets")
    plan_version = models.ForeignKey("runs.PlanVersion", models.PROTECT, related_name="trial_sets")
    purpose = models.CharField(max_length=16)
    ordinal = models.PositiveIntegerField()
    verifier = models.CharField(max_length=100)
    seed = models.CharField(max_length=32)
    mode = models.CharField(max_length=16)
    replays = models.PositiveIntegerField()
    repeats = models.PositiveIntegerField()
    fail_to_pass = models.JSONField()
    pass_to_pass = models.JSONField()
    snapshots_sha256 = models.CharField(max_length=64, null=True)
    unavailable = models.TextField(null=True)
    record_sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        indexes = [
            models.Index(fields=["run", "ordinal"], name="trial_set_by_run"),
            models.Index(fields=["plan_version", "purpose"], name="trial_set_by_plan"),
        ]


class Intervention(AppendOnlyModel):
    """The one intervention of a trajectory, or why there is none. ``difference`` None unless ``status`` is available.

    ``blocks``: [{decision, paths, before, after, eligible, reason}]. ``selected``: decision of the chosen block.
    """

    trial_set = models.ForeignKey("runs.TrialSet", models.PROTECT, related_name="interventions")
    trajectory = models.OneToOneField("runs.Trajectory", models.PROTECT, related_name="intervention")
    slot = models.PositiveIntegerField()
    status = models.CharField(max_length=32)
    detail = models.TextField(null=True)
    blocks = models.JSONField()
    eligible_blocks = models.PositiveIntegerField()
    selected = models.PositiveIntegerField(null=True)
    policy_tokens = models.PositiveBigIntegerField()
    selected_tokens = models.PositiveBigIntegerField(null=True)
    final_tree_sha256 = models.CharField(max_length=64, null=True)
    without_tree_sha256 = models.CharField(max_length=64, null=True)
    final_paths = models.PositiveIntegerField(null=True)
    touched_share = models.FloatField(null=True)
    is_empty_patch = models.BooleanField(null=True)
    original_utility = models.FloatField(null=True)
    without_utility = models.FloatField(null=True)
    difference = models.FloatField(null=True)
    replays_agree = models.PositiveIntegerField()
    replays = models.PositiveIntegerField()
    repeats_agree = models.PositiveIntegerField()
    repeats = models.PositiveIntegerField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.CheckConstraint(name="intervention_status_known", condition=models.Q(status__in=STATUSES)),
            models.CheckConstraint(
                name="intervention_difference_where_available",
                condition=models.Q(status="available", difference__isnull=False)
                | (~models.Q(status="available") & models.Q(difference__isnull=True)),
            ),
        ]
        indexes = [
            models.Index(fields=["trial_set", "status"], name="intervention_by_status"),
            models.Index(fields=["difference"], name="intervention_by_difference"),
        ]


class Trial(AppendOnlyModel):
    """One verdict on one tree. Timings None: nothing was executed (``original``). ``utility`` None: unknown.

    ``observed``: [{test, status, cause, detail}]. ``service_s``: set-up, verification and clean-up; waiting is
    ``queue_s`` alone. Timings are hashed nowhere.
    """

    uid = models.UUIDField(unique=True, editable=False)
    trial_set = models.ForeignKey("runs.TrialSet", models.PROTECT, related_name="trials")
    trajectory = models.ForeignKey("runs.Trajectory", models.PROTECT, related_name="trials")
    kind = models.CharField(max_length=32)
    repeat = models.PositiveIntegerField()
    tree_sha256 = models.CharField(max_length=64)
    verifier = models.CharField(max_length=100)
    complete = models.BooleanField()
    utility = models.FloatField(null=True)
    success = models.BooleanField(null=True)
    unknown = models.TextField(null=True)
    observed = models.JSONField()
    exit_code = models.IntegerField(null=True)
    signal = models.IntegerField(null=True)
    stdout_sha256 = models.CharField(max_length=64, null=True)
    stderr_sha256 = models.CharField(max_length=64, null=True)
    level = models.JSONField()
    repeated = models.JSONField()
    queue_s = models.FloatField(null=True)
    setup_s = models.FloatField(null=True)
    run_s = models.FloatField(null=True)
    cleanup_s = models.FloatField(null=True)
    service_s = models.FloatField(null=True)

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["trajectory", "kind", "repeat"], name="trial_unique"),
            models.CheckConstraint(name="trial_kind_known", condition=models.Q(kind__in=KINDS)),
            models.CheckConstraint(
                name="trial_unknown_has_no_utility",
                condition=models.Q(complete=True, utility__isnull=False)
                | models.Q(complete=False, utility__isnull=True),
            ),
        ]
        indexes = [
            models.Index(fields=["trial_set", "kind"], name="trial_by_kind"),
            models.Index(fields=["tree_sha256"], name="trial_by_tree"),
        ]
