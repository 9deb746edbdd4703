"""The page of a strict pair: comparability before any difference, contract, flips, and what may be said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.actions.closure import item_facts
from runs.actions.documents import store_document
from runs.actions.plans import plan_body
from runs.models import Group, Run, Study
from runs.presenters.compare.identity import DIFFERS, EQUAL, UNSURE, Comparability, fingerprint, state_of, witnesses
from runs.presenters.compare.pairing import OUTCOMES, flips, paired_rows, strips
from runs.statistics.aggregate import build_aggregate
from tests.pages.state import World
from tests.pages.world import evaluate
from workbench.contracts.canonical import canonical_bytes

PAIR = "/studies/fatal-mask-pair/plans/small/pairs/e2f/e3/"


def _close(world: World) -> dict[str, Any]:
    run = world.runs["e3-s17"]
    run.head.refresh_from_db()
    evaluate(world, run, run.head.checkpoint, 0.8)
    body = plan_body(world.version)["plan"]
    aggregate = build_aggregate(
        plan_sha256=world.version.sha256,
        endpoints=body["endpoints"],
        strict_pairs=body["strict_pairs"],
        items=item_facts(world.execution),
        resamples=200,
    )
    store_document("aggregate", world.execution.uid, canonical_bytes(aggregate))
    return aggregate


def _item(task: str, arm: str, seed: str, repeat: int, success: bool | None) -> dict[str, Any]:
    return {
        "task__key": task,
        "task__family": "f",
        "arm": arm,
        "seed": seed,
        "repeat": repeat,
        "trajectory__status": "valid" if success is not None else "infrastructure_invalid",
        "trajectory__success": success,
        "trajectory__uid": f"{task}{arm}{seed}{repeat}",
    }


def test_the_pending_pair_shows_contract_and_no_interval(client: Client, world: World, db: None) -> None:
    """One field differs, as declared; the second arm is not evaluated, so every difference is pending."""
    answer = client.get(PAIR)
    text = answer.content.decode()
    contract = answer.context["contract"]
    assert [(f.path, f.left, f.right) for f in contract.different] == [("objective.credit", "vanilla", "fatal_suffix")]
    assert "may be compared: they differ in objective.credit alone" in text
    assert all(line.stored is None for place in answer.context["places"] for line in place.lines)
    assert "Every registered endpoint of this pair is pending." in text
    totals = answer.context["flip"].totals
    assert totals.unpaired == totals.cells == 18 and totals.gained == totals.lost == 0
    assert text.index('id="comparability"') < text.index('id="outcomes"') < text.index('id="say"')


def test_stored_contrasts_and_flips_agree(client: Client, world: World, db: None) -> None:
    """After closing, gained and lost per repeat add up to what the aggregate counted, and means give its difference."""
    aggregate = _close(world)
    answer = client.get(PAIR)
    flip = answer.context["flip"]
    assert flip.choice.metric == "recovery_all" and flip.agrees is True
    totals = flip.totals
    assert totals.both + totals.neither + totals.gained + totals.lost + totals.unpaired == totals.cells == 18
    mean = sum(strip.difference for strip in flip.strips) / len(flip.strips)
    assert abs(mean - flip.stored.difference) < 1e-9
    stored = aggregate["endpoints"][0]["results"][0]
    assert len(answer.context["endpoints"][0].may_not) == len(stored["may_not_say"])
    place = next(p for p in answer.context["places"] if p.condition == "stress")
    assert place.reward is not None and place.reward.paired == place.reward.requested == 18


def test_strips_of_a_worked_example() -> None:
    """Task t, seeds 7 and 17, two repeats: a = P F, F ·(invalid); b = P P, F P.

    Seed 7: a mean 1/2, b mean 1. Seed 17: only the first repeat is paired, 0 and 0. Means over seeds 1/4 and 1/2.
    One gained, none lost, one unpaired.
    """
    rows = [
        _item("t", "a", "7", 0, True),
        _item("t", "a", "7", 1, False),
        _item("t", "b", "7", 0, True),
        _item("t", "b", "7", 1, True),
        _item("t", "a", "17", 0, False),
        _item("t", "a", "17", 1, None),
        _item("t", "b", "17", 0, False),
        _item("t", "b", "17", 1, True),
    ]
    (strip,) = strips(rows, ("a", "b"), OUTCOMES["success"], ["7", "17"])
    assert (strip.left, strip.right) == ("PF F·", "PP FP")
    assert (strip.a, strip.b, strip.difference) == (0.25, 0.5, 0.25)
    totals = flips([strip])
    assert (totals.both, totals.neither, totals.gained, totals.lost, totals.unpaired) == (1, 1, 1, 0, 1)
    assert (totals.better, totals.worse, totals.tied) == (1, 0, 0)


def test_an_item_of_an_earlier_checkpoint_is_not_paired(world: World, db: None) -> None:
    """Only the final policy of a run counts: an evaluation of the first update leaves the pair unpaired."""
    run = world.runs["e3-s17"]
    first = run.checkpoints.order_by("policy_version").first()
    run.head.refresh_from_db()
    assert first.pk != run.head.checkpoint_id
    evaluate(world, run, first, 0.8)
    rows = paired_rows(world.version, ("e2f", "e3"), ("stress", "test"))
    assert {row["arm"] for row in rows} == {"e2f"}


@pytest.mark.parametrize(
    ("values", "state"),
    [((1, 1), EQUAL), ((1, 1.0), EQUAL), ((True, 1), DIFFERS), (("a", "b"), DIFFERS), ((None, "a"), UNSURE)],
)
def test_state_of_values(values: tuple[Any, ...], state: str) -> None:
    assert state_of(values) == state


def test_a_different_grader_blocks_by_name_and_an_unknown_one_too() -> None:
    """Reward code ab against cd blocks as differing, no harness as unknown; another runtime never blocks."""
    same = {"reward": "r", "reward_version": "1", "task_set": "t", "runtime": "x"}
    rows = fingerprint([{**same, "reward_code": "ab"}, {**same, "reward_code": "cd", "runtime": "y"}])
    found = {row.key: row for row in rows}
    assert found["reward_code"].state == DIFFERS and found["reward_code"].barred
    assert found["harness"].state == UNSURE and found["harness"].barred
    assert found["runtime"].state == DIFFERS and not found["runtime"].barred
    verdict = Comparability(rows, [], [])
    assert not verdict.comparable and "reward code" in verdict.names() and "runtime" not in verdict.names()


def test_captures_that_name_two_graders_block(world: World, db: None, client: Client) -> None:
    """The rows of one arm's items name another reward code than those of the other: what ran decides, not the plan."""
    _close(world)
    groups = Group.objects.filter(run=world.runs["e3-s17"], purpose="evaluate")
    changed = {**groups.first().identities, "reward": "another"}
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type='trigger' AND tbl_name='runs_group'")
        triggers = cursor.fetchall()
        for name, _sql in triggers:
            cursor.execute(f'DROP TRIGGER "{name}"')
        ids = ",".join(str(pk) for pk in groups.values_list("pk", flat=True))
        cursor.execute(f"UPDATE runs_group SET identities = %s WHERE id IN ({ids})", [json.dumps(changed)])
        for _name, sql in triggers:
            cursor.execute(sql)
    answer = client.get(PAIR)
    text = answer.content.decode()
    assert not answer.context["verdict"].comparable
    assert "may not be compared" in text and "withheld: not comparable" in text
    assert 'id="flips"' not in text and 'id="outcomes"' not in text


