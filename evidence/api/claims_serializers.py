"""What the API says about claims and links, and what it takes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers as s

from evidence.actions.claims import REASON_MOST, SETTABLE, TEXT_MOST
from evidence.actions.links import REACH_MOST
from evidence.evidence_of import shown_versions
from evidence.models import Claim, ClaimFigure, ClaimVersion, Link
from evidence.status import derive
from runs.api.serializers import StrictText, Text, When


@extend_schema_serializer(component_name="ClaimReason")
class ReasonSerializer(s.Serializer[Any]):
    """A cap: the claim is at most ``at_most`` until ``lifted_by`` happens."""

    code = Text()
    text = Text()
    lifted_by = Text()
    at_most = Text(help_text=", ".join(Claim.STATUSES))


class ShownFigureSerializer(s.Serializer[Any]):
    """A bound occurrence in a claim's text: the ``ordinal``-th of a language showed this version of a figure."""

    language = Text()
    ordinal = s.IntegerField()
    key = Text(source="figure.key")
    figure = s.UUIDField(source="figure.uid")
    figure_version = s.UUIDField(source="figure_version.uid")
    value = s.CharField(source="figure_version.value", allow_null=True, help_text="exact; null: pending or unavailable")
    is_current = s.SerializerMethodField()

    def get_is_current(self, row: ClaimFigure) -> bool:
        """Whether the figure has not been bound again since."""
        return row.figure.current_id == row.figure_version_id


class ClaimVersionSerializer(s.Serializer[Any]):
    """The words of a claim at one time. ``held_to``: what a person lowered it to, empty for nothing."""

    uid = s.UUIDField()
    number = s.IntegerField()
    text_en = Text()
    text_zh = Text()
    kind = Text(help_text=", ".join(ClaimVersion.KINDS))
    scope_en = Text()
    scope_zh = Text()
    denominator_en = Text()
    denominator_zh = Text()
    missing_en = Text()
    missing_zh = Text()
    plan_version = s.UUIDField(source="plan_version.uid", default=None, allow_null=True)
    endpoint = Text()
    held_to = Text()
    reason = Text()
    actor = Text(source="actor.name")
    at = When()


class ClaimSerializer(s.Serializer[Any]):
    """A claim. ``status`` is derived; ``cap`` is what links, reviews and the plan's rules allow at most."""

    uid = s.UUIDField()
    key = Text()
    study = Text(source="study.slug")
    author = Text(source="author.name")
    status = Text(help_text=", ".join(Claim.STATUSES))
    cap = Text()
    disputed = s.BooleanField()
    provisional = s.BooleanField(help_text="only reviewers of the author's own family have accepted it")
    stale = s.BooleanField(help_text="something that it rests on has changed")
    current = ClaimVersionSerializer()
    created_at = When()


class ClaimDetail(ClaimSerializer):
    """The same with every cap, the figures that the words show, and all versions."""

    reasons = s.SerializerMethodField()
    figures = s.SerializerMethodField()
    versions = s.SerializerMethodField()

    def get_reasons(self, row: Claim) -> list[dict[str, Any]]:
        """Lowest first."""
        return [dict(item) for item in ReasonSerializer(derive(row).reasons, many=True).data]

    def get_figures(self, row: Claim) -> list[dict[str, Any]]:
        """In the order of the text."""
        return [dict(item) for item in ShownFigureSerializer(shown_versions(row), many=True).data]

    def get_versions(self, row: Claim) -> list[dict[str, Any]]:
        """Newest first."""
        rows = row.versions.select_related("plan_version", "actor").defer("plan_version__bytes").order_by("-number")
        return [dict(item) for item in ClaimVersionSerializer(rows, many=True).data]


@extend_schema_serializer(component_name="ClaimStatus")
class StatusSerializer(s.Serializer[Any]):
    """The status as it derives now, with its reasons."""

    status = Text()
    cap = Text()
    disputed = s.BooleanField()
    provisional = s.BooleanField()
    accepted = Text(help_text="independent, same_family, or empty for nobody")
    reasons = ReasonSerializer(many=True)


