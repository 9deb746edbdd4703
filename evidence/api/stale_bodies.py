"""What the API says about stale marks, and what it takes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s

from evidence.actions.stale import REASON_LEAST, REASON_MOST
from evidence.models import StaleResolution
from runs.api.serializers import ActorRef, StrictText, Text, When


class ResolutionSerializer(s.Serializer[Any]):
    """How a mark was settled."""

    how = Text(help_text=", ".join(StaleResolution.HOW))
    note = Text()
    actor = ActorRef()
    at = When()


class StaleMarkSerializer(s.Serializer[Any]):
    """A dependant that rests on something that has changed. ``path``: [kind, uid] from cause to target."""

    uid = s.UUIDField()
    study = Text(source="study.slug")
    cause_kind = Text(help_text="source, version (its bytes), excerpt, figure, claim, receipt or plan")
    cause_uid = s.UUIDField()
    target_kind = Text(help_text="figure, claim or section")
    target_uid = s.UUIDField()
    path = s.ListField(child=s.ListField(child=s.CharField()))
    reason = Text()
    actor = ActorRef()
    at = When()
    resolution = s.SerializerMethodField(help_text="null: the mark is open")

    def get_resolution(self, row: Any) -> dict[str, Any] | None:
        """How it was settled."""
        found = getattr(row, "resolution", None)
        return None if found is None else dict(ResolutionSerializer().to_representation(found))


class SettleBody(s.Serializer[Any]):
    """A person's confirmation needs a note; ``rebound`` needs a target that binds current evidence by now."""

    how = s.ChoiceField(choices=("confirmed", "rebound"), default="confirmed")
    note = StrictText(max_length=REASON_MOST, default="", help_text=f"at least {REASON_LEAST} characters to confirm")


class PathSerializer(s.Serializer[Any]):
    """One dependant and the way to it."""

    kind = Text()
    uid = s.UUIDField()
    path = s.ListField(child=s.ListField(child=s.CharField()))


class DependantsSerializer(s.Serializer[Any]):
    """Everything that rests on one thing, nearest first."""

    kind = Text()
    uid = s.UUIDField()
    study = Text()
    dependants = PathSerializer(many=True)
