"""No sequence of reviews, lowerings, links and changes of evidence puts a status above its cap."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence.actions.claims import SETTABLE, lower_claim
from evidence.actions.links import withdraw_link
from evidence.models import Claim, Link, LinkWithdrawal, Review, Source
from evidence.reviewing import reviews_of
from evidence.status import Derived, derive, rank, refresh_claim
from runs.errors import DomainError
from tests.evidence_claims.build import Desk

STEPS = st.one_of(
    st.tuples(st.just("link"), st.sampled_from(Link.RELATIONS)),
    st.tuples(st.just("unlink"), st.integers(0, 3)),
    st.tuples(st.just("relink"), st.integers(0, 3)),
    st.tuples(
        st.just("review"), st.sampled_from(Review.VERDICTS), st.sampled_from(["one", "two", "mate"]), st.integers(0, 3)
    ),
    st.tuples(st.just("answer"), st.integers(0, 3)),
    st.tuples(st.just("lower"), st.sampled_from(SETTABLE)),
    st.tuples(st.just("words"), st.sampled_from(["Runs were made.", "Runs were counted."])),
    st.tuples(st.just("source"), st.sampled_from([Source.VERIFIED, Source.DRIFTED, Source.MISSING])),
)


def step(desk: Desk, claim: Claim, what: tuple[Any, ...], number: int) -> None:
    """Do one thing; a refusal is an outcome like any other."""
    links = list(claim.links.order_by("pk"))
    chosen = links[what[-1] % len(links)] if links and isinstance(what[-1], int) else None
    match what:
        case ("link", relation):
            desk.link(claim, relation, excerpt=desk.excerpt(f"e{number}"))
        case ("unlink", _) if chosen is not None:
            withdraw_link(chosen, reason="a mistake", **desk.by())
        case ("relink", _) if chosen is not None:
            withdraw_link(chosen, reason="linked anew", **desk.by())
            desk.link(claim, chosen.relation, excerpt=chosen.excerpt)
        case ("review", verdict, who, _):
            by = desk.reviewer("mate", family="house") if who == "mate" else desk.reviewer(who)
            desk.review(claim, verdict, link=chosen, by=by)
        case ("answer", _):
            open_ones = [item.review for item in reviews_of(claim) if item.review.verdict != Review.ACCEPT]
            if open_ones:
                desk.answer(open_ones[what[1] % len(open_ones)])
        case ("lower", status):
            lower_claim(claim, status, reason="by hand", **desk.by())
        case ("words", text):
            desk.claim(text=text, reason="other words")
        case ("source", state):
            Source.objects.filter(study=desk.study).update(state=state)
            refresh_claim(claim, at=desk.by()["at"])  # as the check of bytes does that finds it


def check_disputes(claim: Claim, found: Derived) -> None:
    """Told from the rows alone, in the order of their keys: an unanswered dispute holds, whatever became of its link.

    And nobody's acceptance from before the last link or withdrawal supports.
    """
    rows = list(claim.reviews.order_by("pk"))
    own_later = {(row.actor_id, row.link_id): row.pk for row in rows}
    for row in rows:
        newest = own_later[(row.actor_id, row.link_id)] == row.pk
        accepted_later = any(
            other.link_id == row.link_id and other.pk > row.pk and other.verdict == Review.ACCEPT for other in rows
        )
        if row.verdict == Review.DISPUTE and newest and not accepted_later:
            assert found.disputed, "a dispute that nobody settled is gone"
    changed = [*claim.links.values_list("at", flat=True)]
    changed += LinkWithdrawal.objects.filter(link__claim=claim).values_list("at", flat=True)
    if found.status == Claim.SUPPORTED:
        accepted = [row.at for row in rows if row.verdict == Review.ACCEPT]
        assert max(accepted) >= max(changed)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=14))
def test_no_sequence_of_steps_puts_a_status_above_its_cap(desk: Desk, steps: list[tuple[Any, ...]]) -> None:
    walk(desk, steps)


@pytest.mark.gate
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=14))
def test_none_of_many_sequences_puts_a_status_above_its_cap(desk: Desk, steps: list[tuple[Any, ...]]) -> None:
    walk(desk, steps)


def walk(desk: Desk, steps: list[tuple[Any, ...]]) -> None:
    """Do the steps and check every invariant after each; all of it is rolled back."""
    with transaction.atomic():
        desk.people.clear()  # of the example before, which was rolled back
        desk.author = desk.reviewer("writer", family="house")
        claim = desk.claim(text="Runs were made.")
        desk.reviewer("one")  # here: a step that is refused takes back what it made
        desk.reviewer("two")
        desk.reviewer("mate", family="house")
        for number, what in enumerate(steps):
            try:
                with transaction.atomic():
                    step(desk, claim, what, number)
            except DomainError:
                pass
            claim.refresh_from_db()
            found = derive(claim)
            assert rank(found.status) <= rank(found.cap)
            assert rank(claim.status) <= rank(claim.cap)
            assert (claim.status, claim.cap) == (found.status, found.cap), what
            assert found.status == "supported" or found.reasons
            if found.disputed:
                assert rank(found.status) <= rank(Claim.NOT_ESTABLISHED)
            check_disputes(claim, found)
            if not claim.links.filter(relation="supports", withdrawal__isnull=True).exists():
                assert rank(found.status) <= rank(Claim.NOT_ESTABLISHED)
            if found.accepted != Review.INDEPENDENT:
                assert rank(found.status) <= rank(Claim.PARTLY)
        transaction.set_rollback(True)
