"""The first page."""

from __future__ import annotations

from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.pages.state import World


def test_running_attention_and_studies(client: Client, world: World, db: None) -> None:
    """The run that goes on has done 8 of 16 groups: 2 of the plan's 4 batches, P = 4."""
    text = client.get("/").content.decode()
    assert "1 run goes on; 2 of 8 completed; 2 things need a look." in text
    assert "8 of 16 groups" in text
    assert "collecting rollouts, 9 of 16" in text
    assert "gate: 2 actionable cases, minimum 3" in text
    assert "MemoryError" in text
    assert 'href="/studies/fatal-mask-pair/"' in text


def test_live_fragment_polls_only_while_something_runs(client: Client, world: World, db: None) -> None:
    from runs.models import RunHead

    assert "every 2s" in client.get("/now/live/").content.decode()
    RunHead.objects.filter(state="running").update(state="completed")
    assert "every 2s" not in client.get("/now/live/").content.decode()


def test_query_count_is_bounded(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(26):
        client.get("/")


def test_post_is_refused(client: Client, world: World, db: None) -> None:
    assert client.post("/").status_code == 405
