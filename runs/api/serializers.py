"""What the API says about rows. A member that was not measured is null, which is never 0.

Floats that are not finite are {"nonfinite": "nan" | "inf" | "-inf"}; seeds and 64-bit numbers are text.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s

from runs.models import Checkpoint, Tombstone
from runs.storage import blob_store


class Text(s.CharField):
    """Text that is always there."""


class When(s.DateTimeField):
    """ISO 8601 with zone."""


class ProblemEntry(s.Serializer[Any]):
    """One fault."""

    field = s.CharField(help_text="dotted path of the field, header or parameter")
    got = s.CharField()
    expected = s.CharField()

    def get_fields(self) -> dict[str, Any]:
        """``field`` is a name that the base class has too."""
        return {"field": s.CharField(), "got": s.CharField(), "expected": s.CharField()}


class ProblemSerializer(s.Serializer[Any]):
    """RFC 9457 problem."""

    type = s.CharField()
    title = s.CharField()
    status = s.IntegerField()
    detail = s.CharField()

    def get_fields(self) -> dict[str, Any]:
        """``errors`` is a name that the base class has too."""
        return {**super().get_fields(), "errors": ProblemEntry(many=True)}


class ActorRef(s.Serializer[Any]):
    """Who did it."""

    uid = s.UUIDField()
    kind = Text()
    name = Text()


class StudySerializer(s.Serializer[Any]):
    """A line of research."""

    uid = s.UUIDField()
    slug = Text()
    title_en = Text()
    title_zh = Text()
    summary_en = Text()
    summary_zh = Text()
    visibility = Text(help_text="private, internal or public")
    created_at = When()


class PlanSerializer(s.Serializer[Any]):
    """A plan's head. ``draft_text`` is what was last saved; ``sha256`` null: not frozen yet."""

    uid = s.UUIDField()
    study = Text(source="study.slug")
    slug = Text()
    state = Text(help_text="draft, frozen or superseded")
    revision = s.IntegerField(source="draft_revision", help_text="of the draft; its ETag")
    draft_text = Text()
    sha256 = s.CharField(source="current_version.sha256", default=None, allow_null=True)
    version = s.UUIDField(source="current_version.uid", default=None, allow_null=True)
    frozen_at = s.DateTimeField(source="current_version.created_at", default=None, allow_null=True)
    execution = s.SerializerMethodField()

    def get_execution(self, row: Any) -> str | None:
        """Uid of its execution; null: not started."""
        execution = getattr(row.current_version, "execution", None) if row.current_version else None
        return str(execution.uid) if execution is not None else None


class ExecutionSerializer(s.Serializer[Any]):
    """How far a frozen plan is."""

    uid = s.UUIDField()
    study = Text(source="plan_version.plan.study.slug")
    plan = s.UUIDField(source="plan_version.plan.uid")
    plan_slug = Text(source="plan_version.plan.slug")
    plan_sha256 = Text(source="plan_version.sha256")
    state = Text()
    phase = Text()
    reason = Text()
    updated_at = When()


class RunSerializer(s.Serializer[Any]):
    """One arm at one seed. ``arm`` null: no native run."""

    uid = s.UUIDField()
    name = Text()
    study = s.CharField(source="plan_version.plan.study.slug", default=None, allow_null=True)
    plan = s.UUIDField(source="plan_version.plan.uid", default=None, allow_null=True)
    plan_sha256 = s.CharField(source="plan_version.sha256", default=None, allow_null=True)
    execution = s.UUIDField(source="execution.uid", default=None, allow_null=True)
    arm = s.CharField(source="arm.key", default=None, allow_null=True)
    seed = Text()
    origin = Text()
    state = Text(source="head.state")
    phase = Text(source="head.phase")
    reason = Text(source="head.reason")
    batches = s.IntegerField(source="head.batch")
    steps = s.IntegerField(source="head.steps")
    policy_version = s.IntegerField(source="head.policy_version")
    checkpoint_sha256 = s.CharField(source="head.checkpoint.sha256", default=None, allow_null=True)
    trajectories = s.IntegerField(source="head.trajectories")
    generated_tokens = s.IntegerField(source="head.generated_tokens")
    runtime = Text(source="head.runtime")
    created_at = When()
    updated_at = When(source="head.updated_at")


