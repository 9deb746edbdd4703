"""Ways round a review that were tried: each is closed, and the honest way beside it stays open."""

from __future__ import annotations

from datetime import timedelta

import pytest

from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.links import add_link, withdraw_link
from evidence.actions.reviews import OwnWork, answer, review
from evidence.models import Claim, Link, Review, Waiting
from evidence.reviewing import reviews_of
from evidence.status import derive
from evidence.waiting import expected, stored
from runs.errors import DomainError
from runs.models import Anchor, Receipt, StreamHead
from tests.evidence_claims.build import Desk
from workbench.contracts.canonical import parse_canonical


def codes(claim: Claim) -> list[str]:
    return [item.code for item in derive(claim).reasons]


def waits(desk: Desk) -> bool:
    return expected(desk.study).keys() == stored(desk.study).keys()


def test_a_dispute_outlives_its_link_until_somebody_else_accepts_the_withdrawal(desk: Desk) -> None:
    claim = desk.claim()
    excerpt = desk.excerpt()
    link = desk.link(claim, excerpt=excerpt)
    desk.review(claim, "dispute", by=desk.reviewer("doubter"), link=link)
    withdraw_link(link, reason="a slip", **desk.by())
    again = desk.link(claim, excerpt=excerpt)
    desk.review(claim, by=desk.reviewer("friend"), link=again)
    assert (claim.status, claim.disputed) == (Claim.NOT_ESTABLISHED, True)
    assert Waiting.objects.filter(link=link, kind="link").exists() and waits(desk)
    with pytest.raises(OwnWork, match="by: got author"):
        desk.review(claim, by=desk.author, link=link)
    desk.review(claim, by=desk.reviewer("other"), link=link)
    assert (claim.status, claim.disputed) == (Claim.SUPPORTED, False)
    assert not Waiting.objects.filter(link=link, kind="link").exists() and waits(desk)


def test_the_doubter_may_accept_the_withdrawal_and_may_dispute_it(desk: Desk) -> None:
    claim = desk.claim()
    link, kept = desk.link(claim), desk.link(claim, "bounds")
    doubter = desk.reviewer("doubter")
    desk.review(claim, "dispute", by=doubter, link=link)
    withdraw_link(link, reason="a slip", **desk.by())
    desk.link(claim, excerpt=desk.excerpt("more", "1/27"))
    desk.review(claim, "dispute", by=doubter, link=link)
    assert claim.disputed and Waiting.objects.filter(claim=claim, kind="answer").count() == 1 and waits(desk)
    desk.review(claim, by=doubter, link=link)
    assert not claim.disputed and claim.status == Claim.PARTLY
    withdraw_link(kept, reason="never reviewed", **desk.by())
    with pytest.raises(DomainError, match="which is withdrawn, expected a link that stands or one that was reviewed"):
        desk.review(claim, link=kept)


@pytest.mark.parametrize("change", ["add", "withdraw", "replace"])
def test_an_acceptance_is_of_the_links_that_stood_when_it_was_given(desk: Desk, change: str) -> None:
    claim = desk.claim()
    excerpt = desk.excerpt()
    first, second = desk.link(claim, excerpt=excerpt), desk.link(claim, "bounds")
    desk.review(claim)
    assert claim.status == Claim.SUPPORTED
    if change == "add":
        desk.link(claim, excerpt=desk.excerpt("late", "1/27"))
    elif change == "withdraw":
        withdraw_link(second, reason="not needed", **desk.by())
    else:
        withdraw_link(first, reason="anew", **desk.by())
        desk.link(claim, excerpt=excerpt)
    claim.refresh_from_db()
    assert claim.status == Claim.PARTLY and codes(claim) == ["unreviewed"]
    assert waits(desk) and Waiting.objects.filter(claim=claim).exists()
    desk.review(claim)
    assert claim.status == Claim.SUPPORTED


def test_words_changed_and_changed_back_with_other_links_are_not_accepted(desk: Desk) -> None:
    claim = desk.claim(text="Runs were made.")
    desk.link(claim)
    desk.review(claim)
    desk.claim(text="Runs were counted.", reason="other")
    claim = desk.claim(text="Runs were made.", reason="back")
    assert claim.status == Claim.SUPPORTED
    desk.link(claim, "bounds")
    desk.claim(text="Runs were counted.", reason="other")
    claim = desk.claim(text="Runs were made.", reason="back")
    assert claim.status == Claim.PARTLY


