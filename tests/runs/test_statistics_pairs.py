"""Strict pairs, seeds and families in the aggregate: who is compared with whom, worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.runs.test_statistics_aggregate import build, comparison, fraction, item, lost, pair_items
from workbench.contracts.errors import RecordError


def test_strict_pair_is_second_minus_first_per_seed_and_over_seeds() -> None:
    """Seed 1: differences 1, 0 (0.5). Seed 2: 0, 0 (0). Over seeds 0.25, sample sd 0.5/sqrt(2); tasks 0.5 and 0."""
    aggregate = build(
        pair_items({"1": ([0.0, 0.5], [1.0, 0.5]), "2": ([1.0, 0.5], [1.0, 0.5])}), strict_pairs=[{"arms": ["v", "f"]}]
    )
    found = comparison(aggregate, "strict_pairs", "reward")
    assert [row["difference"]["value"] for row in found["per_seed"]] == [0.5, 0.0]
    over = found["over_seeds"]
    assert over["spread"]["mean"] == 0.25
    assert over["spread"]["sd"] == pytest.approx(0.5 / math.sqrt(2))
    assert over["distinguished"] is False
    assert fraction(over["task_difference"]) == (0.5, 2, 0.25)
    success = comparison(aggregate, "strict_pairs", "success")["per_seed"][0]
    assert (success["gained"]["numerator"], success["lost"]["numerator"], success["gained"]["denominator"]) == (1, 0, 2)


def test_one_seed_has_no_standard_deviation() -> None:
    over = comparison(
        build(pair_items({"1": ([0.0, 0.0], [1.0, 0.5])}), strict_pairs=[("v", "f")]), "strict_pairs", "reward"
    )["over_seeds"]
    assert (over["spread"]["n"], over["spread"]["sd"], over["distinguished"]) == (1, None, None)


def test_a_seed_without_its_partner_is_named_not_dropped() -> None:
    alone = [item(task, arm="v", seed="2") for task in ("t0", "t1")]
    items = [*pair_items({"1": ([0.0, 0.0], [1.0, 0.5])}), *alone]
    found = comparison(build(items, strict_pairs=[("v", "f")]), "strict_pairs", "reward")
    assert found["absent_seeds"] == [{"run_seed": "2", "reason": "arm_not_evaluated"}]
    assert fraction(found["over_seeds"]["seeds"]) == (1, 2, 0.5)


def test_pairs_need_both_sides_of_the_same_repeat() -> None:
    """Repeat 1 of the arm is broken: the parent's repeat 1 (reward 0) must not enter: 1 - 1 = 0, one pair of two."""
    items = [item("a", 0), item("a", 1, 0.0), item("a", 0, arm="v"), lost(item("a", 1, arm="v"))]
    (row,) = comparison(build(items), "parent", "reward")["per_seed"]
    assert fraction(row["pairs"]) == (1, 2, 0.5)
    assert fraction(row["difference"]) == (0.0, 1, 0.0)


def test_only_the_final_checkpoint_of_a_run_is_compared() -> None:
    early = item("a", reward=0.0, arm="v", checkpoint_uid="x-early", is_final=False)
    aggregate = build([item("a"), item("a", reward=0.5, arm="v"), early])
    (row,) = comparison(aggregate, "parent", "reward")["per_seed"]
    assert row["treatment"]["checkpoint_uid"] == "v-1"
    assert len(aggregate["cells"]) == 3
    with pytest.raises(RecordError, match=r"final v 1: got \('x-early',\), expected \('v-1',\)"):
        build([item("a"), item("a", arm="v"), replace(early, is_final=True)])


def test_a_run_that_changed_nothing_is_the_parent_not_absent() -> None:
    """Arm f committed no step: its final checkpoint is the parent. Parent 0.5, v 1.0: f minus v = -0.5."""
    items = [item("a", reward=0.5), item("b", reward=0.5), item("a", arm="v"), item("b", arm="v")]
    pairs = {"strict_pairs": [("v", "f")]}
    assert build(items, **pairs)["comparisons"]["strict_pairs"] == []
    aggregate = build(items, **pairs, unchanged=[("f", "1")])
    assert comparison(aggregate, "strict_pairs", "reward")["per_seed"][0]["difference"]["value"] == -0.5
    assert aggregate["unchanged_runs"] == [{"arm": "f", "run_seed": "1"}]
    assert len(aggregate["cells"]) == 2
    with pytest.raises(RecordError, match=r"unchanged: got \('v', '1'\), expected a run without a checkpoint"):
        build(items, unchanged=[("v", "1")])


def test_negative_transfer_is_flagged_per_family() -> None:
    """Family one gains 1 on two tasks, family two loses 0.5: the aggregate gains and two runs against it."""
    parent = [item("a", reward=0.0), item("b", reward=0.0), item("c", family="two")]
    arm = [item("a", arm="v"), item("b", arm="v"), item("c", reward=0.5, arm="v", family="two")]
    (row,) = comparison(build(parent + arm), "parent", "reward")["per_seed"]
    assert row["difference"]["value"] == 0.5
    assert [(one["difference"]["value"], one["against_aggregate"]) for one in row["families"]] == [
        (1.0, False),
        (-0.5, True),
    ]


def test_a_family_that_falls_with_the_aggregate_is_not_against_it() -> None:
    """Differences -1 and +0.5, mean -0.25: the falling family goes with the aggregate, the rising one against it."""
    parent = [item("a"), item("b", reward=0.0, family="two")]
    arm = [item("a", reward=0.0, arm="v"), item("b", reward=0.5, arm="v", family="two")]
    (row,) = comparison(build(parent + arm), "parent", "reward")["per_seed"]
    assert [one["against_aggregate"] for one in row["families"]] == [False, True]


def test_arm_spread_names_what_varies() -> None:
    """Final task means 0.25 and 0.75: mean 0.5, sample sd 0.5/sqrt(2), of training seeds."""
    rows = build(pair_items({"1": ([0.0, 0.5], [0.0, 0.0]), "2": ([1.0, 0.5], [0.0, 0.0])}))["arms"]
    (reward,) = [row["metrics"]["reward"] for row in rows if row["arm"] == "v"]
    assert reward == {"of": "training_seeds", "n": 2, "mean": 0.5, "sd": pytest.approx(0.5 / math.sqrt(2))}
