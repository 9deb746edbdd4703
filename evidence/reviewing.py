"""Rules of reviews, read only: whose family an actor is of, who may review what, which reviews stand.

A review never changes. The newest one of a reviewer on the same thing (a claim as a whole, or one of its links)
stands and supersedes that reviewer's earlier ones. A dispute or a request for evidence is open until it is answered
and then accepted, by its reviewer or by an independent one who did not answer it. A link's withdrawal may be the
answer, and settles nothing by itself. Order is that of the receipts and of the times together: what waited for a lock
has seen the evidence of before. Whose word is independent is judged against everybody who has a part in the claim by
now.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evidence.models import (
    Answer,
    Claim,
    EvidenceRecord,
    LinkWithdrawal,
    Review,
)
from evidence.parts import authors_of, parts_of, places_of
from runs.actions.actors import OWN_FAMILY
from runs.models import Actor

OPEN, ANSWERED, SETTLED, STANDS, SUPERSEDED = "open", "answered", "settled", "stands", "superseded"


def family_of(actor: Actor) -> str:
    """The family that decides independence. A person without a recorded one is of nobody else's."""
    return (
        f"{actor.kind}:{actor.uid}" if actor.kind == Actor.PERSON and actor.family in ("", OWN_FAMILY) else actor.family
    )


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


@dataclass(frozen=True)
class Judges:
    """Against whom and in which order reviews are read. ``order``: uid of a record -> place of its receipt.

    ``withdrawn``: key of a link -> its withdrawal. A record without a place (told before it is recorded) is the newest.
    """

    authors: tuple[Actor, ...] = ()
    order: Mapping[uuid.UUID, int] | None = None
    withdrawn: Mapping[int, LinkWithdrawal] | None = None

    def after(self, review: Review, record: EvidenceRecord) -> bool:
        """Whether a review has seen a record: its receipt is later, and it was asked for no earlier."""
        order = self.order or {}
        late = order.get(review.uid)
        return review.at >= record.at and (late is None or late >= order.get(record.uid, 0))

    def independent(self, review: Review) -> bool:
        """Whether a review is of somebody independent: when it was written, and of everybody with a part by now."""
        return review.independence == Review.INDEPENDENT == independence(review.actor, self.authors)

    def withdrawal(self, review: Review) -> LinkWithdrawal | None:
        """The withdrawal of the reviewed link that the review has not seen."""
        found = (self.withdrawn or {}).get(review.link_id or 0)
        return found if found is not None and not self.after(review, found) else None


def _fate(review: Review, answers: Sequence[Answer], later: Sequence[Review], judges: Judges) -> str:
    """``later``: reviews of the same thing after this one."""
    if any(other.actor_id == review.actor_id for other in later):
        return SUPERSEDED
    if review.verdict == Review.ACCEPT:
        return STANDS
    taken = judges.withdrawal(review)
    said: list[EvidenceRecord] = [*answers, *([taken] if taken is not None else [])]
    if not said:
        return OPEN
    # An acceptance counts where it was written after an answer that it has seen, by nobody who answered.
    mine = {row.actor_id for row in said}
    settled = any(
        other.verdict == Review.ACCEPT
        and other.actor_id not in mine
        and judges.independent(other)
        and any(judges.after(other, row) for row in said)
        for other in later
    )
    return SETTLED if settled else ANSWERED


def tell(reviews: Sequence[Review], answers: Iterable[Answer], judges: Judges) -> list[Told]:
    """Reviews of one claim in the order in which they were written, each with its answers and its fate."""
    of_review: dict[int, list[Answer]] = defaultdict(list)
    for answer in answers:
        of_review[answer.review_id].append(answer)
    rows = sorted(reviews, key=lambda row: row.pk)
    return [
        Told(
            row,
            tuple(of_review[row.pk]),
            _fate(row, of_review[row.pk], [other for other in rows[at + 1 :] if other.link_id == row.link_id], judges),
        )
        for at, row in enumerate(rows)
    ]


def _said(claim: Claim) -> tuple[list[Review], list[Answer]]:
    rows = list(claim.reviews.select_related("actor", "claim_version", "link").order_by("pk"))
    if not rows:
        return [], []
    answers = Answer.objects.filter(review__claim=claim).select_related("actor", "claim_version").order_by("pk")
    return rows, list(answers)


def judged(claim: Claim, evidence: Iterable[EvidenceRecord] = ()) -> tuple[list[Told], Judges]:
    """Everything that was said on a claim and on its links, and how it was read.

    ``evidence``: links and bindings whose place among the reviews matters. A fixed number of queries; one where
    nobody has said anything.
    """
    rows, answers = _said(claim)
    gone = {row.link_id: row for row in LinkWithdrawal.objects.filter(link__claim=claim).select_related("actor")}
    if not rows:
        return [], Judges(withdrawn=gone)
    places = places_of((*rows, *answers, *gone.values(), *evidence))
    judges = Judges(tuple(authors_of(parts_of(claim))), places, gone)
    return tell(rows, answers, judges), judges


def reviews_of(claim: Claim) -> list[Told]:
    """Everything that was said on a claim and on its links."""
    return judged(claim)[0]
