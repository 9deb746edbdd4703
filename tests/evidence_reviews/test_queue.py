"""The queue: what waits in each kind, who holds what, and that nobody gets what another has."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.http import Http404

from evidence import frame, queue, waiting
from evidence.actions.claims import add_claim, lower_claim, withdraw_claim
from evidence.actions.links import withdraw_link
from evidence.actions.reviews import Reserved, answer, item_of, parse_item, release, reserve, review
from evidence.checks.evidence_queue import check_waiting
from evidence.models import Claim, Figure, Reservation, Source, StaleMark, Waiting
from evidence.presenters import reviews
from evidence.report import StepLog, VerifyReport
from runs.access import Principal
from runs.actions.plans import ensure_study
from runs.errors import DomainError
from runs.models import Actor, Membership, Study, User
from tests.evidence_claims.build import Desk, named

LOOKED = ["quotation"]


def principal(actor: Actor) -> Principal:
    assert actor.user is not None
    return Principal(User.objects.get(pk=actor.user.pk))


def counts(desk: Desk, actor: Actor) -> dict[str, int]:
    return queue.counts(principal(actor), desk.study)


def test_a_link_waits_until_somebody_judged_the_words_of_now(desk: Desk) -> None:
    claim, rev = desk.claim(), desk.reviewer()
    link = desk.link(claim)
    assert counts(desk, rev)["link"] == 1
    desk.review(claim, link=link)
    assert counts(desk, rev)["link"] == 0
    lower_claim(claim, Claim.PARTLY, reason="careful", **desk.by())  # the same words under a lower status
    assert counts(desk, rev)["link"] == 0
    desk.written(claim.key, kind="description", text_en="The note was read.", reason="narrower")
    assert counts(desk, rev)["link"] == 1


def test_a_link_waits_again_once_a_figure_of_its_claim_is_bound_anew(desk: Desk) -> None:
    figure = desk.figure("cut", "4", excerpt=desk.excerpt("at.cut", "The mask cuts 4 tokens."))
    claim = desk.claim(text="The mask cuts [[cut]] tokens.")
    link = desk.link(claim, figure=figure)
    desk.review(claim, link=link)
    assert counts(desk, desk.reviewer())["link"] == 0
    desk.figure("cut", "4", excerpt=desk.excerpt("at.cut.again", "cuts 4 tokens"), reason="a shorter place")
    assert counts(desk, desk.reviewer())["link"] == 1


def test_a_dispute_goes_to_the_author_and_comes_back_once_answered(desk: Desk) -> None:
    claim, rev = desk.claim(), desk.reviewer()
    link = desk.link(claim)
    dispute = desk.review(claim, "dispute", link=link)
    assert (counts(desk, rev)["link"], counts(desk, rev)["answer"]) == (0, 1)
    answer(dispute, "it does say so", **desk.by())
    assert (counts(desk, rev)["link"], counts(desk, rev)["answer"]) == (1, 0)
    desk.review(claim, link=link)
    assert (counts(desk, rev)["link"], counts(desk, rev)["answer"]) == (0, 0)


def test_an_answered_dispute_comes_back_though_another_reviewer_had_accepted_before(desk: Desk) -> None:
    claim, rev = desk.claim(), desk.reviewer()
    link = desk.link(claim)
    desk.review(claim, link=link)
    dispute = desk.review(claim, "dispute", by=desk.reviewer("other"), link=link)
    assert counts(desk, rev)["link"] == 0
    answer(dispute, "it does say so", **desk.by())
    assert counts(desk, rev)["link"] == 1


def test_an_answered_dispute_of_a_whole_claim_comes_back_as_a_claim(desk: Desk) -> None:
    claim, rev = desk.claim(), desk.reviewer()
    dispute = desk.review(claim, "dispute")
    assert (counts(desk, rev)["claim"], counts(desk, rev)["answer"]) == (0, 1)
    answer(dispute, "it does", **desk.by())
    assert (counts(desk, rev)["claim"], counts(desk, rev)["answer"]) == (1, 0)


def test_drifted_sources_changed_figures_and_stale_claims_wait(desk: Desk) -> None:
    figure, claim, rev = desk.figure("ratio"), desk.claim(), desk.reviewer()
    Source.objects.filter(study=desk.study).update(state=Source.DRIFTED)
    Figure.objects.filter(pk=figure.pk).update(state=Figure.DRIFTED)
    Claim.objects.filter(pk=claim.pk).update(stale=True)
    assert counts(desk, rev) == {"link": 0, "source": 1, "figure": 1, "claim": 1, "answer": 0}
    items = queue.queue_items(principal(rev), desk.study, at=desk.tick())
    assert [item.kind for item in items] == ["source", "figure", "claim"]


def test_what_is_withdrawn_waits_no_more(desk: Desk) -> None:
    claim, other, rev = desk.claim(), desk.claim("c2", "The note was read."), desk.reviewer()
    link = desk.link(claim)
    desk.link(other)
    assert counts(desk, rev)["link"] == 2
    withdraw_link(link, reason="wrong place", **desk.by())
    withdraw_claim(other, reason="no longer said", **desk.by())
    assert counts(desk, rev)["link"] == 0


def test_nobody_is_given_what_they_wrote(desk: Desk) -> None:
    """``second`` wrote version 2 of the first claim and so gets the link of the other claim only."""
    claim, other, second = desk.claim(), desk.claim("c2", "The note was read."), desk.reviewer("second")
    desk.link(claim)
    theirs = desk.link(other)
    add_claim(
        desk.study, claim.key, text_en=named("E3 was run on each task of the note."), kind="description", by=second,
        at=desk.tick(), reason="clearer",
    )  # fmt: skip
    taken = queue.take(principal(second), desk.study, by=second, at=desk.tick())
    assert taken is not None and taken.item == item_of("link", theirs.uid)
    assert queue.take(principal(second), desk.study, by=second, at=desk.tick(), skip=taken.item) is None
    assert counts(desk, second)["link"] == 2


def test_two_reviewers_never_get_the_same_item(desk: Desk) -> None:
    claims = [desk.claim(f"c{n}", f"The note was read{'.' * n}") for n in (1, 2, 3)]
    links = [desk.link(claim) for claim in claims]
    names = [item_of("link", link.uid) for link in links]
    first, second, third = (desk.reviewer(name) for name in ("first", "second", "third"))
    at = desk.tick()
    taken = [queue.take(principal(who), desk.study, by=who, at=at) for who in (first, second, third)]
    assert [row.item for row in taken if row is not None] == names
    assert queue.take(principal(first), desk.study, by=first, at=at, skip=names[0]) is None
    with pytest.raises(Reserved, match=r"which first holds until .* take another"):
        reserve(desk.study, names[0], by=second, at=at)


def test_a_hold_runs_out_is_released_and_is_one_for_each_reviewer(desk: Desk) -> None:
    claims = [desk.claim(f"c{n}", f"The note was read{'.' * n}") for n in (1, 2)]
    names = [item_of("link", desk.link(claim).uid) for claim in claims]
    first, second, at = desk.reviewer("first"), desk.reviewer("second"), desk.tick()
    row = reserve(desk.study, names[0], by=first, at=at)
    assert row.until - at == timedelta(minutes=15)
    last = at + timedelta(minutes=14, seconds=59)
    with pytest.raises(Reserved):
        reserve(desk.study, names[0], by=second, at=last)
    assert reserve(desk.study, names[0], by=second, at=at + timedelta(minutes=15)).actor == second
    assert release(desk.study, names[0], by=first, at=last) is False
    assert release(desk.study, names[0], by=second, at=last) is True
    reserve(desk.study, names[0], by=first, at=last)
    reserve(desk.study, names[1], by=first, at=last)
    assert list(Reservation.objects.values_list("item", "actor__name")) == [(names[1], "first")]


def test_a_review_of_what_another_holds_is_refused_and_ones_own_hold_ends_with_it(desk: Desk) -> None:
    claim, first, second = desk.claim(), desk.reviewer("first"), desk.reviewer("second")
    link = desk.link(claim)
    reserve(desk.study, item_of("link", link.uid), by=first, at=desk.tick())
    with pytest.raises(Reserved, match="which first holds"):
        review(claim, link=link, verdict="accept", reason="read it", looked_at=LOOKED, by=second, at=desk.tick())
    review(claim, link=link, verdict="accept", reason="read it", looked_at=LOOKED, by=first, at=desk.tick())
    assert not Reservation.objects.exists()


def test_taking_goes_on_behind_what_was_skipped_and_wraps(desk: Desk) -> None:
    claims = [desk.claim(f"c{n}", f"The note was read{'.' * n}") for n in (1, 2, 3)]
    names = [item_of("link", desk.link(claim).uid) for claim in claims]
    rev = desk.reviewer()
    who = principal(rev)

    def after(name: str) -> str | None:
        row = queue.take(who, desk.study, "link", by=rev, at=desk.tick(), skip=name)
        return None if row is None else row.item

    assert [after(names[0]), after(names[1]), after(names[2])] == [names[1], names[2], names[0]]


def test_only_reviewers_take_and_answers_are_nothing_to_take(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    author, rev = desk.author, desk.reviewer()
    assert queue.take(principal(author), desk.study, by=author, at=desk.tick()) is None
    desk.review(claim, "dispute", by=rev, link=link)
    assert queue.take(principal(rev), desk.study, by=rev, at=desk.tick()) is None
    with pytest.raises(DomainError, match="expected one of link"):
        queue.take(principal(rev), desk.study, "rubbish", by=rev, at=desk.tick())


@pytest.mark.parametrize("name", ["", "link", "link:1", "LINK:00000000-0000-4000-8000-000000000000", "x:" + "0" * 36])
def test_names_that_are_no_item_are_refused(desk: Desk, name: str) -> None:
    with pytest.raises(DomainError, match="item: got"):
        parse_item(name)
    with pytest.raises(Http404):
        queue.get_item(principal(desk.author), name, at=desk.tick())


def test_minutes_of_a_hold_have_bounds(desk: Desk) -> None:
    claim = desk.claim()
    name = item_of("link", desk.link(claim).uid)
    for minutes in (0, 121):
        with pytest.raises(DomainError, match=f"minutes: got {minutes}, expected 1 to 120"):
            reserve(desk.study, name, by=desk.reviewer(), at=desk.tick(), minutes=minutes)


def test_neighbours_step_over_what_others_hold(desk: Desk) -> None:
    claims = [desk.claim(f"c{n}", f"The note was read{'.' * n}") for n in (1, 2, 3)]
    names = [item_of("link", desk.link(claim).uid) for claim in claims]
    rev, other, at = desk.reviewer(), desk.reviewer("other"), desk.tick()
    reserve(desk.study, names[1], by=other, at=at)
    item = queue.get_item(principal(rev), names[0], at=at)
    place = queue.place_of(principal(rev), item, desk.study, at=at)
    assert (place.number, place.before, place.after) == (1, None, names[2])
    last = queue.get_item(principal(rev), names[2], at=at)
    assert queue.place_of(principal(rev), last, desk.study, at=at) == queue.Place(3, names[0], names[0])


def test_a_reviewer_of_one_study_is_shown_what_she_may_judge(desk: Desk) -> None:
    """A public study waits for its own reviewers; asked for by name it is still listed, and a reader sees all."""
    desk.link(desk.claim())
    Study.objects.filter(pk=desk.study.pk).update(visibility="public")
    other = ensure_study("elsewhere", title={"en": "E"}, summary={"en": "."}, by=desk.author, at=desk.tick())
    user = User.objects.create(username="elsewhere-reviewer")
    Membership.objects.create(study=other, user=user, role=Membership.REVIEWER)
    hers, reader = Principal(user), Principal(User.objects.create(username="reader"))
    assert sum(queue.counts(hers).values()) == 0 and queue.queue_items(hers, at=desk.tick()) == []
    assert frame.counts(hers)["reviews"] == 0
    assert queue.counts(hers, desk.study)["link"] == 1 and queue.counts(reader)["link"] == 1
    assert queue.counts(principal(desk.reviewer()))["link"] == 1


def test_since_is_when_it_changed(desk: Desk) -> None:
    claim, rev = desk.claim(), desk.reviewer()
    at = desk.tick()
    Claim.objects.filter(pk=claim.pk).update(stale=True)
    StaleMark.objects.create(
        uid=uuid.uuid4(), study=desk.study, actor=desk.author, at=at, cause_kind="claim", cause_uid=claim.uid,
        target_kind="claim", target_uid=claim.uid, path=[["claim", str(claim.uid)]], reason="changed",
    )  # fmt: skip
    items = queue.queue_items(principal(rev), desk.study, "claim", at=desk.tick())
    (line,) = reviews.lines(items, rev)
    assert line.at == at != desk.study.created_at


def test_hidden_studies_hold_nothing_for_others(desk: Desk) -> None:

    claim = desk.claim()
    link = desk.link(claim)
    Study.objects.filter(pk=desk.study.pk).update(visibility="private")
    stranger = Principal(User.objects.create(username="stranger"))
    assert sum(queue.counts(stranger).values()) == 0
    with pytest.raises(Http404):
        queue.get_item(stranger, item_of("link", link.uid), at=desk.tick())


def test_what_waits_is_what_the_rows_say_after_every_action(desk: Desk) -> None:
    """The projection equals the queries that it stands for, after each of eleven steps; a stray row is put right."""
    claim = desk.claim()

    def agrees() -> bool:
        return set(waiting.stored(desk.study)) == set(waiting.expected(desk.study))

    steps = [agrees()]
    link = desk.link(claim)
    steps.append(agrees())
    dispute = desk.review(claim, "dispute", link=link)
    steps.append(agrees())
    whole = desk.review(claim, "needs_evidence")
    steps.append(agrees())
    desk.answer(dispute)
    steps.append(agrees())
    desk.answer(whole)
    steps.append(agrees() and Waiting.objects.filter(kind="claim").count() == 1)
    desk.review(claim, link=link)
    desk.review(claim)
    steps.append(agrees() and not Waiting.objects.exists())
    desk.written(claim.key, kind="description", text_en="The note was read.", reason="narrower")
    steps.append(agrees() and Waiting.objects.count() == 1)
    withdraw_link(link, reason="wrong place", **desk.by())
    steps.append(agrees())
    desk.link(claim, "bounds")
    steps.append(agrees() and Waiting.objects.count() == 1)
    withdraw_claim(claim, reason="no longer said", **desk.by())
    steps.append(agrees() and not Waiting.objects.exists())
    assert all(steps) and len(steps) == 11
    Waiting.objects.create(study=desk.study, claim=claim, kind="link", link=link)
    assert not agrees()
    waiting.rebuild(desk.study)
    assert agrees()


def test_verify_names_what_waits_wrongly(desk: Desk) -> None:
    link = desk.link(desk.claim())
    report = VerifyReport({15: "claims"})
    check_waiting(StepLog(report, 15))
    assert report.problems == []
    Waiting.objects.all().delete()
    check_waiting(StepLog(report, 15))
    (problem,) = report.problems
    assert (problem.table, problem.row, problem.column) == ("evidence_waiting", f"link {link.pk}", "kind")