def test_a_side_without_items_is_pending_and_a_mixed_side_differs() -> None:
    """{a} against nothing: pending; {a, b} on one side: two graders within one arm, which differs."""
    names = dict.fromkeys(("reward", "environment", "task_set", "harness", "formatter", "tokenizer", "runtime"))
    one: dict[str, set[str]] = {name: set() for name in names} | {"reward": {"a"}}
    both: dict[str, set[str]] = {name: set() for name in names} | {"reward": {"a", "b"}}
    assert [w.state for w in witnesses([one, None])] == [UNSURE]
    assert [w.state for w in witnesses([one, one])] == [EQUAL]
    assert [w.state for w in witnesses([both, both])] == [DIFFERS]


def test_reversed_arms_lead_to_the_declared_order(client: Client, world: World, db: None) -> None:
    answer = client.get("/studies/fatal-mask-pair/plans/small/pairs/e3/e2f/?metric=finish")
    assert answer.status_code == 302 and answer["Location"] == PAIR + "?metric=finish"


@pytest.mark.parametrize("path", ["pairs/context/e3/", "pairs/e2f/nothing/", "pairs/e3/e3/"])
def test_undeclared_pairs_are_not_found(client: Client, world: World, db: None, path: str) -> None:
    assert client.get(f"/studies/fatal-mask-pair/plans/small/{path}").status_code == 404


def test_hidden_study_is_not_found(client: Client, world: World, db: None) -> None:
    Study.objects.filter(pk=world.study.pk).update(visibility=Study.PRIVATE)
    assert client.get(PAIR).status_code == 404


def test_choice_by_query_falls_back(client: Client, world: World, db: None) -> None:
    choice = client.get(PAIR, {"condition": "standard", "split": "test", "metric": "success"}).context["choice"]
    assert (choice.condition, choice.metric) == ("standard", "success")
    choice = client.get(PAIR, {"condition": "x", "split": "test", "metric": "y"}).context["choice"]
    assert (choice.condition, choice.metric) == ("stress", "recovery_all")


def test_query_count(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    _close(world)
    with django_assert_max_num_queries(30):
        client.get(PAIR)
    assert Run.objects.exists()
