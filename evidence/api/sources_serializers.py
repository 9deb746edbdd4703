"""What the API says about sources, and what it takes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers as s

from evidence.ingest.names import PATH_MOST
from evidence.models import Source
from runs.api.serializers import StrictText, Text, When


class SourceVersionSerializer(s.Serializer[Any]):
    """One version. ``size`` null: not recorded; ``held`` false: a hash that was recorded elsewhere."""

    uid = s.UUIDField()
    number = s.IntegerField()
    sha256 = Text()
    size = s.IntegerField(allow_null=True)
    media_type = Text()
    held = s.BooleanField()
    captured_at = When()
    cutoff = s.DateField(allow_null=True, help_text="the day up to which it knows anything")
    commit = Text(help_text="full id of the git commit; empty: not from git")
    note = Text()
    reason = Text(help_text="why it replaces the version before; empty for the first")
    actor = Text(source="actor.name")
    at = When()


class SourceSerializer(s.Serializer[Any]):
    """A source with its newest version. ``state``: of that version's bytes; older versions are superseded."""

    uid = s.UUIDField()
    study = Text(source="study.slug")
    path = Text()
    reference = Text(help_text="short name on pages, such as R1; empty: none")
    title_en = Text()
    title_zh = Text()
    form = Text(help_text=", ".join(Source.FORMS))
    origin = Text(help_text=", ".join(Source.ORIGINS))
    state = Text(help_text=", ".join(Source.STATES))
    checked_at = s.DateTimeField(allow_null=True)
    created_at = When()
    current = SourceVersionSerializer()


class DifferentValueSerializer(s.Serializer[Any]):
    """A value at a pointer; null on the side that does not have it."""

    pointer = s.CharField()
    before = s.CharField(allow_null=True)
    after = s.CharField(allow_null=True)


class DifferentLineSerializer(s.Serializer[Any]):
    """``kind``: same, removed, added, or skipped, whose text is the number of lines."""

    kind = s.CharField()
    before = s.IntegerField(allow_null=True)
    after = s.IntegerField(allow_null=True)
    text = s.CharField()


@extend_schema_serializer(component_name="SourceDifference")
class DifferenceSerializer(s.Serializer[Any]):
    """What differs between two versions. ``trouble``: why lines could not be compared; empty: they were."""

    before = SourceVersionSerializer()
    after = SourceVersionSerializer()
    equal = s.BooleanField(help_text="the same hash")
    added = s.IntegerField()
    removed = s.IntegerField()
    values = DifferentValueSerializer(many=True)
    more = s.IntegerField(help_text="values that differ and are not listed")
    lines = DifferentLineSerializer(many=True)
    trouble = s.CharField()


class NewSourceBody(s.Serializer[Any]):
    """A source, or the next version of the one at ``path``; ``reason`` is needed where its bytes differ.

    ``data_base64`` null: only its ``sha256`` is recorded and the source is claimed. As multipart/form-data the part
    ``file`` takes the place of ``data_base64``; its file name is not used.
    """

    path = StrictText(max_length=PATH_MOST)
    data_base64 = StrictText(default=None, allow_null=True, allow_blank=True, trim_whitespace=False)
    sha256 = StrictText(default="", allow_blank=True, max_length=64)
    size = s.IntegerField(default=None, allow_null=True, min_value=0, max_value=2**53 - 1)
    form = StrictText(default="", allow_blank=True, max_length=16)
    media_type = StrictText(default="", allow_blank=True, max_length=100)
    reference = StrictText(default="", allow_blank=True, max_length=32)
    title_en = StrictText(default="", allow_blank=True, max_length=300)
    title_zh = StrictText(default="", allow_blank=True, max_length=300)
    cutoff = s.DateField(default=None, allow_null=True)
    captured_at = s.DateTimeField(default=None, allow_null=True)
    note = StrictText(default="", allow_blank=True, max_length=4000)
    reason = StrictText(default="", allow_blank=True, max_length=4000)


@extend_schema_serializer(component_name="SourceCheckBody")
class CheckBody(s.Serializer[Any]):
    """``version`` null: the newest."""

    version = s.IntegerField(default=None, allow_null=True, min_value=1, max_value=2**31)


@extend_schema_serializer(component_name="SourceChecked")
class CheckedSerializer(s.Serializer[Any]):
    """What the check found."""

    version = s.IntegerField()
    state = s.CharField(help_text=", ".join(Source.STATES))
    found_sha256 = s.CharField(help_text="hash of what was found; empty: no bytes")
    note = s.CharField()
    source = SourceSerializer()
