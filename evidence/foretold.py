"""What a verdict would do to a claim's status, said before it is recorded. Reads; writes nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from evidence.evidence_of import Evidence, evidence_of
from evidence.models import Claim, Link, Review
from evidence.reviewing import tell
from evidence.status import Derived, decide
from runs.models import Actor


def foretell(claim: Claim, link: Link | None, by: Actor, independence: str, at: datetime) -> dict[str, Derived]:
    """Verdict -> the status that the claim would have once ``by`` had recorded it."""
    found = evidence_of(claim)
    if found.version is None:
        return {}
    return {
        verdict: decide(claim, _with(found, claim, link, verdict, by, independence, at)) for verdict in Review.VERDICTS
    }


def _with(
    found: Evidence, claim: Claim, link: Link | None, verdict: str, by: Actor, independence: str, at: datetime
) -> Evidence:
    """The evidence with one more review, which is stored nowhere."""
    reviews = [item.review for item in found.told]
    answers = [answer for item in found.told for answer in item.answers]
    more = Review(
        pk=max((item.pk for item in reviews), default=0) + 1, study=claim.study, actor=by, at=at, claim=claim,
        claim_version=found.version, link=link, verdict=verdict, reason="", looked_at=[], independence=independence,
    )  # fmt: skip
    return replace(found, told=tuple(tell([*reviews, more], answers, found.judges)))
