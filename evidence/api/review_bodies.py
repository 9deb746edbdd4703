"""What the API says about reviews and the queue, and what it takes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s

from evidence.actions.reviews import HELD_MINUTES, HELD_MOST, KINDS, TEXT_MOST
from evidence.models import Review
from runs.api.logged_serializers import Whole
from runs.api.serializers import ActorRef, StrictText, Text, When


class AnswerSerializer(s.Serializer[Any]):
    """An author's answer. ``claim_version`` null: the words stayed."""

    uid = s.UUIDField()
    review = s.UUIDField(source="review.uid")
    text = Text()
    claim_version = s.IntegerField(source="claim_version.number", default=None, allow_null=True)
    actor = ActorRef()
    at = When()


class ReviewSerializer(s.Serializer[Any]):
    """A verdict, which is never changed. ``link`` null: on the claim as a whole."""

    uid = s.UUIDField()
    study = Text(source="study.slug")
    claim = s.UUIDField(source="claim.uid")
    claim_key = Text(source="claim.key")
    claim_version = s.IntegerField(source="claim_version.number", help_text="number of the words that were judged")
    link = s.UUIDField(source="link.uid", default=None, allow_null=True)
    verdict = Text(help_text=", ".join(Review.VERDICTS))
    reason = Text()
    looked_at = s.ListField(child=s.CharField(), help_text=", ".join(Review.LOOKED))
    independence = Text(help_text="independent or same_family, from the accounts' families")
    actor = ActorRef()
    at = When()
    answers = s.SerializerMethodField()

    def get_answers(self, row: Any) -> list[dict[str, Any]]:
        """Oldest first."""
        return [dict(AnswerSerializer().to_representation(item)) for item in row.answers.all()]


class RecordedSerializer(ReviewSerializer):
    """A verdict just recorded, with what became of the claim."""

    claim_status = Text(source="claim.status")
    claim_cap = Text(source="claim.cap")
    claim_disputed = s.BooleanField(source="claim.disputed")
    claim_provisional = s.BooleanField(source="claim.provisional")


class HeldSerializer(s.Serializer[Any]):
    """An item of the queue that a reviewer holds."""

    item = Text(help_text="KIND:UID")
    study = Text(source="study.slug")
    actor = ActorRef()
    until = When()


class QueueItemSerializer(s.Serializer[Any]):
    """One thing that waits. ``claim`` null: a source or a figure, on which several claims may rest."""

    item = Text(source="name", help_text="KIND:UID, its name when it is reserved")
    kind = Text(help_text=", ".join(KINDS))
    uid = s.UUIDField(source="row.uid", help_text="of the link, source, figure, claim or review")
    study = Text(source="study.slug")
    claim = s.UUIDField(source="claim.uid", default=None, allow_null=True)
    claim_key = s.CharField(source="claim.key", default=None, allow_null=True)
    held_by = s.CharField(source="held.actor.name", default=None, allow_null=True)
    held_until = s.DateTimeField(source="held.until", default=None, allow_null=True)


class CountsSerializer(s.Serializer[Any]):
    """How much waits, by kind."""

    def get_fields(self) -> dict[str, Any]:
        """One number for each kind."""
        return {kind: s.IntegerField() for kind in KINDS}


class QueueSerializer(s.Serializer[Any]):
    """The queue: counts of every kind, and a page of items. ``next_after`` null: no more; else with ``kind``."""

    counts = CountsSerializer()
    items = QueueItemSerializer(many=True)
    next_after = s.IntegerField(allow_null=True)


class NewReviewBody(s.Serializer[Any]):
    """A verdict on a claim, or on one of its links."""

    link = s.UUIDField(allow_null=True, default=None)
    verdict = s.ChoiceField(choices=Review.VERDICTS)
    reason = StrictText(max_length=TEXT_MOST, trim_whitespace=False)
    looked_at = s.ListField(child=s.ChoiceField(choices=Review.LOOKED), min_length=1, max_length=len(Review.LOOKED))


class NewAnswerBody(s.Serializer[Any]):
    """An answer, with the number of newer words where they are the answer."""

    text = StrictText(max_length=TEXT_MOST, trim_whitespace=False)
    claim_version = Whole(allow_null=True, default=None)


class HoldBody(s.Serializer[Any]):
    """How long an item is held."""

    minutes = Whole(default=HELD_MINUTES, min_value=1, max_value=HELD_MOST)


class TakeBody(HoldBody):
    """Which item to take: the first of a study and kind that nobody else holds, behind ``skip``."""

    study = StrictText(max_length=64, allow_null=True, default=None)
    kind = s.ChoiceField(choices=[kind for kind in KINDS if kind != "answer"], allow_null=True, default=None)
    skip = StrictText(max_length=80, allow_blank=True, default="")


class ReleasedSerializer(s.Serializer[Any]):
    """``released`` false: the caller did not hold the item."""

    item = Text()
    released = s.BooleanField()
