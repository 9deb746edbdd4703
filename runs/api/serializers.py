"""What the API says about rows. A member that was not measured is null, which is never 0.

Floats that are not finite are {"nonfinite": "nan" | "inf" | "-inf"}; seeds and 64-bit numbers are text.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from workbench.contracts.canonical import encode_float, parse_json


class Text(s.CharField):
    """Text that is always there."""


class StrictText(s.CharField):
    """Text only: a number is no text, and is refused instead of being written out."""

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises ``ValidationError`` for any other type."""
        if not isinstance(data, str):
            raise s.ValidationError("text")
        return str(super().to_internal_value(data))


class When(s.DateTimeField):
    """ISO 8601 with zone."""


NUMBER = {
    "oneOf": [
        {"type": "number"},
        {
            "type": "object",
            "properties": {"nonfinite": {"type": "string", "enum": ["nan", "inf", "-inf"]}},
            "required": ["nonfinite"],
        },
    ]
}


@extend_schema_field(NUMBER)
class Number(s.FloatField):
    """A float; one that is not finite as {"nonfinite": …}, which JSON can carry."""

    def to_representation(self, value: Any) -> Any:
        """JSON's number or the object."""
        return encode_float(float(value))


class NumberOrNull(Number):
    """A float, null where it was not measured."""


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
        return parse_json(bytes(row.bytes)).get("body")


class StreamSerializer(s.Serializer[Any]):
    """Head of a receipt stream."""

    stream = Text()
    seq = s.IntegerField()
    sha256 = Text()


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
