"""Runs, groups, trajectories, evaluations, jobs, tasks, checkpoints: lists under the query language."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.models import Checkpoint, EvaluationItem, Group, SavedFilter, Trajectory, TrajectoryCredit, User
from tests.pages.state import World

LISTS = ["/runs/", "/groups/", "/trajectories/", "/evaluations/", "/jobs/", "/tasks/", "/checkpoints/"]


def listing(client: Client, address: str, **query: str) -> Any:
    answer = client.get(address, query)
    assert answer.status_code == 200, answer.content.decode()[:500]
    return answer.context["listing"]


def test_runs_by_state(client: Client, world: World, db: None) -> None:
    assert listing(client, "/runs/").count == 8
    for query in ({"state": "completed"}, {"q": "is:completed"}, {"q": "state:completed"}):
        assert {run.name for run in listing(client, "/runs/", **query)} == {"context-s17", "e2f-s17"}
    assert {run.name for run in listing(client, "/runs/", q="arm:E3 -seed:17")} == {"e3-s7", "e3-s42"}


@pytest.mark.parametrize(
    ("address", "query", "said"),
    [
        ("/runs/", "is:pendng", "is:pending"),
        ("/runs/", "arm:e33", "arm:e3"),
        ("/runs/", "stat:running", "state:running"),
        ("/runs/", "reward:>0.5", "it belongs to: Trajectories, Evaluations, Groups"),
        ("/trajectories/", "reward:high", "expected a number"),
        ("/trajectories/", "sort:-rewrd", "sort:-reward"),
        ("/runs/", "updated:>tomorrow", "expected a date"),
        ("/runs/", '"open', "quotation mark is not closed"),
        ("/runs/", "sha:xyz", "hexadecimal"),
        ("/trajectories/", "reward<0.4", "<code>reward:<0.4</code></a>?"),
        ("/trajectories/", "-Reward≥0.4", "<code>-reward:>=0.4</code></a>?"),
        ("/trajectories/", "tokens=200", "<code>tokens:200</code></a>?"),
        ("/runs/", "arm=e3,e4", "<code>arm:e3,e4</code></a>?"),
        ("/runs/", "reward<0.4", "it belongs to: Trajectories, Evaluations, Groups"),
    ],
)
def test_what_cannot_be_understood_is_named(
    client: Client, world: World, db: None, address: str, query: str, said: str
) -> None:
    answer = client.get(address, {"q": query})
    text = answer.content.decode().replace("&gt;", ">").replace("&lt;", "<")
    assert answer.status_code == 400 and said in text
    assert "What can be asked" in text


def test_the_search_too_asks_for_the_colon(client: Client, world: World, db: None) -> None:
    answer = client.get("/search/", {"q": "reward<0.4"})
    assert answer.status_code == 400 and [e.suggestion for e in answer.context["found"].errors] == ["reward:<0.4"]


@pytest.mark.parametrize("query", ['"reward<0.4"', "x<0.4", "reward<", "loss=low"])
def test_a_word_with_a_sign_is_text_where_it_names_no_key_or_stands_in_quotes(
    client: Client, world: World, db: None, query: str
) -> None:
    found = listing(client, "/trajectories/", q=query)
    assert found.errors == () and found.count == 0


def test_an_unknown_state_is_no_silent_filter(client: Client, world: World, db: None) -> None:
    answer = client.get("/runs/", {"state": "' OR 1=1"})
    assert answer.status_code == 400 and not answer.context["listing"].rows


def test_evaluations_narrow_by_arm_condition_and_outcome(client: Client, world: World, db: None) -> None:
    found = listing(client, "/evaluations/", arm="parent", condition="stress", outcome="finish")
    wanted = EvaluationItem.objects.filter(run=None, condition="stress", trajectory__terminal="finish")
    assert found.count == wanted.count() > 0
    assert found.text == "condition:stress is:parent stop:finish"


def test_trajectories_by_what_they_hold(client: Client, world: World, db: None) -> None:
    fatal = listing(client, "/trajectories/", q="has:fatal")
    assert fatal.count == Trajectory.objects.filter(fatal_confirmed__isnull=False).count() > 0
    masked = listing(client, "/trajectories/", q="has:masked")
    wanted = TrajectoryCredit.objects.filter(masked_tokens__gt=0).values("trajectory").distinct().count()
    assert masked.count == wanted > 0
    effective = listing(client, "/trajectories/", q="is:effective")
    assert effective.count == TrajectoryCredit.objects.filter(trained_tokens__gt=0).count() > 0
    both = listing(client, "/trajectories/", q="is:valid,invalid")
    assert both.count == Trajectory.objects.count()


def test_sorted_with_missing_values_last_and_every_row_once(client: Client, world: World, db: None) -> None:
    for sort, falling in (("sort:-reward", True), ("sort:reward", False)):
        seen: list[Any] = []
        found = listing(client, "/trajectories/", q=sort)
        while True:
            seen += list(found)
            if not found.next_url:
                break
            found = client.get(found.next_url).context["listing"]
        assert len({row.pk for row in seen}) == len(seen) == Trajectory.objects.count()
        values = [row.reward_total for row in seen if row.reward_total is not None]
        assert values == sorted(values, reverse=falling)
        assert all(row.reward_total is None for row in seen[len(values) :])


def test_way_back_gives_the_same_page(client: Client, world: World, db: None) -> None:
    for sort in ("sort:-created", "sort:-reward", "sort:advantage"):
        first = listing(client, "/trajectories/", q=sort)
        second = client.get(first.next_url).context["listing"]
        again = client.get(second.previous_url).context["listing"]
        assert [row.pk for row in again] == [row.pk for row in first]
        assert not again.previous_url


@pytest.mark.parametrize("cursor", ["x", "!!!", "W10", "WyItY3JlYXRlZCIsInYiLG51bGwsMSwxXQ" * 40])
def test_a_foreign_cursor_is_said_and_the_list_begins_anew(client: Client, world: World, db: None, cursor: str) -> None:
    answer = client.get("/trajectories/", {"after": cursor})
    assert answer.status_code == 200 and answer.context["listing"].rows
    assert "not one that the list gave out" in answer.content.decode()


def test_other_lists_keep_the_terms_that_they_know(client: Client, world: World, db: None) -> None:
    found = listing(client, "/trajectories/", q="arm:e3 has:masked slot:0")
    urls = {str(other.word): other.url for other in found.others}
    assert urls["Runs"] == "/runs/?q=arm%3Ae3"
    assert urls["Groups"] == "/groups/?q=arm%3Ae3+has%3Amasked"


def test_the_viewer_follows_the_filter(client: Client, world: World, db: None) -> None:
    found = listing(client, "/trajectories/", q="has:fatal sort:-reward")
    rows = list(found)
    page = client.get(f"/trajectories/{rows[1].uid}/{found.carried}")
    within = page.context["within"]
    assert str(rows[0].uid) in within.previous_url and str(rows[2].uid) in within.next_url
    assert client.get(f"/trajectories/{rows[1].uid}/").context["within"] is None
    text = page.content.decode()
    assert text.index('data-key="next"') == text.index('data-key="next"', text.index("withinlist"))


def test_histogram_narrows(client: Client, world: World, db: None) -> None:
    histogram = listing(client, "/groups/").histogram
    assert sum(bar.count for bar in histogram.bars) == Group.objects.count()
    bar = max(histogram.bars, key=lambda b: b.count)
    assert listing(client, "/groups/", q=bar.query).count == bar.count


def test_saved_filters(signed_in: Client, person: User, world: World, db: None) -> None:
    kept = {"page": "runs", "name": "mine", "query": "is:running"}
    assert signed_in.post("/filters/save/", kept).headers["Location"] == "/runs/?q=is%3Arunning"
    found = SavedFilter.objects.get(user=person)
    assert signed_in.get(f"/filters/{found.pk}/").headers["Location"] == "/runs/?q=is%3Arunning"
    assert "mine" in signed_in.get("/runs/").content.decode()
    signed_in.post("/filters/save/", {**kept, "query": "is:nonsense:("})
    signed_in.post("/filters/save/", {**kept, "page": "elsewhere"})
    assert SavedFilter.objects.filter(user=person).count() == 1
    other = User.objects.create(username="other")
    foreign = SavedFilter.objects.create(user=other, page="runs", name="x", query="y", created_at=world.clock)
    assert signed_in.get(f"/filters/{foreign.pk}/").status_code == 404
    assert signed_in.post(f"/filters/{foreign.pk}/delete/").status_code == 404
    signed_in.post(f"/filters/{found.pk}/delete/")
    assert list(SavedFilter.objects.all()) == [foreign]


def test_saving_needs_a_login(client: Client, world: World, db: None) -> None:
    answer = client.post("/filters/save/", {"page": "runs", "name": "a", "query": "b"})
    assert answer.status_code == 302 and "login" in answer.headers["Location"]
    assert not SavedFilter.objects.exists()


def test_checkpoints_name_their_parent(client: Client, world: World, db: None) -> None:
    text = client.get("/checkpoints/").content.decode()
    assert "warm start" in text and Checkpoint.objects.first().sha256[:12] in text  # type: ignore[union-attr]


def test_the_language_is_explained(client: Client, world: World, db: None) -> None:
    text = client.get("/query-language/").content.decode()
    assert "sort:-created" in text and "has:fatal" in text


@pytest.mark.parametrize("address", LISTS)
def test_query_count_does_not_grow_with_rows(
    client: Client, world: World, db: None, address: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(26):
        assert client.get(address).status_code == 200


@pytest.mark.parametrize("address", LISTS)
def test_nothing_is_written_through_a_list(client: Client, world: World, db: None, address: str) -> None:
    assert client.post(address).status_code == 405
