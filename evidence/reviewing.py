"""Rules of reviews, read only: whose family an actor is of, who may review what, which reviews stand.

A review never changes. The newest one of a reviewer on the same thing (a claim as a whole, or one of its links)
stands and supersedes that reviewer's earlier ones. A dispute or a request for evidence is open until it is answered
and then accepted, by its reviewer or by an independent one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evidence.models import Answer, Claim, Link, Review
from runs.actions.actors import OWN_FAMILY
from runs.models import Actor

OPEN, ANSWERED, SETTLED, STANDS, SUPERSEDED = "open", "answered", "settled", "stands", "superseded"


def family_of(actor: Actor) -> str:
    """The family that decides independence. A person without a recorded one is of nobody else's."""
    return (
        f"{actor.kind}:{actor.uid}" if actor.kind == Actor.PERSON and actor.family in ("", OWN_FAMILY) else actor.family
    )


def authors_of(claim: Claim, link: Link | None = None) -> list[tuple[Actor, str]]:
    """Who wrote what is reviewed, each with what they wrote: the claim's versions and the link (all, without one).

    Oldest first, each actor once. Two queries.
    """
    found: dict[int, tuple[Actor, str]] = {}
    for version in claim.versions.select_related("actor").order_by("number"):
        found.setdefault(version.actor_id, (version.actor, f"version {version.number} of claim {claim.key}"))
    links = claim.links.select_related("actor").order_by("pk")
    for row in links if link is None else links.filter(pk=link.pk):
        found.setdefault(row.actor_id, (row.actor, f"a link of claim {claim.key}"))
    return list(found.values())


def independence(by: Actor, authors: Iterable[Actor]) -> str:
    """``Review.INDEPENDENT`` where the reviewer's family is that of no author, else ``Review.SAME_FAMILY``."""
    mine = family_of(by)
    same = any(family_of(author) == mine for author in authors)
    return Review.SAME_FAMILY if same else Review.INDEPENDENT


@dataclass(frozen=True)
class Told:
    """A review with its answers and what has become of it (``OPEN`` … ``SUPERSEDED``)."""

    review: Review
    answers: tuple[Answer, ...]
    fate: str


def _fate(review: Review, answers: Sequence[Answer], later: Sequence[Review]) -> str:
    """``later``: reviews of the same thing after this one."""
    if any(other.actor_id == review.actor_id for other in later):
        return SUPERSEDED
    if review.verdict == Review.ACCEPT:
        return STANDS
    if not answers:
        return OPEN
    # An acceptance counts where it was written after the answer that it has seen.
    seen = [other for other in later if other.at >= answers[0].at and other.verdict == Review.ACCEPT]
    return SETTLED if any(other.independence == Review.INDEPENDENT for other in seen) else ANSWERED


def tell(reviews: Sequence[Review], answers: Iterable[Answer]) -> list[Told]:
    """Reviews of one claim in the order in which they were written, each with its answers and its fate."""
    of_review: dict[int, list[Answer]] = defaultdict(list)
    for answer in answers:
        of_review[answer.review_id].append(answer)
    rows = sorted(reviews, key=lambda row: row.pk)
    return [
        Told(
            row,
            tuple(of_review[row.pk]),
            _fate(row, of_review[row.pk], [other for other in rows[at + 1 :] if other.link_id == row.link_id]),
        )
        for at, row in enumerate(rows)
    ]


def reviews_of(claim: Claim) -> list[Told]:
    """Everything that was said on a claim and on its links. Two queries."""
    rows = list(claim.reviews.select_related("actor", "claim_version", "link").order_by("pk"))
    answers = Answer.objects.filter(review__claim=claim).select_related("actor", "claim_version").order_by("pk")
    return tell(rows, answers)
