"""Environment controls: rows projected from documents of kind ``controls``."""

from __future__ import annotations

from django.db import models

from workbench.contracts.controls import KINDS
from workbench.db import AppendOnlyModel


class ControlSet(AppendOnlyModel):
    """The controls of an environment version on a task set, the ``ordinal``-th time; a later one replaces none.

    ``study``: whose member asked, None from the command line without one. ``created_at`` is hashed nowhere.
    """

    uid = models.UUIDField(unique=True, editable=False)
    task_set = models.ForeignKey("runs.TaskSet", models.PROTECT, related_name="control_sets")
    study = models.ForeignKey("runs.Study", models.PROTECT, null=True, related_name="control_sets")
    environment = models.CharField(max_length=200)
    environment_version = models.CharField(max_length=100)
    code_sha256 = models.CharField(max_length=64)
    verifier = models.CharField(max_length=100)
    ordinal = models.PositiveIntegerField()
    splits = models.JSONField()
    record_sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["task_set", "ordinal"], name="control_set_once")]


class ControlSlot(AppendOnlyModel):
    """One task under one kind. ``as_expected`` None: not known. ``observed``: [{test, status, cause, detail}].

    Timings are hashed in receipts alone.
    """

    control_set = models.ForeignKey("runs.ControlSet", models.PROTECT, related_name="slots")
    task = models.ForeignKey("runs.Task", models.PROTECT, related_name="control_slots")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=32)
    split = models.CharField(max_length=32)
    expected = models.BooleanField()
    tests = models.PositiveIntegerField()
    tree_sha256 = models.CharField(max_length=64)
    complete = models.BooleanField()
    passed = models.BooleanField()
    as_expected = models.BooleanField(null=True)
    categories = models.JSONField()
    unknown = models.TextField(null=True)
    observed = models.JSONField()
    exit_code = models.IntegerField(null=True)
    signal = models.IntegerField(null=True)
    stdout_sha256 = models.CharField(max_length=64, null=True)
    stderr_sha256 = models.CharField(max_length=64, null=True)
    level = models.JSONField()
    setup_s = models.FloatField()
    run_s = models.FloatField()
    cleanup_s = models.FloatField()
    service_s = models.FloatField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["control_set", "task", "kind"], name="control_slot_once"),
            models.CheckConstraint(name="control_kind_known", condition=models.Q(kind__in=list(KINDS))),
            models.CheckConstraint(
                name="control_unknown_is_no_verdict",
                condition=models.Q(complete=True, as_expected__isnull=False)
                | models.Q(complete=False, as_expected__isnull=True),
            ),
        ]
        indexes = [models.Index(fields=["control_set", "position"], name="control_by_position")]
