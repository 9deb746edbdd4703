"""Runs, evaluations, checkpoints: flat lists with filters and pages."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.models import Checkpoint, EvaluationItem
from tests.pages.state import World


def test_runs_by_state(client: Client, world: World, db: None) -> None:
    assert client.get("/runs/").context["listing"].paginator.count == 8
    completed = client.get("/runs/", {"state": "completed"}).context["listing"]
    assert {run.name for run in completed} == {"context-s17", "e2f-s17"}


def test_an_unknown_state_filters_nothing(client: Client, world: World, db: None) -> None:
    assert client.get("/runs/", {"state": "' OR 1=1"}).context["listing"].paginator.count == 8


def test_evaluations_narrow_by_arm_condition_and_outcome(client: Client, world: World, db: None) -> None:
    query = {"arm": "parent", "condition": "stress", "outcome": "finish"}
    listing = client.get("/evaluations/", query).context["listing"]
    wanted = EvaluationItem.objects.filter(run=None, condition="stress", trajectory__terminal="finish")
    assert listing.paginator.count == wanted.count()


def test_checkpoints_name_their_parent(client: Client, world: World, db: None) -> None:
    listing = client.get("/checkpoints/").context["listing"]
    assert listing.paginator.count == Checkpoint.objects.count()
    assert "warm start" in client.get("/checkpoints/").content.decode()


def test_a_page_out_of_range_gives_the_last_one(client: Client, world: World, db: None) -> None:
    listing = client.get("/evaluations/", {"page": "999"}).context["listing"]
    assert listing.number == listing.paginator.num_pages > 1
    assert client.get("/evaluations/", {"page": "x"}).context["listing"].number == 1


@pytest.mark.parametrize(("address", "limit"), [("/runs/", 20), ("/evaluations/", 20), ("/checkpoints/", 20)])
def test_query_count_does_not_grow_with_rows(
    client: Client,
    world: World,
    db: None,
    address: str,
    limit: int,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_max_num_queries(limit):
        client.get(address)


@pytest.mark.parametrize("address", ["/runs/", "/evaluations/", "/checkpoints/"])
def test_nothing_is_written_through_a_list(client: Client, world: World, db: None, address: str) -> None:
    assert client.post(address).status_code == 405
