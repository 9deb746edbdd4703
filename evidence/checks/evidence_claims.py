"""Step 15: claims say what their figures show and stand no higher than their evidence allows."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch

from evidence.binding.tokens import FIGURE, check_pieces, parse_text
from evidence.models import Claim, ClaimFigure, ClaimVersion, Figure, Link, Review, Source
from evidence.report import StepLog
from evidence.reviewing import independence
from evidence.status import derive, rank
from runs.models import Actor, Study

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
    """Nobody reviewed what they had written, and nobody of an author's family counts as independent."""
    rows = Review.objects.select_related("actor", "claim_version", "link").order_by("claim", "pk")
    words: list[tuple[int, Actor]] = []
    links: list[Link] = []
    claim = None
    for review in rows.iterator(chunk_size=CHUNK):
        log.count()
        if review.claim_id != claim:
            claim = review.claim_id
            versions = ClaimVersion.objects.filter(claim=claim).select_related("actor")
            words = [(row.number, row.actor) for row in versions]
            links = list(Link.objects.filter(claim=claim).select_related("actor"))
        writers = [actor for number, actor in words if number <= review.claim_version.number]
        mine = (link for link in links if review.link_id == link.pk or (not review.link_id and link.at <= review.at))
        writers.extend(link.actor for link in mine)
        if review.actor_id in {actor.pk for actor in writers}:
            expected = "somebody who wrote none of it"
            log.problem("evidence_review", review.uid, "actor", expected=expected, got=review.actor.name)
        elif review.independence == Review.INDEPENDENT != independence(review.actor, writers):
            log.problem("evidence_review", review.uid, "independence", expected=Review.SAME_FAMILY, got="independent")
