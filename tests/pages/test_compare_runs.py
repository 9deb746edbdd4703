"""Runs side by side: verdict first, configuration and code, outcomes, curves over a shared axis."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.actions.actors import service_actor
from runs.actions.plans import freeze_plan, plan_body, save_draft
from runs.models import Arm, Group, Run, RunHead, Study
from runs.presenters.compare.curves import Clock, clock_of
from runs.presenters.compare.runs import differences, paired_difference, styles
from tests.pages.state import World, fake_sha
from tests.pages.world import plan_document

ADDRESS = "/compare/"


def _ask(world: World, *names: str) -> dict[str, list[str]]:
    return {"run": [str(world.runs[name].uid) for name in names]}


def _other_plan(world: World, **bindings: Any) -> Run:
    """A run of a second frozen plan that binds something else."""
    import json

    actor, body = service_actor("scheduler"), plan_body(world.version)
    document = plan_document(2, ["17"]) | {"name": "second"}
    plan = save_draft(world.study, "second", json.dumps(document), by=actor, at=world.tick())
    version = freeze_plan(plan, {**body["bindings"], **bindings}, by=actor, at=world.tick())
    arm = Arm.objects.get(plan_version=version, key="e3")
    run = Run.objects.create(
        uid=uuid.uuid4(), plan_version=version, arm=arm, seed="17", name="e3-s17", created_at=world.tick()
    )
    RunHead.objects.create(run=run, state="pending", updated_at=world.clock)
    return run


def test_runs_of_one_plan_are_comparable(client: Client, world: World, db: None) -> None:
    """e2f against e3 of one seed: credit is the one field that differs, no code does."""
    answer = client.get(ADDRESS, _ask(world, "e2f-s17", "e3-s17"))
    assert answer.context["verdict"].comparable
    assert [(d.path, d.values) for d in answer.context["config"].different] == [
        ("objective.credit", ("vanilla", "fatal_suffix"))
    ]
    assert answer.context["code"].different == []
    text = answer.content.decode()
    assert text.index('id="comparability"') < text.index('id="outcomes"')
    assert "1 run has not completed: e3-s17" in text


def test_counts_equal_the_rows_and_differences_are_paired(client: Client, world: World, db: None) -> None:
    """context and e2f are both evaluated: 18 items a condition; the difference is over the 9 shared tasks."""
    answer = client.get(ADDRESS, _ask(world, "context-s17", "e2f-s17"))
    table = next(t for t in answer.context["tables"] if t.condition == "stress")
    assert table.stored == [18, 18] and table.planned == [18, 18]
    for row in table.rows:
        first, second = row.cells
        assert first.difference is None and second.tasks == 9
        assert abs(second.difference - (second.n / second.of - first.n / first.of)) < 1e-9


def test_another_reward_code_blocks_by_name(client: Client, world: World, db: None) -> None:
    run = _other_plan(world, reward={"code_sha256": fake_sha("other reward")})
    query = {"run": [str(world.runs["e3-s17"].uid), str(run.uid)]}
    answer = client.get(ADDRESS, query)
    text = answer.content.decode()
    assert [str(word) for word in answer.context["verdict"].blocks] == ["reward code"]
    assert "These 2 runs may not be compared: reward code." in text
    assert 'id="outcomes"' not in text and "reward and signal are withheld" in text
    assert {chart.key for chart in answer.context["charts"]}.isdisjoint({"reward", "sigma", "silent"})
    assert [d.path for d in answer.context["code"].different] == ["reward.code_sha256"]
    assert client.get("/compare/series/reward.json", query).status_code == 409
    assert client.get("/compare/series/loss.json", query).status_code == 200


def test_another_runtime_limits_and_does_not_block(client: Client, world: World, db: None) -> None:
    run = _other_plan(world, runtime="another machine")
    answer = client.get(ADDRESS, {"run": [str(world.runs["e3-s17"].uid), str(run.uid)]})
    assert answer.context["verdict"].comparable
    assert [row.key for row in answer.context["verdict"].unequal] == ["runtime"]
    assert "several plans" in answer.content.decode()
    assert [style.label for style in answer.context["styles"]] == ["e3-s17 small", "e3-s17 second"]


def test_a_run_without_a_plan_is_compared_over_layers_alone(
    client: Client, world: World, staff: Client, db: None
) -> None:
    run = Run.objects.create(uid=uuid.uuid4(), seed="1", origin="tracked", name="tracked-1", created_at=world.clock)
    RunHead.objects.create(run=run, state="completed", updated_at=world.clock)
    query = {"run": [str(world.runs["e3-s17"].uid), str(run.uid)]}
    assert client.get(ADDRESS, query).status_code == 404  # what judged it is not known, so nothing here may be said
    assert staff.get(ADDRESS, query).status_code == 404


@pytest.fixture
def staff(db: None) -> Client:
    """A signed-in administrator of the site."""
    from runs.models import User

    found = Client()
    found.force_login(User.objects.create(username="root", is_superuser=True))
    return found


def test_fields_of_three_sides() -> None:
    """a equal (1 and 1.0 have one canonical form), b differs in one, c is missing in one, d is null everywhere."""
    found = differences(
        [{"a": 1, "b": 1, "c": 1, "d": None}, {"a": 1.0, "b": 2, "d": None}, {"a": 1, "b": 1, "c": 1, "d": None}]
    )
    assert [(d.path, d.values) for d in found.different] == [("b", (1, 2, 1)), ("c", (1, None, 1))]
    assert (found.equal, found.total) == (2, 4)


def test_paired_difference_of_a_worked_example() -> None:
    """Tasks x, y shared: x 1/2 -> 2/2 (+0.5), y 2/2 -> 1/2 (-0.5), z only in one: mean 0 over 2 tasks."""
    base = {"x": {"n": 1, "valid": 2}, "y": {"n": 2, "valid": 2}, "z": {"n": 2, "valid": 2}}
    side = {"x": {"n": 2, "valid": 2}, "y": {"n": 1, "valid": 2}}
    assert paired_difference(base, side, "n") == (0.0, 2)
    assert paired_difference(base, {"x": {"n": 2, "valid": 2}}, "n") == (0.5, 1)
    assert paired_difference(base, {"x": {"n": 0, "valid": 0}}, "n") == (None, 0)
    assert paired_difference(base, base, "n") == (None, 3)


def test_the_axes_of_a_worked_clock() -> None:
    """Groups 0, 1, 2 of 4 slots and 10, 20, 30 tokens; step 0 consumed up to group 1, step 1 up to group 2."""
    clock = Clock([0, 1, 2], [4.0, 8.0, 12.0], [10.0, 30.0, 60.0], [0.0, 1.0, 2.5], {0: 1, 1: 2})
    assert [clock.at_group("tokens")(x) for x in (0, 1, 2)] == [10.0, 30.0, 60.0]
    assert clock.at_group("trajectories")(-1) is None
    assert clock.at_step("tokens")(0) == 30.0 and clock.at_step("time")(1) == 2.5
    assert clock.at_step("tokens")(9) is None


def test_the_clock_of_a_run_adds_up(world: World, db: None) -> None:
    run = world.runs["e3-s17"]
    clock = clock_of(run)
    groups = Group.objects.filter(run=run, purpose="train").order_by("ordinal")
    assert clock.trajectories[-1] == 4 * groups.count()
    assert clock.tokens[-1] == RunHead.objects.get(run=run).generated_tokens
    first, last = groups[0].created_at, groups.reverse()[0].created_at
    assert clock.minutes[-1] == (last - first) / timedelta(minutes=1)


def test_series_over_tokens(client: Client, world: World, db: None) -> None:
    query = {**_ask(world, "e3-s17", "e2f-s17"), "axis": "tokens"}
    data = client.get("/compare/series/loss.json", query).json()
    assert [line["name"] for line in data["lines"]] == ["e3-s17", "e2f-s17"]
    clock = clock_of(world.runs["e3-s17"])
    assert data["lines"][0]["x"] == [clock.at_step("tokens")(step) for step in sorted(clock.step_groups)]
    assert data["axis"] == "tokens generated" and data["lines"][0]["n_dropped"] == 0


def test_seeds_share_a_colour_and_differ_by_dash(world: World, db: None) -> None:
    found = styles([world.runs[name] for name in ("e3-s17", "e3-s7", "e2f-s17")])
    assert found[0].colour == found[1].colour != found[2].colour
    assert found[0].dash != found[1].dash and found[2].dash == "solid"


@pytest.mark.parametrize("query", [{"run": ["x"]}, {"run": [str(uuid.UUID(int=1))]}])
def test_unknown_runs_are_not_found(client: Client, world: World, db: None, query: dict[str, list[str]]) -> None:
    assert client.get(ADDRESS, query).status_code == 404
    assert client.get("/compare/series/loss.json", query).status_code == 404


def test_seven_runs_an_unknown_chart_and_axis_are_refused(client: Client, world: World, db: None) -> None:
    runs = [str(run.uid) for run in world.runs.values()][:7]
    assert len(runs) == 7
    assert client.get(ADDRESS, {"run": runs}).status_code == 404
    assert client.get("/compare/series/nothing.json", {"run": runs[:2]}).status_code == 404
    assert client.get("/compare/series/loss.json", {"run": runs[:2], "axis": "x"}).status_code == 404


def test_hidden_runs_are_neither_offered_nor_found(client: Client, world: World, db: None) -> None:
    assert "e3-s17" in client.get(ADDRESS).content.decode()
    Study.objects.filter(pk=world.study.pk).update(visibility=Study.PRIVATE)
    assert "e3-s17" not in client.get(ADDRESS).content.decode()
    assert client.get(ADDRESS, _ask(world, "e2f-s17", "e3-s17")).status_code == 404


def test_query_count(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    names = ("context-s17", "e2f-s17", "e3-s17", "e3-s7", "e2f-s7", "e4-s17")
    with django_assert_max_num_queries(22):
        client.get(ADDRESS, _ask(world, *names))
