"""Reviews, answers and reservations. Reviews and answers only grow; a reservation is a hold that runs out.

Callers check the right first: ``review.write`` to review and to reserve, ``evidence.write`` to answer.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction

from evidence.actions.record import append, lock_evidence, record_uid
from evidence.actions.signing import sign_missing
from evidence.models import Answer, Claim, ClaimVersion, Link, LinkWithdrawal, Reservation, Review
from evidence.parts import Part, authors_of, parts_of, parts_of_item
from evidence.reviewing import ANSWERED, OPEN, independence, reviews_of
from runs.actions.receipts import anchor_heads
from runs.errors import DomainError, NotAllowed, StaleTransition
from runs.models import Actor, Study

REASON_LEAST, TEXT_MOST = 3, 8000
HELD_MINUTES, HELD_MOST = 15, 120
KINDS = ("link", "source", "figure", "claim", "answer")  # of items of the queue
_ITEM = re.compile(rf"(?P<kind>{'|'.join(KINDS)}):(?P<uid>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")


class OwnWork(NotAllowed):
    """Nobody reviews what they wrote, nor answers their own dispute."""


class Reserved(StaleTransition):
    """Another reviewer holds the item."""


def item_of(kind: str, uid: uuid.UUID | str) -> str:
    """Name of an item of the queue."""
    return f"{kind}:{uid}"


def parse_item(item: str) -> tuple[str, uuid.UUID]:
    """(kind, uid). Raises ``DomainError``."""
    found = _ITEM.fullmatch(item)
    if found is None:
        raise DomainError(f"item: got {item[:80]!r}, expected KIND:UID with a kind out of {', '.join(KINDS)}")
    return found["kind"], uuid.UUID(found["uid"])


def _text(field: str, value: str) -> str:
    text = value.strip()
    if not REASON_LEAST <= len(text) <= TEXT_MOST or "\x00" in text:
        raise DomainError(f"{field}: got {len(text)} characters, expected {REASON_LEAST} to {TEXT_MOST}")
    return text


def _looked_at(given: Iterable[str]) -> list[str]:
    """What was looked at, each once, in the order of ``Review.LOOKED``."""
    named = list(given)
    for name in named:
        if name not in Review.LOOKED:
            raise DomainError(f"looked_at: got {str(name)[:40]!r}, expected some of {', '.join(Review.LOOKED)}")
    if not named:
        raise DomainError(
            f"looked_at: got nothing, expected at least one of {', '.join(Review.LOOKED)}; say what you looked at"
        )
    return [name for name in Review.LOOKED if name in named]


def _current(claim: Claim, link: Link | None) -> tuple[Claim, ClaimVersion]:
    """The claim as it stands under the lock, and its newest words. Raises ``DomainError`` where none are to judge."""
    row = Claim.objects.select_related("current", "study").get(pk=claim.pk)
    if row.current is None:
        raise DomainError(f"claim: got {row.key}, which has no words yet, expected a claim with a version")
    if row.status == Claim.WITHDRAWN:
        raise DomainError(f"claim: got {row.key}, which is withdrawn, expected a claim that is still made")
    if link is not None:
        if link.claim_id != row.pk:
            raise DomainError(f"link: got {link.uid}, expected a link of claim {row.key}")
        if LinkWithdrawal.objects.filter(link=link).exists() and not Review.objects.filter(link=link).exists():
            raise DomainError(
                f"link: got {link.uid}, which is withdrawn, expected a link that stands or one that was reviewed, "
                "whose withdrawal is judged"
            )
    return row, row.current


def _must_have_no_part(claim: Claim, link: Link | None, by: Actor) -> list[Actor]:
    """Everybody with a part in what is reviewed. Raises ``OwnWork`` where the reviewer is one of them."""
    parts = parts_of(claim, link)
    _refuse(parts, by)
    return authors_of(parts)


def _refuse(parts: Iterable[Part], by: Actor) -> None:
    mine = next((part for part in parts if part.actor.pk == by.pk), None)
    if mine is not None:
        raise OwnWork(
            f"by: got {by.name}, who wrote {mine}, expected somebody who wrote none of what the claim rests on; "
            f"ask a reviewer of another family"
        )


def review(
    claim: Claim,
    *,
    link: Link | None = None,
    verdict: str,
    reason: str,
    looked_at: Iterable[str],
    by: Actor,
    at: datetime,
) -> Review:
    """Record a verdict on a claim, or on one of its links; it supersedes this reviewer's earlier one on the same.

    Raises ``OwnWork`` for an author, ``Reserved`` where another reviewer holds the item, ``DomainError`` naming the
    field that is wrong.
    """
    from evidence.status import refresh_claim

    if verdict not in Review.VERDICTS:
        raise DomainError(f"verdict: got {verdict[:40]!r}, expected one of {', '.join(Review.VERDICTS)}")
    text, looked = _text("reason", reason), _looked_at(looked_at)
    with transaction.atomic():
        lock_evidence(claim.study)
        claim, version = _current(claim, link)
        authors = _must_have_no_part(claim, link, by)
        item = item_of("claim", claim.uid) if link is None else item_of("link", link.uid)
        _must_be_free(item, by, at)
        row = Review(
            uid=record_uid(claim.uid, "review", str(Review.objects.filter(claim=claim).count() + 1)),
            study=claim.study, actor=by, at=at, claim=claim, claim_version=version, link=link, verdict=verdict,
            reason=text, looked_at=looked, independence=independence(by, authors),
        )  # fmt: skip
        append(row)
        Reservation.objects.filter(item=item, actor=by).delete()
        refresh_claim(claim, at=at)
        _anchor(at)
    return row


def _anchor(at: datetime) -> None:
    """Anchor what was said in the same transaction, last; the signature follows the commit.

    A signature that fails is made by the scheduler's next tick.
    """
    anchor_heads()
    transaction.on_commit(lambda: sign_missing(at=at), robust=True)


def answer(review: Review, text: str, *, claim_version: ClaimVersion | None = None, by: Actor, at: datetime) -> Answer:
    """Answer a dispute or a request for evidence, with newer words of the claim where they are the answer.

    The claim stays lowered until a reviewer accepts. Raises ``OwnWork`` for the reviewer who disputed, ``DomainError``
    where nothing is to answer.
    """
    from evidence.status import refresh_claim

    said = _text("text", text)
    with transaction.atomic():
        lock_evidence(review.study)
        _must_be_of_another(review, by)
        told = {item.review.pk: item.fate for item in reviews_of(review.claim)}[review.pk]
        if told not in (OPEN, ANSWERED):
            raise DomainError(
                f"review: got one of verdict {review.verdict} that is {told}, expected a dispute or a request for "
                "evidence that is still open"
            )
        if claim_version is not None and claim_version.claim_id != review.claim_id:
            raise DomainError(f"claim_version: got {claim_version}, expected a version of claim {review.claim}")
        if claim_version is not None and claim_version.number <= review.claim_version.number:
            raise DomainError(
                f"claim_version: got number {claim_version.number}, expected one after number "
                f"{review.claim_version.number}, which the review has seen"
            )
        row = Answer(
            uid=record_uid(review.uid, "answer", str(Answer.objects.filter(review=review).count() + 1)),
            study=review.study, actor=by, at=at, review=review, text=said, claim_version=claim_version,
        )  # fmt: skip
        append(row)
        refresh_claim(review.claim, at=at)
        _anchor(at)
    return row


def _must_be_of_another(review: Review, by: Actor) -> None:
    if review.actor_id == by.pk:
        raise OwnWork(
            f"by: got {by.name}, who wrote this review, expected an author of the claim; "
            "to change your mind, review again"
        )


def holder_of(item: str, at: datetime) -> Reservation | None:
    """The reservation that holds an item now."""
    return Reservation.objects.select_related("actor").filter(item=item, until__gt=at).first()


def _must_be_free(item: str, by: Actor, at: datetime) -> None:
    held = holder_of(item, at)
    if held is not None and held.actor_id != by.pk:
        raise Reserved(
            f"item: got {item}, which {held.actor.name} holds until {held.until:%Y-%m-%d %H:%M:%SZ}, expected one that "
            "nobody else holds; take another"
        )


def check_minutes(minutes: int) -> None:
    """How long a hold may be. Raises ``DomainError``."""
    if not 1 <= minutes <= HELD_MOST:
        raise DomainError(f"minutes: got {minutes}, expected 1 to {HELD_MOST}")


def reserve(study: Study, item: str, *, by: Actor, at: datetime, minutes: int = HELD_MINUTES) -> Reservation:
    """Hold an item of the queue, or hold it longer; what the reviewer held in this study before is let go.

    Raises ``Reserved`` where another reviewer holds it, ``OwnWork`` where the caller has a part in it and so cannot
    review it.
    """
    kind, uid = parse_item(item)
    check_minutes(minutes)
    with transaction.atomic():
        lock_evidence(study)
        _refuse(parts_of_item(kind, uid), by)
        return hold(study, item, by=by, at=at, minutes=minutes)


def hold(study: Study, item: str, *, by: Actor, at: datetime, minutes: int) -> Reservation:
    """``reserve`` of an item in which the caller has no part, under the study's lock."""
    _must_be_free(item, by, at)
    Reservation.objects.filter(study=study, actor=by).exclude(item=item).delete()
    Reservation.objects.filter(item=item).exclude(actor=by).delete()  # of another, and over
    row, _made = Reservation.objects.update_or_create(
        item=item, defaults={"study": study, "actor": by, "until": at + timedelta(minutes=minutes)}
    )
    return row


def release(study: Study, item: str, *, by: Actor, at: datetime) -> bool:
    """Let an item go. False: the caller did not hold it, and nothing was changed."""
    parse_item(item)
    with transaction.atomic():
        gone, _of = Reservation.objects.filter(study=study, item=item, actor=by).delete()
    return gone > 0
