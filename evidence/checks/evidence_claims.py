"""Step 15: claims say what their figures show and stand no higher than their evidence allows."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch

from evidence.binding.tokens import FIGURE, check_pieces, parse_text
from evidence.models import Claim, ClaimFigure, Figure, Review, Source
from evidence.parts import Part, Parts, authors_of, places_of
from evidence.report import StepLog
from evidence.reviewing import independence
from evidence.status import derive, rank
from runs.models import Study

CHUNK = 200
LANGUAGES = ("en", "zh")


def check_claims(log: StepLog) -> None:
    """Words against bound figures, status against evidence, reviewers against authors."""
    for study in Study.objects.filter(claims__isnull=False).distinct().order_by("pk"):
        keys = set(Figure.objects.filter(study=study).values_list("key", flat=True))
        references = set(Source.objects.filter(study=study).exclude(reference="").values_list("reference", flat=True))
        shown = ClaimFigure.objects.select_related("figure", "figure_version").order_by("language", "ordinal")
        rows = Claim.objects.filter(study=study).select_related("current", "study", "author")
        rows = rows.prefetch_related(Prefetch("current__figures", queryset=shown)).order_by("pk")
        for claim in rows.iterator(chunk_size=CHUNK):
            log.count()
            with log.reading("evidence_claim", claim.key):
                _words(log, claim, keys, references)
                _status(log, claim)
    check_reviews(log)


def _words(log: StepLog, claim: Claim, keys: set[str], references: set[str]) -> None:
    """The n-th token of a text is the n-th bound figure, and no other number stands in it."""
    version = claim.current
    if version is None:
        return
    bound: dict[str, list[str]] = {}
    for row in version.figures.all():
        bound.setdefault(row.language, []).append(row.figure.key)
        if row.figure_version.figure_id != row.figure_id:
            expected = f"a version of {row.figure.key}"
            log.problem("evidence_claimfigure", claim.key, "figure_version", expected=expected, got=row.figure_version)
    for language in LANGUAGES:
        text = getattr(version, f"text_{language}")
        named = [piece.value for piece in parse_text(text) if piece.kind == FIGURE]
        if named != bound.get(language, []):
            log.problem(
                "evidence_claimfigure", claim.key, f"text_{language}", expected=named, got=bound.get(language, [])
            )
        for name in ("text", "scope", "denominator", "missing"):
            prose = getattr(version, f"{name}_{language}")
            for trouble in check_pieces(prose, language, figures=keys, references=references):
                expected = "words whose every number is bound"
                log.problem(
                    "evidence_claimversion", claim.key, f"{name}_{language}", expected=expected, got=str(trouble)
                )


def _status(log: StepLog, claim: Claim) -> None:
    found = derive(claim)
    expected: dict[str, Any] = {"cap": found.cap, "disputed": found.disputed, "provisional": found.provisional}
    log.compare("evidence_claim", claim.key, expected, claim)
    if claim.status not in Claim.STATUSES or rank(claim.status) > rank(found.cap):
        why = found.reasons[0].text if found.reasons else ""
        log.problem("evidence_claim", claim.key, "status", expected=f"at most {found.cap}: {why}", got=claim.status)
    elif claim.status != found.status:
        log.problem("evidence_claim", claim.key, "status", expected=found.status, got=claim.status)


def check_reviews(log: StepLog) -> None:
    """Nobody reviewed what they had a part in, and nobody of an author's family counts as independent.

    The rule by which a verdict is taken (``evidence.parts``), asked of the moment before the review's receipt.
    """
    claims = Claim.objects.filter(reviews__isnull=False).distinct().order_by("pk").values_list("pk", flat=True)
    keys = list(claims)
    for start in range(0, len(keys), CHUNK):
        part = keys[start : start + CHUNK]
        parts = Parts(part, history=True)
        rows = list(Review.objects.filter(claim__in=part).select_related("actor").order_by("claim", "pk"))
        places = places_of(rows)
        for review in rows:
            log.count()
            _reviewer(log, review, parts.of(review.claim_id, review.link_id, before=places.get(review.uid)))


def _reviewer(log: StepLog, review: Review, parts: list[Part]) -> None:
    mine = next((part for part in parts if part.actor.pk == review.actor_id), None)
    if mine is not None:
        expected, got = "somebody who wrote none of it", f"{review.actor.name}, who wrote {mine}"
        log.problem("evidence_review", review.uid, "actor", expected=expected, got=got)
    elif review.independence == Review.INDEPENDENT != independence(review.actor, authors_of(parts)):
        log.problem("evidence_review", review.uid, "independence", expected=Review.SAME_FAMILY, got="independent")
