"""One group: slots side by side."""

from __future__ import annotations

import uuid

from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.models import Group
from runs.presenters.drawing import lowest, position, stacked_bar, stacked_dots
from tests.pages.state import World


def _group(world: World, **where: object) -> Group:
    found = Group.objects.filter(run=world.runs["e3-s17"], purpose="train", **where).order_by("ordinal").first()
    assert found is not None
    return found


def test_columns_are_aligned_by_turn(client: Client, world: World, db: None) -> None:
    group = _group(world, eligible=True)
    answer = client.get(f"/groups/{group.uid}/")
    columns, rows = answer.context["columns"], answer.context["aligned"]
    assert [column.row.slot for column in columns] == [0, 1, 2, 3]
    assert len(rows) == max(len(column.turns) for column in columns)
    for decision, cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            assert (cell is None) == (decision >= len(column.turns))
            assert cell is None or cell.turn.decision == decision


def test_schedule_shows_realized_and_unreached(client: Client, world: World, db: None) -> None:
    group = _group(world, failure_profile="prefix_fatal_opportunity", eligible=True)
    columns = client.get(f"/groups/{group.uid}/").context["columns"]
    for column in columns:
        assert [tick["ordinal"] for tick in column.ticks] == [1, 2, 3]
        for tick in column.ticks:
            assert (tick["state"] == "realized") == (tick["decision"] is not None)


def test_a_rejected_group_names_its_reason_and_has_no_reward_there(client: Client, world: World, db: None) -> None:
    from tests.pages.rows import add_group
    from workbench.contracts.jobs import GroupSpec, SlotSpec

    like = _group(world)
    spec = GroupSpec(
        str(uuid.uuid4()),
        900,
        str(like.task.uid),
        "control",
        (),
        tuple(SlotSpec(str(uuid.uuid4()), s, str(s)) for s in range(4)),
    )
    group, _ = add_group(world, like.run, like.checkpoint, spec, "train", "train", "train", broken=True)
    text = client.get(f"/groups/{group.uid}/").content.decode()
    assert "Rejected as a whole" in text and "worker died" in text
    assert "no turn stored" in text


def test_a_group_that_lost_every_token_to_the_cut_does_not_train(client: Client, world: World, db: None) -> None:
    """Rewards differ, and each slot's credit holds 0 trained tokens: sentence and pill say so; its sibling trains."""
    from runs.models import TrajectoryCredit

    trained = TrajectoryCredit.objects.filter(trained_tokens__gt=0).values("trajectory__group")
    groups = Group.objects.filter(run=world.runs["e3-s17"], purpose="train", signal="signal")
    cut, kept = groups.exclude(pk__in=trained).first(), groups.filter(pk__in=trained).first()
    assert cut is not None and kept is not None
    text = client.get(f"/groups/{cut.uid}/").content.decode()
    assert "was cut: nothing of it was trained." in text and "signal, every token cut" in text
    assert ">trains<" not in text
    text = client.get(f"/groups/{kept.uid}/").content.decode()
    assert "policy tokens were trained." in text and ">trains<" in text


def test_unknown_group(client: Client, world: World, db: None) -> None:
    assert client.get(f"/groups/{uuid.uuid4()}/").status_code == 404


def test_query_count_does_not_grow_with_turns(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(26):
        client.get(f"/groups/{_group(world, eligible=True).uid}/")


def test_tied_rewards_stack_and_keep_their_position() -> None:
    """Rewards 0.5, 0.5, 1 and none on a line of 100: two dots at x = 50, 5 apart around 10; one at 100."""
    dots = stacked_dots([0.5, 1.0, None, 0.5], width=100.0, middle=10.0)
    assert [(dot.x, dot.y, dot.slot) for dot in dots] == [(50.0, 7.5, 0), (50.0, 12.5, 3), (100.0, 10.0, 1)]


def test_bar_leaves_out_what_was_not_measured() -> None:
    """Points 0.3 and 0.1 at 100 units a point: 0..30 and 30..40; a None and a 0 draw nothing."""
    bar = stacked_bar([("a", 0.3, "b1"), ("b", None, "b2"), ("c", 0.0, "b3"), ("d", 0.1, "b4")], 100.0)
    assert [(part.label, part.x, part.width) for part in bar] == [("a", 0.0, 30.0), ("d", 30.0, 10.0)]


def test_negative_rewards_have_a_scale_from_minus_one() -> None:
    """-0.5 and 0.5 on a line of 100 from -1 to 1: at 25 and 75; what lies outside stands at an end."""
    assert (lowest([0.5, None, 0.0]), lowest([0.5, -0.01]), lowest([])) == (0.0, -1.0, 0.0)
    dots = stacked_dots([0.5, -0.5, None, -2.0], width=100.0, middle=10.0, low=-1.0)
    assert [(dot.x, dot.slot) for dot in dots] == [(0.0, 3), (25.0, 1), (75.0, 0)]
    assert (position(0.0, 100.0, -1.0), position(0.25, 100.0, 0.0)) == (50.0, 25.0)


def test_a_bar_with_a_negative_part_goes_both_ways_from_zero() -> None:
    """0.5, -1 and -0.5 at 50 units a point from 50: 50..75, 0..50, then -25..0 beyond the end."""
    bar = stacked_bar([("a", 0.5, "b1"), ("b", -1.0, "b2"), ("c", -0.5, "b3")], 50.0, zero=50.0)
    assert [(part.x, part.width) for part in bar] == [(50.0, 25.0), (0.0, 50.0), (-25.0, 25.0)]