class JobSerializer(s.Serializer[Any]):
    """A unit of work. ``failed``: the experiment's; ``errored``: ours."""

    uid = s.UUIDField()
    key = Text()
    kind = Text()
    queue = Text()
    state = Text()
    attempt = s.IntegerField()
    max_attempts = s.IntegerField()
    run = s.UUIDField(source="run.uid", default=None, allow_null=True)
    execution = s.UUIDField(source="execution.uid", default=None, allow_null=True)
    spec = s.JSONField()
    progress = s.JSONField()
    result = s.JSONField(allow_null=True)
    error = Text()
    created_at = When()
    finished_at = s.DateTimeField(allow_null=True)


class GroupSerializer(s.Serializer[Any]):
    """Trajectories of one task under one policy version. ``sigma`` is the population value."""

    uid = s.UUIDField()
    run = s.UUIDField(source="run.uid", default=None, allow_null=True)
    purpose = Text()
    condition = Text()
    split = Text()
    ordinal = s.IntegerField()
    task = s.UUIDField(source="task.uid")
    task_key = Text(source="task.key")
    failure_profile = Text()
    policy_version = s.IntegerField()
    eligible = s.BooleanField()
    ineligible_reason = s.CharField(allow_null=True)
    signal = s.CharField(allow_null=True)
    mean = s.FloatField(allow_null=True)
    sigma = s.FloatField(allow_null=True)
    identities = s.JSONField()
    record_sha256 = Text()
    capture_blob_sha256 = Text()
    capture_blob_bytes = s.IntegerField()


class TrajectorySerializer(s.Serializer[Any]):
    """One slot of a group. Outcome members are null where the slot is infrastructure-invalid."""

    uid = s.UUIDField()
    group = s.UUIDField(source="group.uid")
    run = s.UUIDField(source="group.run.uid", default=None, allow_null=True)
    task_key = Text(source="group.task.key")
    purpose = Text(source="group.purpose")
    condition = Text(source="group.condition")
    slot = s.IntegerField()
    seed = Text()
    status = Text()
    invalid_reason = s.CharField(allow_null=True)
    terminal = s.CharField(allow_null=True)
    success = s.BooleanField(allow_null=True)
    reward = s.FloatField(source="reward_total", allow_null=True)
    advantage = s.FloatField(allow_null=True)
    finished = s.BooleanField(allow_null=True)
    exposed = s.BooleanField(allow_null=True)
    recovered = s.BooleanField(allow_null=True)
    fatal_start = s.IntegerField(allow_null=True)
    fatal_confirmed = s.IntegerField(allow_null=True)
    tool_depth = s.IntegerField(allow_null=True)
    repeat_calls = s.IntegerField(allow_null=True)
    generated_tokens = s.IntegerField()
    policy_tokens = s.IntegerField()
    prompt_tokens = s.IntegerField()
    grade = Text()


class ComponentSerializer(s.Serializer[Any]):
    """One stored part of a reward."""

    name = Text()
    weight = s.FloatField()
    value = s.FloatField(allow_null=True)
    points = s.FloatField(allow_null=True)
    state = Text()
    detail = s.JSONField()


class TurnSerializer(s.Serializer[Any]):
    """One decision with its call and Observation."""

    decision = s.IntegerField()
    branch = Text()
    capture_sha256 = s.CharField(allow_null=True)
    prompt_tokens = s.IntegerField()
    generated_tokens = s.IntegerField()
    policy_tokens = s.IntegerField()
    action_kind = Text()
    parse_error = s.CharField(allow_null=True)
    think_text = s.CharField(allow_null=True)
    action_text = Text()
    finish = s.JSONField(allow_null=True)
    state_before = Text()
    state_after = Text()
    policy_version = s.IntegerField()
    call = s.SerializerMethodField()

    def get_call(self, row: Any) -> dict[str, Any] | None:
        """Tool call and Observation; null where the turn is no ToolAction."""
        call = getattr(row, "tool_call", None)
        if call is None:
            return None
        seen = getattr(call, "observation", None)
        return {
            "tool": call.tool,
            "arguments": call.arguments,
            "executed": call.executed,
            "backend_called": call.backend_called,
            "is_repeat": call.is_repeat,
            "is_productive": call.is_productive,
            "observation": None
            if seen is None
            else {
                "status": seen.status,
                "retryable": seen.retryable,
                "injected": seen.injected,
                "text": seen.text,
                "facts": seen.facts,
            },
        }


