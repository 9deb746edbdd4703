"""Group, trajectory, turn, tool call, Observation, reward component: rows projected from group documents."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class Group(AppendOnlyModel):
    """The G trajectories of one task under one policy version, or K evaluation repeats of one task.

    ``signal``, ``mean`` and ``sigma`` (population) are None where the document has none. The capture
    file of all its turns is the blob ``capture_blob_sha256``. ``created_at`` is hashed nowhere.
    """

    uid = models.UUIDField(unique=True, editable=False)
    plan_version = models.ForeignKey("runs.PlanVersion", models.PROTECT, related_name="groups")
    run = models.ForeignKey("runs.Run", models.PROTECT, null=True, related_name="groups")
    checkpoint = models.ForeignKey("runs.Checkpoint", models.PROTECT, related_name="groups")
    purpose = models.CharField(max_length=16)
    condition = models.CharField(max_length=32)
    split = models.CharField(max_length=32)
    ordinal = models.PositiveIntegerField()
    task = models.ForeignKey("runs.Task", models.PROTECT, related_name="groups")
    failure_profile = models.CharField(max_length=64)
    identities = models.JSONField()
    policy_version = models.PositiveIntegerField()
    eligible = models.BooleanField()
    ineligible_reason = models.TextField(null=True)
    signal = models.CharField(max_length=32, null=True)
    mean = models.FloatField(null=True)
    sigma = models.FloatField(null=True)
    record_sha256 = models.CharField(max_length=64)
    capture_blob_sha256 = models.CharField(max_length=64, db_index=True)
    capture_blob_bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        indexes = [
            models.Index(fields=["run", "purpose", "ordinal"], name="group_by_run"),
            models.Index(fields=["plan_version", "purpose", "condition"], name="group_by_plan"),
            models.Index(fields=["record_sha256"], name="group_by_record"),
            models.Index(fields=["mean"], name="group_by_mean"),
        ]


class Trajectory(AppendOnlyModel):
    """One slot. All outcome columns are None for an infrastructure-invalid slot, which has no reward.

    ``advantage`` None: the group trains nothing. ``grade``: A native captures, B replayed, C imported text.
    """

    uid = models.UUIDField(unique=True, editable=False)
    group = models.ForeignKey("runs.Group", models.PROTECT, related_name="trajectories")
    slot = models.PositiveIntegerField()
    seed = models.CharField(max_length=40)
    status = models.CharField(max_length=32)
    invalid_reason = models.TextField(null=True)
    terminal = models.CharField(max_length=32, null=True)
    success = models.BooleanField(null=True)
    success_definition = models.CharField(max_length=200)
    reward_total = models.FloatField(null=True)
    advantage = models.FloatField(null=True)
    reward_version = models.CharField(max_length=100, null=True)
    gate = models.FloatField(null=True)
    finished = models.BooleanField(null=True)
    parser_valid = models.BooleanField(null=True)
    premature_finish = models.BooleanField(null=True)
    tool_depth = models.PositiveIntegerField(null=True)
    repeat_calls = models.PositiveIntegerField(null=True)
    productive_calls = models.PositiveIntegerField(null=True)
    failures_seen = models.PositiveIntegerField(null=True)
    exposed = models.BooleanField(null=True)
    recovered = models.BooleanField(null=True)
    fatal_start = models.PositiveIntegerField(null=True)
    fatal_confirmed = models.PositiveIntegerField(null=True)
    continued_after_fatal = models.BooleanField(null=True)
    unmatched_final_action = models.BooleanField(null=True)
    injections = models.JSONField()
    invariants = models.JSONField()
    generated_tokens = models.PositiveBigIntegerField()
    policy_tokens = models.PositiveBigIntegerField()
    prompt_tokens = models.PositiveBigIntegerField()
    initial_state_sha256 = models.CharField(max_length=64)
    final_state_sha256 = models.CharField(max_length=64, null=True)
    grade = models.CharField(max_length=1, default="A")

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["group", "slot"], name="trajectory_slot_unique"),
            models.CheckConstraint(name="trajectory_grade_known", condition=models.Q(grade__in=["A", "B", "C"])),
            models.CheckConstraint(
                name="trajectory_invalid_has_no_reward",
                condition=models.Q(status="valid") | models.Q(reward_total__isnull=True, advantage__isnull=True),
            ),
        ]
        indexes = [
            models.Index(fields=["fatal_start"], name="trajectory_by_fatal"),
            models.Index(fields=["fatal_confirmed", "group"], name="trajectory_by_confirmed"),
            models.Index(fields=["reward_total"], name="trajectory_by_reward"),
            models.Index(fields=["advantage"], name="trajectory_by_advantage"),
            models.Index(fields=["generated_tokens"], name="trajectory_by_tokens"),
        ]


class Turn(AppendOnlyModel):
    """One policy decision. ``offset`` and ``length`` locate its trajectory's frame in the group file."""

    trajectory = models.ForeignKey("runs.Trajectory", models.PROTECT, related_name="turns")
    decision = models.PositiveIntegerField()
    branch = models.CharField(max_length=64)
    parent_decision = models.PositiveIntegerField(null=True)
    capture_sha256 = models.CharField(max_length=64, unique=True, null=True)
    offset = models.PositiveBigIntegerField(null=True)
    length = models.PositiveBigIntegerField(null=True)
    prompt_tokens = models.PositiveIntegerField()
    generated_tokens = models.PositiveIntegerField()
    policy_tokens = models.PositiveIntegerField()
    action_kind = models.CharField(max_length=32)
    parse_error = models.TextField(null=True)
    think_text = models.TextField(null=True)
    action_text = models.TextField()
    finish = models.JSONField(null=True)
    state_before = models.CharField(max_length=64)
    state_after = models.CharField(max_length=64)
    policy_version = models.PositiveIntegerField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["trajectory", "branch", "decision"], name="turn_decision_unique")
        ]
        indexes = [
            models.Index(fields=["trajectory"], name="turn_unparsed", condition=models.Q(parse_error__isnull=False))
        ]


class ToolCall(AppendOnlyModel):
    """A parsed ToolAction. ``is_productive`` None: it was not executed."""

    turn = models.OneToOneField("runs.Turn", models.PROTECT, related_name="tool_call")
    ordinal = models.PositiveIntegerField()
    tool = models.CharField(max_length=200)
    arguments = models.JSONField()
    executed = models.BooleanField()
    backend_called = models.BooleanField()
    is_repeat = models.BooleanField()
    is_productive = models.BooleanField(null=True)

    class Meta(AppendOnlyModel.Meta):
        indexes = [models.Index(fields=["turn"], name="call_repeated", condition=models.Q(is_repeat=True))]


class Observation(AppendOnlyModel):
    """What the policy saw after a call. ``retryable`` None unless ``status`` is a failure."""

    call = models.OneToOneField("runs.ToolCall", models.PROTECT, related_name="observation")
    status = models.CharField(max_length=16)
    retryable = models.BooleanField(null=True)
    injected = models.BooleanField()
    text = models.TextField()
    facts = models.JSONField()


class RewardComponent(AppendOnlyModel):
    """One stored part of a reward. ``value`` and ``points`` None: not measured, which is no zero."""

    trajectory = models.ForeignKey("runs.Trajectory", models.PROTECT, related_name="reward_components")
    name = models.CharField(max_length=100)
    weight = models.FloatField()
    value = models.FloatField(null=True)
    points = models.FloatField(null=True)
    state = models.CharField(max_length=32)
    detail = models.JSONField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["trajectory", "name"], name="reward_component_unique")]
