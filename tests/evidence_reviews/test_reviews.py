"""Reviews and answers: who may write them, what they do to a claim, that nothing of them is ever changed."""

from __future__ import annotations

import pytest
from django.utils import timezone

from evidence.actions.claims import add_claim, withdraw_claim
from evidence.actions.links import add_link, withdraw_link
from evidence.actions.reviews import OwnWork, answer, review
from evidence.models import Answer, Claim, Review
from evidence.reviewing import reviews_of
from runs.actions.actors import person_actor
from runs.actions.members import create_user
from runs.errors import DomainError
from runs.models import Receipt, User
from tests.evidence_claims.build import Desk, named
from workbench.contracts.canonical import parse_canonical

LOOKED = ["figures", "quotation"]


def fates(claim: Claim) -> list[str]:
    return [item.fate for item in reviews_of(claim)]


def test_an_independent_acceptance_of_the_link_supports_and_leaves_a_receipt(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    assert claim.status == Claim.PARTLY
    reviewer = desk.reviewer()
    row = review(
        claim, link=link, verdict="accept", reason="  it says so ", looked_at=LOOKED, by=reviewer, at=desk.tick()
    )
    claim.refresh_from_db()
    assert (claim.status, claim.provisional, claim.disputed) == (Claim.SUPPORTED, False, False)
    assert (row.independence, row.reason, row.looked_at) == ("independent", "it says so", ["quotation", "figures"])
    receipt = Receipt.objects.get(subject_uid=row.uid, kind="evidence.review")
    body = parse_canonical(bytes(receipt.bytes))["body"]
    assert body["verdict"] == "accept" and body["link"] == str(link.uid) and body["independence"] == "independent"


def test_an_acceptance_within_the_family_is_provisional(desk: Desk) -> None:
    """Author and reviewer share the family north; a reviewer of another family lifts it."""
    admin = User.objects.create_superuser("root")
    made = [create_user(name, by=admin, at=timezone.now(), family="north")[0] for name in ("ann", "bea")]
    ann, bea = (person_actor(user) for user in made)
    claim = add_claim(
        desk.study, "north.claim", text_en=named("E3 was run on the tasks of the note."), kind="description", by=ann,
        at=desk.tick(),
    ).claim  # fmt: skip
    desk.link(claim)
    row = review(claim, verdict="accept", reason="read it", looked_at=LOOKED, by=bea, at=desk.tick())
    claim.refresh_from_db()
    assert row.independence == Review.SAME_FAMILY
    assert (claim.status, claim.provisional) == (Claim.PARTLY, True)
    desk.review(claim)
    assert (claim.status, claim.provisional) == (Claim.SUPPORTED, False)


def test_the_author_of_any_version_or_of_the_link_cannot_review(desk: Desk) -> None:
    """``second`` wrote version 2 only and ``third`` the link only; each refusal names what they wrote."""
    claim, second, third = desk.claim(), desk.reviewer("second"), desk.reviewer("third")
    add_claim(
        desk.study, claim.key, text_en=named("E3 was run on each task of the note."), kind="description", by=second,
        at=desk.tick(), reason="clearer",
    )  # fmt: skip
    claim.refresh_from_db()
    link = add_link(claim, excerpt=desk.excerpt("by.third"), relation="supports", by=third, at=desk.tick())
    wrote = ((desk.author, "version 1 of claim"), (second, "version 2 of claim"), (third, "a link of claim"))
    for actor, what in wrote:
        with pytest.raises(OwnWork, match=rf"wrote {what}.*ask a reviewer of another family"):
            review(claim, link=link, verdict="accept", reason="mine", looked_at=LOOKED, by=actor, at=desk.tick())
    assert not Review.objects.filter(claim=claim).exists()
    review(claim, link=link, verdict="accept", reason="not mine", looked_at=LOOKED, by=desk.reviewer(), at=desk.tick())


def test_a_dispute_lowers_until_it_is_answered_and_accepted(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    desk.review(claim, link=link)
    assert claim.status == Claim.SUPPORTED
    other = desk.reviewer("other")
    dispute = desk.review(claim, "dispute", by=other, link=link)
    assert (claim.status, claim.disputed) == (Claim.NOT_ESTABLISHED, True)
    assert fates(claim) == ["stands", "open"]
    desk.answer(dispute)
    assert (claim.status, claim.disputed) == (Claim.NOT_ESTABLISHED, True)
    assert fates(claim) == ["stands", "answered"]
    desk.review(claim, by=other, link=link)
    assert (claim.status, claim.disputed) == (Claim.SUPPORTED, False)
    assert fates(claim) == ["stands", "superseded", "stands"]


def test_another_independent_reviewer_settles_an_answered_dispute_and_none_before_the_answer(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    dispute = desk.review(claim, "dispute", by=desk.reviewer("first"), link=link)
    desk.review(claim, by=desk.reviewer("early"), link=link)
    assert claim.status == Claim.NOT_ESTABLISHED and fates(claim) == ["open", "stands"]
    desk.answer(dispute)
    assert claim.status == Claim.NOT_ESTABLISHED
    desk.review(claim, by=desk.reviewer("late"), link=link)
    assert claim.status == Claim.SUPPORTED and fates(claim) == ["settled", "stands", "stands"]


def test_an_answer_may_bring_newer_words_and_never_older_or_foreign_ones(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    dispute = desk.review(claim, "dispute", link=link)
    foreign = desk.written("other", kind="description", text_en="The note was read.")
    first = claim.versions.get(number=1)
    for version, message in ((foreign, "expected a version of claim"), (first, "expected one after number 1")):
        with pytest.raises(DomainError, match=message):
            answer(dispute, "new words", claim_version=version, **desk.by())
    newer = desk.written(claim.key, kind="description", text_en="The note was read whole.", reason="narrower")
    answer(dispute, "new words", claim_version=newer, **desk.by())
    row = Answer.objects.get(review=dispute)
    assert row.claim_version == newer and row.text == "new words"
    assert Receipt.objects.filter(subject_uid=row.uid, kind="evidence.answer").count() == 1


def test_who_disputed_does_not_answer_and_only_what_is_open_is_answered(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    reviewer = desk.reviewer()
    dispute = desk.review(claim, "dispute", link=link)
    with pytest.raises(OwnWork, match="review again"):
        answer(dispute, "I was wrong", by=reviewer, at=desk.tick())
    accepted = desk.review(claim, link=link)
    for row, fate in ((dispute, "superseded"), (accepted, "stands")):
        with pytest.raises(DomainError, match=f"that is {fate}, expected a dispute or a request"):
            answer(row, "too late", **desk.by())
    assert not Answer.objects.exists()


def test_a_request_for_evidence_holds_at_partly(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    desk.review(claim, link=link)
    desk.review(claim, "needs_evidence", by=desk.reviewer("other"), link=link)
    assert (claim.status, claim.disputed) == (Claim.PARTLY, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "maybe"}, "verdict: got 'maybe', expected one of accept, dispute, needs_evidence"),
        ({"reason": " a "}, "reason: got 1 characters, expected 3"),
        ({"reason": "a\x00bc"}, "reason: got 4 characters"),
        ({"looked_at": []}, "looked_at: got nothing, expected at least one"),
        ({"looked_at": ["quotation", "sky"]}, "looked_at: got 'sky'"),
    ],
)
def test_a_review_names_the_field_that_is_wrong(desk: Desk, change: dict[str, object], message: str) -> None:
    claim = desk.claim()
    given = {"verdict": "accept", "reason": "read it", "looked_at": LOOKED, **change}
    with pytest.raises(DomainError) as error:
        review(claim, by=desk.reviewer(), at=desk.tick(), **given)  # type: ignore[arg-type]
    assert str(error.value).startswith(message)
    assert not Review.objects.exists()


def test_a_link_of_another_claim_a_withdrawn_link_and_a_withdrawn_claim_are_refused(desk: Desk) -> None:
    claim, other = desk.claim(), desk.claim("c2", "The note was read.")
    link, gone = desk.link(other), desk.link(claim)
    withdraw_link(gone, reason="wrong place", **desk.by())
    for row, message in ((link, "expected a link of claim c1"), (gone, "expected a link that stands")):
        with pytest.raises(DomainError, match=message):
            desk.review(claim, link=row)
    withdraw_claim(claim, reason="no longer said", **desk.by())
    with pytest.raises(DomainError, match="which is withdrawn"):
        desk.review(claim)


def test_a_later_review_supersedes_and_the_earlier_one_stays_as_it_was(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    first = desk.review(claim, "needs_evidence", link=link)
    kept = first.body()
    desk.review(claim, link=link)
    first.refresh_from_db()
    assert first.body() == kept and fates(claim) == ["superseded", "stands"]
    rows = list(Review.objects.filter(claim=claim).order_by("pk"))
    assert [row.verdict for row in rows] == ["needs_evidence", "accept"] and rows[0].uid != rows[1].uid