class LinkSerializer(s.Serializer[Any]):
    """A claim and one piece of evidence. ``withdrawn``: taken back, with a reason; it stays readable."""

    uid = s.UUIDField()
    claim = s.UUIDField(source="claim.uid")
    claim_version = s.IntegerField(source="claim_version.number")
    study = Text(source="study.slug")
    relation = Text(help_text=", ".join(Link.RELATIONS))
    excerpt = s.UUIDField(source="excerpt.uid", default=None, allow_null=True)
    excerpt_key = s.CharField(source="excerpt.key", default=None, allow_null=True)
    figure = s.UUIDField(source="figure.uid", default=None, allow_null=True)
    figure_key = s.CharField(source="figure.key", default=None, allow_null=True)
    reach_en = Text(help_text="what it cannot show")
    reach_zh = Text()
    actor = Text(source="actor.name")
    at = When()
    withdrawn = s.SerializerMethodField()
    withdrawn_reason = s.SerializerMethodField()

    def get_withdrawn(self, row: Link) -> bool:
        """Whether it was taken back."""
        return hasattr(row, "withdrawal")

    def get_withdrawn_reason(self, row: Link) -> str:
        """Why; empty where it stands."""
        return row.withdrawal.reason if hasattr(row, "withdrawal") else ""


def prose(most: int = TEXT_MOST) -> StrictText:
    """A text that may be empty."""
    return StrictText(max_length=most, allow_blank=True, default="", trim_whitespace=False)


class WordsBody(s.Serializer[Any]):
    """The whole words of a version; what is left out is empty."""

    text_en = prose()
    text_zh = prose()
    kind = s.ChoiceField(choices=ClaimVersion.KINDS)
    scope_en = prose()
    scope_zh = prose()
    denominator_en = prose()
    denominator_zh = prose()
    missing_en = prose()
    missing_zh = prose()
    plan_version = s.UUIDField(allow_null=True, default=None)
    endpoint = prose(100)
    reason = prose(REASON_MOST)


class ReviseBody(WordsBody):
    """The whole words of the next version. ``base`` or If-Match: the number of the version that the writer saw."""

    base = s.IntegerField(
        min_value=1, max_value=2**31 - 1, allow_null=True, default=None,
        help_text="number of the version that was read; 409 where another one stands by now",
    )  # fmt: skip


class NewClaimBody(WordsBody):
    """A claim to write. A key that exists is refused: revise that claim."""

    key = StrictText(max_length=64, help_text="letters, digits, dots, dashes; never changes")


class LowerBody(s.Serializer[Any]):
    """A status at or below the cap."""

    status = s.ChoiceField(choices=SETTABLE)
    reason = StrictText(max_length=REASON_MOST)


@extend_schema_serializer(component_name="ClaimReasonBody")
class ReasonBody(s.Serializer[Any]):
    """Why something is taken back."""

    reason = StrictText(max_length=REASON_MOST)


class NewLinkBody(s.Serializer[Any]):
    """Evidence to link: an excerpt or a figure of the study, by its key."""

    excerpt = StrictText(max_length=100, allow_null=True, default=None)
    figure = StrictText(max_length=100, allow_null=True, default=None)
    relation = s.ChoiceField(choices=Link.RELATIONS)
    reach_en = prose(REACH_MOST)
    reach_zh = prose(REACH_MOST)


@extend_schema_serializer(component_name="ClaimCheckBody")
class CheckBody(s.Serializer[Any]):
    """A sentence to check, without writing it."""

    text = prose()
    kind = s.ChoiceField(choices=ClaimVersion.KINDS, default="description")
    language = s.ChoiceField(choices=("en", "zh"), default="en")
    plan_version = s.UUIDField(allow_null=True, default=None)
    endpoint = prose(100)


@extend_schema_serializer(component_name="ClaimFault")
class FaultSerializer(s.Serializer[Any]):
    """What a sentence may not say: a phrase or number at code points ``start`` to ``stop`` of ``field``."""

    field = Text()
    code = Text()
    text = Text(source="got")
    message = Text()
    start = s.IntegerField()
    stop = s.IntegerField()


@extend_schema_serializer(component_name="ClaimChecked")
class CheckedSerializer(s.Serializer[Any]):
    """Everything that is wrong; empty: the sentence may be written."""

    troubles = FaultSerializer(many=True)
