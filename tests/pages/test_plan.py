"""Studies and plans."""

from __future__ import annotations

import hashlib
import json

from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.actions.actors import service_actor
from runs.actions.plans import save_draft
from tests.pages.state import World

PLAN = "/studies/fatal-mask-pair/plans/small/"


def test_contract_lists_every_field_once(client: Client, world: World, db: None) -> None:
    """One declared difference; equal and different fields together are all compared fields."""
    answer = client.get(PLAN)
    contract = answer.context["contracts"][0]
    assert [(f.path, f.left, f.right) for f in contract.different] == [("objective.credit", "vanilla", "fatal_suffix")]
    assert sum(len(fields) for fields in contract.equal.values()) == contract.count_equal
    text = answer.content.decode()
    assert "differs in 1 of" in text
    assert "clamp_actionable_cases" in text and "counted over e3" in text
    assert "plan.frozen" in text


def test_bytes_are_the_frozen_bytes(client: Client, world: World, db: None) -> None:
    answer = client.get(f"{PLAN}plan.json")
    assert hashlib.sha256(answer.content).hexdigest() == world.version.sha256 == answer["X-Data-SHA256"]
    assert json.loads(answer.content)["plan"]["name"] == "small"


def test_draft_lists_its_problems(client: Client, world: World, db: None) -> None:
    save_draft(world.study, "broken", "schema: workbench.plan/1\nstudy: 3\n", by=service_actor("x"), at=world.clock)
    text = client.get("/studies/fatal-mask-pair/plans/broken/").content.decode()
    assert "A draft that cannot be frozen yet" in text
    assert "study: got 3" in text
    assert client.get("/studies/fatal-mask-pair/plans/broken/plan.json").status_code == 404
    assert "A draft has no results." in client.get("/studies/fatal-mask-pair/plans/broken/results/").content.decode()


def test_study_and_plan_lists(client: Client, world: World, db: None) -> None:
    assert "e3-s17" in client.get("/studies/fatal-mask-pair/").content.decode()
    assert PLAN in client.get("/plans/").content.decode()


def test_unknown_study_plan_and_version(client: Client, world: World, db: None) -> None:
    assert client.get("/studies/none/").status_code == 404
    assert client.get("/studies/fatal-mask-pair/plans/none/").status_code == 404
    assert client.get(PLAN, {"version": "0" * 64}).status_code == 404


def test_query_count_is_bounded(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(25):
        client.get(PLAN)
    with django_assert_max_num_queries(25):
        client.get("/studies/fatal-mask-pair/")
