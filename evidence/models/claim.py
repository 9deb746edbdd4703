"""Claims, the links to their evidence, and the reviews of both."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel

from .base import EvidenceRecord


class Claim(models.Model):
    """Head of a claim. ``status`` is derived (``evidence.status``): supported, partly, not_established, pending,
    refuted, withdrawn; never above what links, reviews and the plan's rules allow. ``stale``: evidence has changed.
    ``provisional``: only reviewers of the author's family have accepted it. ``author``: of the first version.
    """

    SUPPORTED, PARTLY, NOT_ESTABLISHED, PENDING, REFUTED, WITHDRAWN = (
        "supported", "partly", "not_established", "pending", "refuted", "withdrawn",
    )  # fmt: skip
    STATUSES = (SUPPORTED, PARTLY, NOT_ESTABLISHED, PENDING, REFUTED, WITHDRAWN)

    uid = models.UUIDField(unique=True, editable=False)
    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="claims")
    key = models.CharField(max_length=64)
    author = models.ForeignKey("runs.Actor", models.PROTECT, related_name="claims")
    current = models.ForeignKey("evidence.ClaimVersion", models.PROTECT, null=True, related_name="+")
    status = models.CharField(max_length=16)
    cap = models.CharField(max_length=16)
    disputed = models.BooleanField(default=False)
    provisional = models.BooleanField(default=False)
    stale = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "key"], name="claim_key_unique"),
            models.CheckConstraint(
                name="claim_status_known",
                condition=models.Q(
                    status__in=["supported", "partly", "not_established", "pending", "refuted", "withdrawn"]
                ),
            ),
        ]
        indexes = [models.Index(fields=["study", "status", "stale"], name="claim_by_status")]

    def __str__(self) -> str:
        return self.key


class ClaimVersion(EvidenceRecord):
    """The words of a claim at one time. Figures stand in the texts as ``[[figure.key]]``; no other number does.

    ``kind``: what is claimed, which says what it needs: improvement, equivalence, non_inferiority, no_regression
    (observed), mechanism, cost, environment, description, negative. ``plan_version`` and ``endpoint``: what was
    registered. ``held_to``: a status that a person lowered it to, or empty.
    """

    KIND = "claim_version"
    KINDS = (
        "improvement", "equivalence", "non_inferiority", "no_regression", "mechanism", "cost", "environment",
        "description", "negative",
    )  # fmt: skip

    claim = models.ForeignKey(Claim, models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    text_en = models.TextField(blank=True, default="")
    text_zh = models.TextField(blank=True, default="")
    kind = models.CharField(max_length=24)
    scope_en = models.TextField(blank=True, default="")
    scope_zh = models.TextField(blank=True, default="")
    denominator_en = models.TextField(blank=True, default="")
    denominator_zh = models.TextField(blank=True, default="")
    missing_en = models.TextField(blank=True, default="")
    missing_zh = models.TextField(blank=True, default="")
    plan_version = models.ForeignKey("runs.PlanVersion", models.PROTECT, null=True, related_name="claims")
    endpoint = models.CharField(max_length=100, blank=True, default="")
    held_to = models.CharField(max_length=16, blank=True, default="")
    reason = models.TextField(blank=True, default="")

    class Meta(EvidenceRecord.Meta):
        constraints = [models.UniqueConstraint(fields=["claim", "number"], name="claim_version_number_unique")]

    def __str__(self) -> str:
        return f"{self.claim}@{self.number}"


class ClaimFigure(AppendOnlyModel):
    """One bound occurrence in a claim's text: the ``ordinal``-th token of a language shows this figure version."""

    version = models.ForeignKey(ClaimVersion, models.PROTECT, related_name="figures")
    language = models.CharField(max_length=8)
    ordinal = models.PositiveIntegerField()
    figure = models.ForeignKey("evidence.Figure", models.PROTECT, related_name="in_claims")
    figure_version = models.ForeignKey("evidence.FigureVersion", models.PROTECT, related_name="in_claims")

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["version", "language", "ordinal"], name="claim_figure_unique"),
        ]


class Link(EvidenceRecord):
    """A claim and one piece of evidence: an excerpt or a figure. ``reach``: what it cannot show, in words."""

    KIND = "link"
    RELATIONS = ("supports", "contradicts", "bounds", "background")

    claim = models.ForeignKey(Claim, models.PROTECT, related_name="links")
    claim_version = models.ForeignKey(ClaimVersion, models.PROTECT, related_name="links")
    excerpt = models.ForeignKey("evidence.Excerpt", models.PROTECT, null=True, related_name="links")
    figure = models.ForeignKey("evidence.Figure", models.PROTECT, null=True, related_name="links")
    relation = models.CharField(max_length=16)
    reach_en = models.TextField(blank=True, default="")
    reach_zh = models.TextField(blank=True, default="")

    class Meta(EvidenceRecord.Meta):
        constraints = [
            models.CheckConstraint(
                name="link_one_evidence",
                condition=models.Q(excerpt__isnull=False, figure__isnull=True)
                | models.Q(excerpt__isnull=True, figure__isnull=False),
            ),
            models.CheckConstraint(
                name="link_relation_known",
                condition=models.Q(relation__in=["supports", "contradicts", "bounds", "background"]),
            ),
        ]
        indexes = [models.Index(fields=["claim", "id"], name="link_by_claim")]


