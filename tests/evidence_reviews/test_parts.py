"""Who has a part in a claim's evidence cannot review it: the action, the queue, a hold and ``verify`` agree."""

from __future__ import annotations

from typing import Any

import pytest

from evidence import queue
from evidence.actions.claims import add_claim
from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.links import add_link, withdraw_link
from evidence.actions.record import append, record_uid
from evidence.actions.reviews import OwnWork, item_of, reserve
from evidence.checks.evidence_claims import check_reviews
from evidence.models import Claim, Figure, Link, Reservation, Review
from evidence.parts import parts_of
from evidence.report import StepLog, VerifyReport
from runs.access import Principal
from runs.models import Actor, Membership, User
from tests.api.conftest import make_caller
from tests.evidence_claims.build import Desk, named
from tests.evidence_reviews.conftest import signed_in
from tests.sweeps import sweep

PARTS = ("version", "link", "withdrawn", "shown", "linked", "operand", "behind", "excerpt", "quoted")
SHARE = {"type": "derivation", "expression": "a / b", "figures": {"a": "n", "b": "of"}}
CUT = {"type": "excerpt", "excerpt": "cut", "number": "4", "occurrence": 1}


def bound(desk: Desk, key: str, binding: dict[str, Any], by: Actor, **more: Any) -> Figure:
    """A figure of the note, bound by somebody."""
    return bind_figure(
        desk.study, key, binding, title_en=key, kind="environment", by=by, at=desk.tick(), **{"digits": 2, **more}
    ).figure


def evidence(desk: Desk, part: str, who: Actor) -> tuple[Claim, Link]:
    """A claim that shows a derived share, linked twice, in which ``who`` has this one part; the author has all else."""
    by = {name: who if name == part else desk.author for name in PARTS}
    source = desk.source()
    take = {"by": by["quoted"], "at": desk.tick()}
    add_excerpt(desk.study, source, "cut", "quote", {"exact": "cuts 4 tokens"}, **take)
    bound(desk, "n", CUT, by["behind"])
    bound(desk, "of", CUT, by["operand"])
    bound(desk, "share", SHARE, by["shown"])
    bound(desk, "named", CUT, by["linked"])
    claim = desk.claim(text="Cut: [[share]].")
    if part == "version":
        add_claim(desk.study, claim.key, text_en=named("Cut again: [[share]]."), kind="description", by=who,
                  at=desk.tick(), reason="clearer")  # fmt: skip
    quoted = add_excerpt(desk.study, source, "own", "quote", {"exact": "The mask"}, by=by["excerpt"], at=desk.tick())
    gone = desk.link(claim, "background", excerpt=desk.excerpt("gone", "1/27 of the same"))
    withdraw_link(gone, reason="not needed", by=by["withdrawn"], at=desk.tick())
    desk.link(claim, "bounds", figure=Figure.objects.get(key="named"))
    link = add_link(claim, excerpt=quoted, relation="supports", reach_en="No more.", by=by["link"], at=desk.tick())
    claim.refresh_from_db()
    return claim, link


def principal(actor: Actor) -> Principal:
    assert actor.user is not None
    return Principal(User.objects.get(pk=actor.user.pk))


def offered(desk: Desk, who: Actor) -> set[str]:
    """Everything that the queue hands out to somebody, kind by kind; held by nobody afterwards."""
    found: set[str] = set()
    for kind in ("link", "source", "figure", "claim"):
        name = ""
        while True:
            row = queue.take(principal(who), desk.study, kind, by=who, at=desk.tick(), skip=name)
            if row is None or row.item in found:
                break
            found.add(name := row.item)
    Reservation.objects.all().delete()
    return found


@pytest.mark.parametrize("part", sweep(PARTS, ("version", "link", "operand")))
def test_the_action_the_queue_and_a_hold_refuse_who_has_a_part(desk: Desk, part: str) -> None:
    """Who only wrote or withdrew one link may review the other; every other part bars both of them and the claim."""
    both, rev = desk.reviewer("both"), desk.reviewer()
    claim, _link = evidence(desk, part, both)
    links = list(Link.objects.filter(withdrawal__isnull=True).order_by("pk"))
    items = {item_of("link", link.uid): link for link in links}
    assert offered(desk, rev) == set(items)
    free: set[str] = set()
    for name, link in items.items():
        try:
            reserve(desk.study, name, by=both, at=desk.tick())
            free.add(name)
        except OwnWork:
            with pytest.raises(OwnWork, match="ask a reviewer of another family"):
                desk.review(claim, link=link, by=both)
    expected = {"link": 1, "withdrawn": 2}.get(part, 0)
    assert len(free) == expected and offered(desk, both) == free
    with pytest.raises(OwnWork):
        desk.review(claim, by=both)
    for name in free:
        desk.review(claim, link=items[name], by=both)
    desk.review(claim, by=rev)


def test_the_page_says_which_part_it_is(desk: Desk) -> None:
    both = desk.reviewer("both")
    _claim, link = evidence(desk, "operand", both)
    page = signed_in(desk, "both").get(f"/reviews/{item_of('link', link.uid)}/").content.decode()
    assert "You wrote the binding of figure of, from which another is derived; somebody who wrote none" in page


