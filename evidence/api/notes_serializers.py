"""What the API says about notes, and what it takes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers as s

from evidence.actions.notes import DRAFT, RESULTS, STATUSES
from evidence.models import NotesVersion
from evidence.notes import read
from runs.api.serializers import ActorRef, StrictText, Text, When


@extend_schema_field({"type": "object", "additionalProperties": True})
class DocumentField(s.JSONField):
    """A notes document; the action checks its members and names every fault."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The object. Raises ``ValidationError`` for any other type."""
        if not isinstance(data, dict):
            raise s.ValidationError("a notes document")
        return data


class NotesSerializer(s.Serializer[Any]):
    """A version of a study's notes, without its document."""

    uid = s.UUIDField()
    study = Text(source="study.slug")
    number = s.IntegerField()
    sha256 = Text(source="document_sha256")
    page_date = s.DateField()
    cutoff = s.DateField(allow_null=True)
    imported = s.BooleanField()
    reason = Text()
    actor = ActorRef()
    at = When()


class NotesDetail(NotesSerializer):
    """A version with its document, as it was stored."""

    document = s.SerializerMethodField()

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_document(self, row: NotesVersion) -> dict[str, Any]:
        """The canonical document."""
        return read.document_of(row)


class NotesBody(s.Serializer[Any]):
    """A document to save as the next version. ``base``: the number of the version that it was made from."""

    document = DocumentField()
    reason = StrictText(max_length=2000, default="", allow_blank=True)
    base = s.IntegerField(allow_null=True, default=None, min_value=0)


@extend_schema_serializer(component_name="NotesCheckBody")
class CheckBody(s.Serializer[Any]):
    """A document to check; nothing is stored."""

    document = DocumentField()


@extend_schema_serializer(component_name="NotesFault")
class FaultSerializer(s.Serializer[Any]):
    """One thing that a document may not hold."""

    field = Text()
    got = Text()
    expected = Text()


class CheckedNotes(s.Serializer[Any]):
    """Every fault of a document."""

    valid = s.BooleanField()
    problems = FaultSerializer(many=True)


class ContractBody(s.Serializer[Any]):
    """An acceptance contract. ``results`` binds the hash of a manuscript that is a source of the study."""

    status = s.ChoiceField(choices=STATUSES)
    assurance = s.ChoiceField(choices=(DRAFT, RESULTS))
    manuscript_sha256 = StrictText(max_length=64, default="", allow_blank=True)
    text_en = StrictText(max_length=4000, default="", allow_blank=True)
    text_zh = StrictText(max_length=4000, default="", allow_blank=True)


class ContractSerializer(s.Serializer[Any]):
    """What was accepted, and as what; a draft is no readiness."""

    uid = s.UUIDField()
    status = Text()
    assurance = Text()
    manuscript_sha256 = Text()
    text_en = Text()
    text_zh = Text()
    actor = ActorRef()
    at = When()