class TrajectoryDetail(TrajectorySerializer):
    """A trajectory with everything that was stored of it but its tokens."""

    success_definition = Text()
    initial_state_sha256 = Text()
    final_state_sha256 = s.CharField(allow_null=True)
    injections = s.JSONField()
    invariants = s.JSONField()
    reward_components = s.SerializerMethodField()
    turns = s.SerializerMethodField()

    def get_reward_components(self, row: Any) -> list[dict[str, Any]]:
        """Stored components, by name."""
        rows = row.reward_components.order_by("name")
        return [dict(ComponentSerializer().to_representation(item)) for item in rows]

    def get_turns(self, row: Any) -> list[dict[str, Any]]:
        """Decisions in order."""
        rows = row.turns.select_related("tool_call__observation").order_by("branch", "decision")
        return [dict(TurnSerializer().to_representation(item)) for item in rows]


class CaptureSerializer(s.Serializer[Any]):
    """A model call as it was captured: where its bytes lie and how many tokens it holds."""

    capture_sha256 = Text()
    trajectory = s.UUIDField(source="trajectory.uid")
    group = s.UUIDField(source="trajectory.group.uid")
    decision = s.IntegerField()
    branch = Text()
    prompt_tokens = s.IntegerField()
    generated_tokens = s.IntegerField()
    policy_tokens = s.IntegerField()
    policy_version = s.IntegerField()
    blob_sha256 = Text(source="trajectory.group.capture_blob_sha256")
    offset = s.IntegerField()
    length = s.IntegerField()


class CheckpointSerializer(s.Serializer[Any]):
    """A policy by hash. ``held`` false with ``tombstone`` null: the store has lost it."""

    uid = s.UUIDField()
    sha256 = Text()
    run = s.UUIDField(source="run.uid", default=None, allow_null=True)
    parent = s.UUIDField(source="parent.uid", default=None, allow_null=True)
    policy_version = s.IntegerField()
    kind = Text()
    base_model_sha256 = Text()
    tokenizer_sha256 = Text()
    adaptation = s.JSONField()
    bytes = s.IntegerField(source="blob_bytes")
    created_at = When()
    held = s.SerializerMethodField()
    tombstone = s.SerializerMethodField()

    def get_held(self, row: Checkpoint) -> bool:
        """Whether the store holds its bytes now."""
        return blob_store().exists(row.sha256)

    def get_tombstone(self, row: Checkpoint) -> str | None:
        """Why retention removed its bytes; null: it did not."""
        return Tombstone.objects.filter(sha256=row.sha256).values_list("reason", flat=True).first()


class ReceiptSerializer(s.Serializer[Any]):
    """One link of a chain. ``body`` is what its canonical bytes say."""

    stream = Text()
    seq = s.IntegerField()
    sha256 = Text()
    prev = Text()
    kind = Text()
    subject = s.UUIDField(source="subject_uid", allow_null=True)
    actor = ActorRef()
    at = When()
    body = s.SerializerMethodField()

    def get_body(self, row: Any) -> Any:
        """Parsed from the stored bytes."""
        from workbench.contracts.canonical import parse_json

        return parse_json(bytes(row.bytes))["body"]


class StreamSerializer(s.Serializer[Any]):
    """Head of a receipt stream."""

    stream = Text()
    seq = s.IntegerField()
    sha256 = Text()


class EvaluationSerializer(s.Serializer[Any]):
    """One evaluation item: (checkpoint, condition, split, task, repeat)."""

    uid = s.UUIDField()
    plan = s.UUIDField(source="plan_version.plan.uid")
    run = s.UUIDField(source="run.uid", default=None, allow_null=True)
    checkpoint_sha256 = Text(source="checkpoint.sha256")
    condition = Text()
    split = Text()
    task_key = Text(source="task.key")
    repeat = s.IntegerField()
    trajectory = s.UUIDField(source="trajectory.uid")
    status = Text(source="trajectory.status")
    success = s.BooleanField(source="trajectory.success", allow_null=True)
    reward = s.FloatField(source="trajectory.reward_total", allow_null=True)


class TaskSetSerializer(s.Serializer[Any]):
    """The tasks of one environment version."""

    uid = s.UUIDField()
    environment = Text()
    version = Text()
    sha256 = Text()
    count = s.IntegerField()


class TaskSerializer(s.Serializer[Any]):
    """One problem. Its hidden reference is in the task's own address, for those who may see it."""

    uid = s.UUIDField()
    key = Text()
    split = Text()
    family = Text()
    prompt = Text()
    task_sha256 = Text()
    initial_state = s.JSONField()
    tools = s.JSONField()


class TokenSerializer(s.Serializer[Any]):
    """An API token without its secret."""

    prefix = Text()
    name = Text()
    scopes = s.JSONField()
    created_at = When()
    expires_at = s.DateTimeField(allow_null=True)
    revoked_at = s.DateTimeField(allow_null=True)
    last_used_at = s.DateTimeField(allow_null=True)