@pytest.mark.parametrize(
    "first",
    [CUT, {"type": "derivation", "expression": "n + 3", "figures": {"n": "n"}}],
    ids=["quoted", "typed constant"],
)
@pytest.mark.parametrize("kind", ["claim", "link"])
def test_page_and_api_refuse_who_bound_an_operand_at_any_depth(desk: Desk, first: dict[str, Any], kind: str) -> None:
    """Three derivations on, whoever quoted the number or typed a constant is still refused; another reviewer is not."""
    both = desk.reviewer("both")
    add_excerpt(desk.study, desk.source(), "cut", "quote", {"exact": "cuts 4 tokens"}, by=desk.author, at=desk.tick())
    bound(desk, "n", CUT, desk.author)
    bound(desk, "d0", first, both)
    for step in (1, 2, 3):
        figures = {"x": f"d{step - 1}", "y": "n"}
        bound(desk, f"d{step}", {"type": "derivation", "expression": "x + y", "figures": figures}, desk.author)
    claim = desk.claim(text="Cut: [[d3]].")
    link = desk.link(claim, "supports", figure=Figure.objects.get(key="d3"))
    item = item_of(kind, claim.uid if kind == "claim" else link.uid)
    given = {"verdict": "accept", "reason": "it computes", "looked_at": ["derivations"]}
    body = given if kind == "claim" else {**given, "link": str(link.uid)}
    said = "the binding of figure d0, from which another is derived"

    page = signed_in(desk, "both").post(f"/reviews/{item}/record/", given)
    assert page.status_code == 403 and said in page.content.decode()
    answer = make_caller("both", desk.study, Membership.REVIEWER).post(f"claims/{claim.uid}/reviews", body)
    assert answer.status_code == 403 and said in answer.json()["detail"]
    assert not Review.objects.exists()

    other = make_caller("rev", desk.study, Membership.REVIEWER)
    assert other.post(f"claims/{claim.uid}/reviews", body).status_code == 201
    assert signed_in(desk, "rev").post(f"/reviews/{item}/record/", given).status_code == 302
    assert Review.objects.count() == 2


def test_who_bound_a_changed_figure_is_not_given_it(desk: Desk) -> None:
    """The figure waits for everybody else."""
    both, rev = desk.reviewer("both"), desk.reviewer()
    evidence(desk, "operand", both)
    Figure.objects.filter(key__in=("share", "named")).update(stale=True)
    figures = {item_of("figure", row.uid): row.key for row in Figure.objects.filter(stale=True)}
    assert {figures[name] for name in offered(desk, rev) if name in figures} == {"share", "named"}
    assert {figures[name] for name in offered(desk, both) if name in figures} == {"named"}


def forged(desk: Desk, claim: Claim, link: Link | None, who: Actor, independence: str) -> Review:
    """A review with its receipt that no action would have written."""
    version = claim.current
    assert version is not None
    count = Review.objects.filter(claim=claim).count()
    return append(
        Review(
            uid=record_uid(claim.uid, "review", str(count + 1)), study=desk.study, actor=who, at=desk.tick(),
            claim=claim, claim_version=version, link=link, verdict="accept", reason="read it",
            looked_at=["quotation"], independence=independence,
        )
    )  # fmt: skip


def found(desk: Desk) -> list[tuple[str, str]]:
    """(column, what) of everything that ``verify`` says of reviewers."""
    report = VerifyReport({15: "claims"})
    check_reviews(StepLog(report, 15))
    return [(item.column, str(item.got)) for item in report.problems]


@pytest.mark.parametrize("part", PARTS)
def test_verify_names_every_reviewer_with_a_part_at_that_time(desk: Desk, part: str) -> None:
    both = desk.reviewer("both")
    claim, link = evidence(desk, part, both)
    forged(desk, claim, link, both, "same_family")
    expected = 0 if part == "withdrawn" else 1
    assert [column for column, _got in found(desk)] == ["actor"] * expected
    forged(desk, claim, None, both, "same_family")
    assert [column for column, _got in found(desk)] == ["actor"] * (expected + 1)
    assert [str(item) for item in parts_of(claim) if item.actor == both]


def test_verify_names_a_kin_of_an_operands_binder_who_counts_as_independent(desk: Desk) -> None:
    claim, link = evidence(desk, "operand", desk.reviewer("one", family="lab"))
    forged(desk, claim, link, desk.reviewer("two", family="lab"), "independent")
    assert found(desk) == [("independence", "independent")]


def test_what_is_made_after_a_review_does_not_make_it_wrong(desk: Desk) -> None:
    """The reviewer binds the operand anew and writes words afterwards: the review of before stands."""
    rev = desk.reviewer()
    claim, link = evidence(desk, "", rev)
    desk.review(claim, link=link, by=rev)
    bound(desk, "of", CUT, rev, reason="a better title", title_zh="另")
    add_claim(desk.study, claim.key, text_en=named("Cut later: [[share]]."), kind="description", by=rev,
              at=desk.tick(), reason="clearer")  # fmt: skip
    assert found(desk) == []
    with pytest.raises(OwnWork):
        desk.review(claim, by=rev)