@pytest.mark.parametrize("part", ["words", "link", "figure", "excerpt"])
def test_who_takes_a_part_later_is_no_independent_reviewer_any_more(desk: Desk, part: str) -> None:
    reviewer = desk.reviewer("both")
    figure = desk.figure("tasks")
    claim = desk.claim(text="The note counts [[tasks]].")
    desk.link(claim)
    if part == "figure":  # bound by the reviewer: the acceptance that follows is refused, the one before is of another
        desk.review(claim, by=reviewer)
        assert claim.status == Claim.SUPPORTED
        binding = {"type": "excerpt", "excerpt": "at.tasks", "number": "13/27", "occurrence": 1}
        bind_figure(desk.study, figure.key, binding, title_en="other", kind="environment", style="ratio", reason="anew",
                    by=reviewer, at=desk.tick())  # fmt: skip
        with pytest.raises(OwnWork, match="the binding of figure tasks"):
            desk.review(claim, by=reviewer)
    elif part == "excerpt":
        mine = desk.excerpt("mine", "1/27 of the same")
        own = add_excerpt(desk.study, mine.version, "own", "quote", {"exact": "4 tokens"}, by=reviewer, at=desk.tick())
        desk.link(claim, "bounds", excerpt=own)
        with pytest.raises(OwnWork, match="excerpt own"):
            desk.review(claim, by=reviewer)
    elif part == "link":
        desk.review(claim, by=reviewer)
        add_link(claim, figure=figure, relation="background", by=reviewer, at=desk.tick())
    else:
        desk.review(claim, by=reviewer)
        desk.author, author = reviewer, desk.author
        desk.claim(text="The note counts [[tasks]] of them.", reason="mine")
        claim = desk.claim(text="The note counts [[tasks]].", reason="back")
        desk.author = author
        assert "provisional" in codes(claim) and derive(claim).accepted == Review.SAME_FAMILY
    claim.refresh_from_db()
    assert claim.status == Claim.PARTLY
    desk.review(claim, by=desk.reviewer("fresh"))
    assert claim.status == Claim.SUPPORTED


def test_who_answered_a_dispute_does_not_settle_it(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    dispute = desk.review(claim, "dispute", by=desk.reviewer("doubter"), link=link)
    helper = desk.reviewer("helper")
    answer(dispute, "it does say so", **desk.by(helper))
    desk.review(claim, by=helper, link=link)
    assert claim.disputed and [item.fate for item in reviews_of(claim)] == ["answered", "stands"]
    desk.review(claim, by=desk.reviewer("third"), link=link)
    assert not claim.disputed and claim.status == Claim.SUPPORTED


def _refuted(desk: Desk) -> tuple[Claim, Link]:
    claim = desk.claim()
    desk.link(claim)
    against = desk.link(claim, "contradicts")
    desk.review(claim)
    desk.review(claim, link=against)
    assert claim.status == Claim.REFUTED
    return claim, against


def test_an_accepted_contradiction_is_not_withdrawn_by_the_author_alone(desk: Desk) -> None:
    claim, against = _refuted(desk)
    withdraw_link(against, reason="inconvenient", **desk.by())
    desk.review(claim, by=desk.reviewer("friend"))
    assert claim.status == Claim.NOT_ESTABLISHED and codes(claim) == ["contradiction_withdrawn"]
    assert "inconvenient" in derive(claim).reasons[0].text and waits(desk)
    assert Waiting.objects.filter(link=against).exists()
    desk.review(claim, link=against, by=desk.reviewer("second"))
    assert claim.status == Claim.SUPPORTED and codes(claim) == [] and waits(desk)


def test_other_links_do_not_undo_an_accepted_contradiction(desk: Desk) -> None:
    claim, _against = _refuted(desk)
    desk.link(claim, "background", excerpt=desk.excerpt("noise", "4 tokens"))
    assert claim.status == Claim.REFUTED


def test_an_acceptance_that_waited_counts_neither_by_its_time_nor_by_its_place(desk: Desk) -> None:
    figure = desk.figure("tasks")
    claim = desk.claim(text="The note counts [[tasks]].")
    desk.link(claim, figure=figure, relation="supports")
    binding = {"type": "excerpt", "excerpt": "at.tasks", "number": "13/27", "occurrence": 1}
    told = {"verdict": "accept", "reason": "read it", "looked_at": ["figures"]}
    asked = desk.tick()
    bind_figure(
        desk.study, "tasks", binding, title_en="second", kind="environment", style="ratio", reason="anew", **desk.by()
    )
    review(claim, **told, by=desk.reviewer("early"), at=asked)  # asked for before, written after
    assert "unreviewed" in codes(claim)
    began = desk.tick()
    review(claim, **told, by=desk.reviewer("late"), at=began + timedelta(minutes=1))
    assert derive(claim).accepted == Review.INDEPENDENT
    bind_figure(desk.study, "tasks", binding, title_en="third", kind="environment", style="ratio", reason="anew",
                by=desk.author, at=began)  # fmt: skip
    assert derive(claim).accepted == ""  # the binding waited: its time is older, its receipt is newer


def test_a_review_and_an_answer_are_anchored_at_once(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    dispute = desk.review(claim, "dispute", link=link)
    for write in (lambda: None, lambda: desk.answer(dispute)):
        write()
        last = Anchor.objects.order_by("-seq").first()
        assert last is not None
        heads = {stream: (seq, sha) for stream, seq, sha in parse_canonical(bytes(last.bytes))["heads"]}
        head = StreamHead.objects.get(stream=f"evidence:{desk.study.uid}")
        assert heads[head.stream] == (head.seq, head.sha256)
        assert Receipt.objects.filter(stream=head.stream).order_by("-seq").first().sha256 == head.sha256
