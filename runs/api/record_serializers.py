"""What the API says about what was collected: groups, trajectories, captures, checkpoints, evaluation items."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from runs.actions.tombstones import standing_tombstones
from runs.api.serializers import Number, NumberOrNull, Text, When
from runs.models import Checkpoint
from runs.storage import blob_store


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
    mean = NumberOrNull(allow_null=True)
    sigma = NumberOrNull(allow_null=True)
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
    reward = NumberOrNull(source="reward_total", allow_null=True)
    advantage = NumberOrNull(allow_null=True)
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
    weight = Number()
    value = NumberOrNull(allow_null=True)
    points = NumberOrNull(allow_null=True)
    state = Text()
    detail = s.JSONField()


class ObservationSerializer(s.Serializer[Any]):
    """What the policy saw after its call."""

    status = Text()
    retryable = s.BooleanField(allow_null=True)
    injected = s.BooleanField()
    text = Text()
    facts = s.JSONField()


class CallSerializer(s.Serializer[Any]):
    """A tool call. ``observation`` null: the last action of a spent budget, which was never executed."""

    tool = Text()
    arguments = s.JSONField()
    executed = s.BooleanField()
    backend_called = s.BooleanField()
    is_repeat = s.BooleanField(allow_null=True)
    is_productive = s.BooleanField(allow_null=True)
    observation = ObservationSerializer(allow_null=True)


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

    @extend_schema_field(CallSerializer(allow_null=True))
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

    @extend_schema_field(ComponentSerializer(many=True))
    def get_reward_components(self, row: Any) -> list[dict[str, Any]]:
        """Stored components, by name."""
        rows = row.reward_components.order_by("name")
        return [dict(ComponentSerializer().to_representation(item)) for item in rows]

    @extend_schema_field(TurnSerializer(many=True))
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
        reasons: dict[str, str] | None = self.context.get("tombstones")
        if reasons is None:
            found = standing_tombstones([row.sha256]).get(row.sha256)
            return found.reason if found is not None else None
        return reasons.get(row.sha256)

    @classmethod
    def context_of(cls, rows: list[Any]) -> dict[str, Any]:
        """Standing tombstones of a whole page at once."""
        standing = standing_tombstones([row.sha256 for row in rows])
        return {"tombstones": {sha256: found.reason for sha256, found in standing.items()}}


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
    reward = NumberOrNull(source="trajectory.reward_total", allow_null=True)
