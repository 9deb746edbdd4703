"""The number of queries of the queue does not depend on how many claims, links and reviews there are."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evidence import queue
from evidence.actions.reviews import item_of
from evidence.models import Link
from runs.access import Principal
from runs.models import User
from tests.evidence_claims.build import Desk
from tests.evidence_reviews.conftest import signed_in
from tests.evidence_reviews.many import fill


@pytest.fixture
def grown(desk: Desk) -> Desk:
    """91 links of thirteen claims, 20 of them accepted: more than one page of the queue."""
    excerpts = [desk.excerpt("a"), desk.excerpt("b", "E2F in 1/27")]
    desk.link(desk.claim(), excerpt=excerpts[0])
    fill(desk, 12, 90, excerpts, desk.reviewer("old"), reviewed=20)
    return desk


def queries(desk: Desk, path: str) -> int:
    """How many the page asks, once everything that a first visit makes is there."""
    client = signed_in(desk, "rev")
    desk.reviewer()
    client.get(path)
    with CaptureQueriesContext(
        connection,
    ) as found:
        assert client.get(path).status_code == 200
    return len(found)


def test_pages_ask_as_often_with_forty_times_as_many_links(grown: Desk) -> None:
    """91 links with 20 accepted leave 71 to review; of 2,400 more with 800 accepted, 1,600 are added to them."""
    link = Link.objects.order_by("pk").first()
    assert link is not None
    paths = ("/reviews/", "/reviews/?kind=link", f"/reviews/{item_of('link', link.uid)}/")
    before = [queries(grown, path) for path in paths]
    excerpts = [grown.excerpt("c", "cuts 4 tokens")]
    fill(grown, 240, 2400, excerpts, grown.reviewer("old"), reviewed=800)
    assert [queries(grown, path) for path in paths] == before
    assert before[0] <= 40 and before[2] <= 75, before
    counts = queue.counts(Principal(User.objects.get(username="rev")), grown.study)
    assert counts["link"] == 71 + 1600


def test_taking_asks_as_often_with_forty_times_as_many_links(grown: Desk) -> None:
    rev = grown.reviewer()
    who = Principal(User.objects.get(username="rev"))

    def asked() -> int:
        with CaptureQueriesContext(connection) as found:
            assert queue.take(who, grown.study, by=rev, at=grown.tick()) is not None
        return len(found)

    asked()
    before = asked()
    fill(grown, 240, 2400, [grown.excerpt("c", "cuts 4 tokens")], grown.reviewer("old"), reviewed=800)
    assert asked() == before <= 25


def test_pages_of_fifty_walk_every_item_once(grown: Desk) -> None:
    client, seen, after = signed_in(grown, "rev"), [], 0
    fill(grown, 10, 80, [grown.excerpt("c", "cuts 4 tokens")], grown.reviewer("old"))
    while True:
        answer = client.get(f"/reviews/?kind=link&after={after}")
        lines = answer.context["lines"]
        seen += [line.item.row.pk for line in lines]
        if answer.context["more"] is None:
            break
        after = answer.context["more"].key
    assert seen == sorted(set(seen)) and len(seen) == 71 + 80