class LinkWithdrawal(EvidenceRecord):
    """A link taken back, with a reason; the link and its reviews stay readable."""

    KIND = "link_withdrawal"

    link = models.OneToOneField(Link, models.PROTECT, related_name="withdrawal")
    reason = models.TextField()


class Review(EvidenceRecord):
    """A verdict on a claim, or on one of its links. Never edited; a later one of the same reviewer supersedes it.

    ``independence``: same_family or independent, from the two actors' families, never typed. ``looked_at``: what was
    looked at, of ``LOOKED``. A dispute lowers the claim until it is answered and the reviewer (or another
    independent one) has accepted.
    """

    KIND = "review"
    ACCEPT, DISPUTE, NEEDS_EVIDENCE = "accept", "dispute", "needs_evidence"
    VERDICTS = (ACCEPT, DISPUTE, NEEDS_EVIDENCE)
    SAME_FAMILY, INDEPENDENT = "same_family", "independent"
    LOOKED = ("quotation", "section", "whole_source", "figures", "derivations", "plan", "closure", "bytes")

    claim = models.ForeignKey(Claim, models.PROTECT, related_name="reviews")
    claim_version = models.ForeignKey(ClaimVersion, models.PROTECT, related_name="reviews")
    link = models.ForeignKey(Link, models.PROTECT, null=True, related_name="reviews")
    verdict = models.CharField(max_length=16)
    reason = models.TextField()
    looked_at = models.JSONField(default=list)
    independence = models.CharField(max_length=16)

    class Meta(EvidenceRecord.Meta):
        constraints = [
            models.CheckConstraint(
                name="review_verdict_known", condition=models.Q(verdict__in=["accept", "dispute", "needs_evidence"])
            )
        ]
        indexes = [models.Index(fields=["claim", "-id"], name="review_by_claim")]


class Answer(EvidenceRecord):
    """What an author says to a dispute or a request for evidence; ``claim_version``: the words that answer it."""

    KIND = "answer"

    review = models.ForeignKey(Review, models.PROTECT, related_name="answers")
    text = models.TextField()
    claim_version = models.ForeignKey(ClaimVersion, models.PROTECT, null=True, related_name="answers")


class Reservation(models.Model):
    """A queue item that a reviewer holds until ``until``, so that two do not do the same. ``item``: ``link:<uid>``."""

    study = models.ForeignKey("runs.Study", models.CASCADE, related_name="+")
    item = models.CharField(max_length=80, unique=True)
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    until = models.DateTimeField()


class Waiting(models.Model):
    """What of a claim waits in the review queue, a projection that ``verify`` builds again (``evidence.waiting``).

    link: a link without a verdict that counts; claim: an answered dispute of the whole; answer: an unanswered review.
    """

    KINDS = ("link", "claim", "answer")

    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="+")
    kind = models.CharField(max_length=8)
    claim = models.ForeignKey(Claim, models.PROTECT, related_name="waiting")
    link = models.OneToOneField(Link, models.PROTECT, null=True, related_name="waiting")
    review = models.OneToOneField(Review, models.PROTECT, null=True, related_name="waiting")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["claim"], name="waiting_claim_once", condition=models.Q(kind="claim")),
            models.CheckConstraint(
                name="waiting_names_its_row",
                condition=models.Q(kind="link", link__isnull=False, review__isnull=True)
                | models.Q(kind="answer", link__isnull=True, review__isnull=False)
                | models.Q(kind="claim", link__isnull=True, review__isnull=True),
            ),
        ]
        indexes = [
            models.Index(fields=["study", "kind", "id"], name="waiting_of_study"),
            models.Index(fields=["kind", "id"], name="waiting_by_kind"),
        ]


class StaleMark(EvidenceRecord):
    """A dependant that no longer rests on what it was bound to. ``path``: [[kind, uid], ...] from cause to target.

    Kinds: source, excerpt, figure, claim, section. Open until a ``StaleResolution`` says how it was settled.
    """

    KIND = "stale_mark"

    cause_kind = models.CharField(max_length=16)
    cause_uid = models.UUIDField(db_index=True)
    target_kind = models.CharField(max_length=16)
    target_uid = models.UUIDField(db_index=True)
    path = models.JSONField()
    reason = models.TextField()


class StaleResolution(EvidenceRecord):
    """How a mark was settled: rebound, confirmed (by a person, with a note) or healed (the bytes are back)."""

    KIND = "stale_resolution"
    HOW = ("rebound", "confirmed", "healed")

    mark = models.OneToOneField(StaleMark, models.PROTECT, related_name="resolution")
    how = models.CharField(max_length=16)
    note = models.TextField(blank=True, default="")
