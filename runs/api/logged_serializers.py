"""What the API says about logged runs, and what it takes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from runs.actions.tracking import KEY_LENGTH, NAME_LENGTH, REASON_LENGTH
from runs.api.serializers import NUMBER, Number, NumberOrNull, StrictText, Text, When
from runs.models import TrackedRun
from workbench.contracts.canonical import decode_float

POINTS_MOST = 5000
BOUND = 2**53 - 1


class LoggedRunSerializer(s.Serializer[Any]):
    """A run from elsewhere. ``origin`` tracked or imported; ``linked_plan`` null: exploratory."""

    uid = s.UUIDField(source="run.uid")
    id = Text(source="external_id", help_text="the run_id of the MLflow-compatible endpoint")
    name = Text()
    study = Text(source="study.slug")
    origin = Text(source="run.origin")
    framework = Text(help_text="whose metric names it uses; empty: unknown")
    status = Text(help_text=", ".join(TrackedRun.STATES))
    deleted = s.BooleanField()
    partial = s.BooleanField(help_text="an import that could not read everything")
    segment = s.IntegerField(help_text="attempts so far, from 0")
    linked_plan = s.UUIDField(source="linked_plan.uid", default=None, allow_null=True)
    started_at = When()
    ended_at = s.DateTimeField(allow_null=True)
    updated_at = When()


class LoggedRunDetail(LoggedRunSerializer):
    """The same with parameters and standing tags."""

    parameters = s.SerializerMethodField()
    tags = s.SerializerMethodField()

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
    def get_parameters(self, row: TrackedRun) -> dict[str, str]:
        """By key."""
        return dict(row.run.parameters.order_by("key").values_list("key", "value"))

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
    def get_tags(self, row: TrackedRun) -> dict[str, str]:
        """The newest of each key."""
        from runs.actions.tracking import tags_of

        return tags_of(row.run)


class NewestSerializer(s.Serializer[Any]):
    """Newest point of a series. ``value`` null never occurs: a number that is not finite says which."""

    name = Text()
    segment = Text(source="series.segment", help_text="the attempt")
    step = s.IntegerField()
    time_ms = s.IntegerField()
    value = s.SerializerMethodField()

    @extend_schema_field(NUMBER)
    def get_value(self, row: Any) -> Any:
        """A number, or the object of one that is not finite."""
        return {"nonfinite": row.nonfinite} if row.value is None else row.value


class HistorySerializer(s.Serializer[Any]):
    """Every point of a name in order of time, as columns; attempts follow one another."""

    name = s.CharField()
    points = s.IntegerField()
    data_sha256 = s.CharField(help_text="digest of the chunks and batches behind the points")
    step = s.ListField(child=s.IntegerField())
    time_ms = s.ListField(child=s.IntegerField())
    value = s.ListField(child=Number())


class ChartSerializer(s.Serializer[Any]):
    """What a chart draws: ``n_shown`` of ``n_stored`` points; extremes and ends of the window are among them."""

    name = s.CharField()
    n_stored = s.IntegerField()
    n_shown = s.IntegerField()
    sampler = s.CharField(help_text="exact, or m4")
    data_sha256 = s.CharField()
    step = s.ListField(child=s.IntegerField())
    time_ms = s.ListField(child=s.IntegerField())
    value = s.ListField(child=NumberOrNull())


class Whole(s.IntegerField):
    """A whole number that JSON carries exactly; neither a text nor a fraction."""

    def to_internal_value(self, data: Any) -> int:
        """The number. Raises ``ValidationError``."""
        if isinstance(data, bool) or not isinstance(data, int) or abs(data) > BOUND:
            raise s.ValidationError("a whole number within 2**53 - 1")
        return data


@extend_schema_field(NUMBER)
class Value(s.Field[Any, Any, Any, Any]):
    """A number, or {"nonfinite": …}."""

    def to_internal_value(self, data: Any) -> float:
        """The number. Raises ``ValidationError``."""
        if isinstance(data, bool | str) or data is None:
            raise s.ValidationError("a number, or an object with nonfinite")
        try:
            return float(decode_float(data))  # type: ignore[arg-type]
        except (ValueError, TypeError, OverflowError) as error:
            raise s.ValidationError("a number, or an object with nonfinite: nan, inf or -inf") from error

    def to_representation(self, value: Any) -> Any:
        """Never read back."""
        return value


class PointBody(s.Serializer[Any]):
    """One point."""

    name = StrictText(max_length=KEY_LENGTH, trim_whitespace=False)
    value = Value()
    step = Whole()
    time_ms = Whole(help_text="milliseconds since 1970")


class LogBody(s.Serializer[Any]):
    """What is stored together or not at all. A tag of null is taken away."""

    points = s.ListField(child=PointBody(), default=list, max_length=POINTS_MOST)
    parameters = s.DictField(child=StrictText(allow_blank=True, trim_whitespace=False), default=dict)
    tags = s.DictField(child=StrictText(allow_blank=True, allow_null=True, trim_whitespace=False), default=dict)


class LoggedSerializer(s.Serializer[Any]):
    """What a request did: ``stored`` now; ``repeated`` points belong to a batch that was stored before."""

    stored = s.IntegerField()
    repeated = s.IntegerField()
    parameters = s.IntegerField(help_text="new ones")
    tags = s.IntegerField(help_text="changed ones")


class NewLoggedRunBody(s.Serializer[Any]):
    """A run to log. The same ``key`` in a study names the same run, so a repeat finds it."""

    name = StrictText(max_length=NAME_LENGTH, allow_blank=True, default="")
    framework = StrictText(max_length=32, allow_blank=True, default="")
    key = StrictText(max_length=200, allow_null=True, default=None)
    started_at = s.DateTimeField(allow_null=True, default=None)
    tags = s.DictField(child=StrictText(allow_blank=True, trim_whitespace=False), default=dict)


class StatusBody(s.Serializer[Any]):
    """A status to move to."""

    status = s.ChoiceField(choices=TrackedRun.STATES)
    ended_at = s.DateTimeField(allow_null=True, default=None)
    reason = StrictText(max_length=REASON_LENGTH, allow_blank=True, default="")


class LinkBody(s.Serializer[Any]):
    """A frozen plan version of the same study."""

    plan_version = s.UUIDField()
    reason = StrictText(max_length=REASON_LENGTH)
