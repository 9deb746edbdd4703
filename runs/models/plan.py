"""Plan: a head with its state and draft, and the frozen versions that never change."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel

_HEAVY = ("bytes", "strict_pairs", "plan__draft_text")


def heavy(path: str = "") -> tuple[str, ...]:
    """Columns of a version, and of its plan, that no list shows; ``path`` leads there, as in ``run__plan_version__``.

    A list defers them: a plan's bytes are some 100 kB, which would be read once a row.
    """
    return tuple(f"{path}{name}" for name in _HEAVY)


class Plan(models.Model):
    """Head: state and draft text. ``current_version`` is None until the first freeze."""

    uid = models.UUIDField(unique=True, editable=False)
    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="plans")
    slug = models.SlugField(max_length=100)
    state = models.CharField(max_length=16, default="draft")
    draft_text = models.TextField(blank=True, default="")
    draft_revision = models.PositiveIntegerField(default=0)
    current_version = models.ForeignKey("runs.PlanVersion", models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "slug"], name="plan_slug_unique")]

    def __str__(self) -> str:
        return self.slug


class PlanVersion(AppendOnlyModel):
    """A frozen plan: ``bytes`` are the exact RFC 8785 bytes that ``sha256`` covers.

    ``strict_pairs``: per declared pair the fields that are equal and those that differ.
    """

    uid = models.UUIDField(unique=True, editable=False)
    plan = models.ForeignKey("runs.Plan", models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)
    bytes = models.BinaryField()
    strict_pairs = models.JSONField(default=list)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["plan", "number"], name="plan_version_number_unique")]

    def __str__(self) -> str:
        return f"{self.sha256[:12]} (version {self.number})"


class PlanTransition(AppendOnlyModel):
    """One change of a plan's state."""

    plan = models.ForeignKey("runs.Plan", models.PROTECT, related_name="transitions")
    from_state = models.CharField(max_length=16)
    to_state = models.CharField(max_length=16)
    version = models.ForeignKey("runs.PlanVersion", models.PROTECT, null=True, related_name="transitions")
    reason = models.TextField(blank=True, default="")
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    at = models.DateTimeField()


class Arm(AppendOnlyModel):
    """One treatment of a plan version; ``config_bytes`` is its resolved configuration, canonical.

    ``gate`` None: the arm runs without a condition. ``seeds``: decimal strings.
    """

    uid = models.UUIDField(unique=True, editable=False)
    plan_version = models.ForeignKey("runs.PlanVersion", models.PROTECT, related_name="arms")
    key = models.CharField(max_length=100)
    title_en = models.CharField(max_length=300)
    title_zh = models.CharField(max_length=300, blank=True, default="")
    position = models.PositiveIntegerField()
    config_bytes = models.BinaryField()
    config_sha256 = models.CharField(max_length=64)
    gate = models.JSONField(null=True)
    seeds = models.JSONField(default=list)

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["plan_version", "key"], name="arm_key_unique"),
            models.UniqueConstraint(fields=["plan_version", "position"], name="arm_position_unique"),
        ]

    def __str__(self) -> str:
        return self.key


class FailureSchedule(AppendOnlyModel):
    """The frozen failure schedule of a plan version, canonical bytes."""

    uid = models.UUIDField(unique=True, editable=False)
    plan_version = models.ForeignKey("runs.PlanVersion", models.PROTECT, related_name="failure_schedules")
    sha256 = models.CharField(max_length=64)
    bytes = models.BinaryField()
