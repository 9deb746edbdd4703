"""What the API says about excerpts and figures, and what it takes. Values are exact texts; null is no 0."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from evidence.models import Excerpt, Figure, FigureVersion
from evidence.presenters.chips import shown
from runs.api.serializers import ActorRef, StrictText, Text, When

OBJECT = {"type": "object", "additionalProperties": True}


@extend_schema_field(OBJECT)
class AnyObject(s.JSONField):
    """An object whose members the action checks and names."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The object. Raises ``ValidationError`` for any other type."""
        if not isinstance(data, dict):
            raise s.ValidationError("an object")
        return data


class ExcerptSerializer(s.Serializer[Any]):
    """A place in a version of a source. ``state``: found, moved, orphan, transcribed, unavailable."""

    uid = s.UUIDField()
    key = Text()
    study = Text(source="study.slug")
    source = Text(source="version.source.path")
    reference = Text(source="version.source.reference")
    version = s.UUIDField(source="version.uid")
    version_number = s.IntegerField(source="version.number")
    sha256 = Text(source="version.sha256")
    form = Text(help_text=", ".join((Excerpt.QUOTE, Excerpt.POINTER, Excerpt.CELL)))
    selector = s.JSONField()
    kind = Text(help_text="matched in held bytes, or transcribed from a source of which only the hash is known")
    text = Text()
    language = Text()
    note = Text()
    state = Text(source="head.state")
    first_line = s.IntegerField(source="head.first_line", allow_null=True)
    last_line = s.IntegerField(source="head.last_line", allow_null=True)
    actor = ActorRef()
    at = When()


class NewExcerptBody(s.Serializer[Any]):
    """An excerpt to take, from the newest version of ``source`` or from ``version``."""

    key = StrictText(max_length=100)
    source = StrictText(max_length=500, default="", allow_blank=True, help_text="path of the source")
    version = s.UUIDField(allow_null=True, default=None)
    form = s.ChoiceField(
        choices=(Excerpt.QUOTE, Excerpt.POINTER, Excerpt.CELL),
        help_text="quote: a text; pointer: a JSON Pointer; cell: a cell of a table",
    )
    selector = AnyObject(
        default=dict,
        help_text="quote: exact, and prefix, suffix, line; pointer: pointer; cell: column, key_column, key",
    )
    text = StrictText(max_length=4000, default="", allow_blank=True, trim_whitespace=False)
    language = StrictText(max_length=16, default="", allow_blank=True)
    note = StrictText(max_length=4000, default="", allow_blank=True)


class FigureVersionSerializer(s.Serializer[Any]):
    """What a figure was bound to at one time. ``value`` null: pending or unavailable."""

    uid = s.UUIDField()
    number = s.IntegerField()
    title_en = Text()
    title_zh = Text()
    kind = Text(help_text=", ".join(FigureVersion.KINDS))
    origin = Text()
    binding = s.JSONField()
    value = s.CharField(allow_null=True, help_text="exact: a decimal number or a fraction")
    numerator = Text()
    denominator = Text()
    denominator_en = Text()
    denominator_zh = Text()
    unit = Text()
    style = Text()
    digits = s.IntegerField()
    scope_en = Text()
    scope_zh = Text()
    cutoff = s.DateField(allow_null=True)
    plan_version = s.UUIDField(source="plan_version.uid", default=None, allow_null=True)
    endpoint = Text()
    reason = Text()
    actor = ActorRef()
    at = When()


class FigureSerializer(s.Serializer[Any]):
    """A displayed value. ``shown``: as pages write it; an em dash where it is pending."""

    uid = s.UUIDField()
    key = Text()
    study = Text(source="study.slug")
    state = Text(help_text=", ".join(Figure.STATES))
    stale = s.BooleanField()
    checked_at = s.DateTimeField(allow_null=True)
    shown = s.SerializerMethodField()
    current = FigureVersionSerializer()

    @extend_schema_field({"type": "string"})
    def get_shown(self, row: Figure) -> str:
        """The value as pages show it."""
        return shown(row.current, row.state)


class FigureDetail(FigureSerializer):
    """The same with all its versions, oldest first; old values stay readable."""

    versions = s.SerializerMethodField()

    @extend_schema_field(FigureVersionSerializer(many=True))
    def get_versions(self, row: Figure) -> list[dict[str, Any]]:
        """Every version."""
        rows = row.versions.select_related("plan_version", "actor").order_by("number")
        return [dict(FigureVersionSerializer(version).data) for version in rows]


class BindingBody(s.Serializer[Any]):
    """What a value is read from and how it is shown; the value itself is never given."""

    key = StrictText(max_length=100)
    binding = AnyObject()
    kind = s.ChoiceField(choices=FigureVersion.KINDS)
    origin = s.ChoiceField(choices=FigureVersion.ORIGINS, default="native")
    style = s.ChoiceField(choices=FigureVersion.STYLES, default="plain")
    digits = s.IntegerField(min_value=0, max_value=12, default=0)
    unit = StrictText(max_length=64, default="", allow_blank=True)
    plan_version = s.UUIDField(allow_null=True, default=None)


class BindBody(BindingBody):
    """A figure to bind, or to bind anew with a reason."""

    title_en = StrictText(max_length=300, default="", allow_blank=True)
    title_zh = StrictText(max_length=300, default="", allow_blank=True)
    denominator_en = StrictText(max_length=300, default="", allow_blank=True)
    denominator_zh = StrictText(max_length=300, default="", allow_blank=True)
    scope_en = StrictText(max_length=4000, default="", allow_blank=True)
    scope_zh = StrictText(max_length=4000, default="", allow_blank=True)
    cutoff = s.DateField(allow_null=True, default=None)
    endpoint = StrictText(max_length=100, default="", allow_blank=True)
    reason = StrictText(max_length=4000, default="", allow_blank=True)


class BindingChecked(s.Serializer[Any]):
    """What a binding gives now. ``trouble`` says what weakens it."""

    value = s.CharField(allow_null=True)
    shown = s.CharField()
    unit = s.CharField()
    numerator = s.CharField()
    denominator = s.CharField()
    state = s.CharField()
    trouble = s.CharField()


class RecomputedSerializer(s.Serializer[Any]):
    """A figure computed again. ``value`` null: nothing can be computed now; ``stored`` is what its version says."""

    state = s.CharField()
    value = s.CharField(allow_null=True)
    stored = s.CharField(allow_null=True)
    trouble = s.CharField()


class DerivationBody(s.Serializer[Any]):
    """An expression, and for each of its names the key of a figure."""

    expression = StrictText(max_length=2000)
    figures = s.DictField(child=StrictText(max_length=100), default=dict)
