"""L5 of evaluation cells, worked by hand and against NumPy and the aggregate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from runs.statistics.aggregate import build_aggregate
from runs.statistics.generalisation import Cell, bootstrap_of, forgetting, gap, performance
from runs.statistics.items import ItemFacts
from tests.runs.test_statistics_aggregate import PLAN, item, lost
from workbench.contracts.canonical import decode_float
from workbench.contracts.metrics import METRIC_DEFINITIONS
from workbench.contracts.records import MetricRecord

BOOTSTRAP = bootstrap_of(PLAN)


def cell(items: Sequence[ItemFacts]) -> Cell:
    return Cell("checkpoint", 3, items[0].condition, items[0].split, items)


def found(records: Sequence[MetricRecord]) -> dict[tuple[str, ...], tuple[float | None, int | None]]:
    """(value, count) by name and labels."""
    assert all(record.definition in METRIC_DEFINITIONS for record in records)
    return {
        (record.definition.removeprefix("l5.").removesuffix("/1"), *record.labels.values()): (
            record.value,
            record.count,
        )
        for record in records
    }


def test_performance_by_hand() -> None:
    """a: rewards 1, 0 (mean 0.5, one of two right). b: 1, 1. c: one 0.4, its second repeat broken.

    reward (0.5 + 1 + 0.4) / 3; pass@1 (0.5 + 1 + 0) / 3; pass@2 over a and b: (1 + 1) / 2; pass^2: (0 + 1) / 2.
    """
    items = [
        item("a", 0, 1.0), item("a", 1, 0.0), item("b", 0, 1.0), item("b", 1, 1.0), item("c", 0, 0.4),
        lost(item("c", 1)),
    ]  # fmt: skip
    records = performance(cell(items), BOOTSTRAP)
    values = found(records)
    assert values["reward",] == (pytest.approx(1.9 / 3), 3)
    assert values["success_rate",] == (pytest.approx(0.5), 3)
    assert values["pass_at_k", "2"] == (1.0, 2) and values["pass_hat_k", "2"] == (0.5, 2)
    assert {(item.phase, item.split, item.policy_version, item.subject_uid) for item in records} == {
        ("standard", "test", 3, "checkpoint")
    }


def test_performance_without_a_valid_item_is_none_and_not_zero() -> None:
    values = found(performance(cell([lost(item("a")), lost(item("b"))]), BOOTSTRAP))
    assert values["reward",] == (None, 0) and values["reward", "low"] == (None, 0)


def test_pass_at_k_counts_every_subset() -> None:
    """Five repeats, k = 2 and 4: the share of all subsets of k repeats with a success, by counting them."""
    flags = {"a": [1, 0, 0, 1, 0], "b": [0, 0, 0, 0, 0], "c": [1, 1, 1, 1, 0]}
    items = [item(task, repeat, float(flag)) for task, row in flags.items() for repeat, flag in enumerate(row)]
    values = found(performance(cell(items), BOOTSTRAP))
    for k in (2, 4):
        subsets = {task: list(combinations(row, k)) for task, row in flags.items()}
        any_right = [np.mean([max(part) for part in parts]) for parts in subsets.values()]
        all_right = [np.mean([min(part) for part in parts]) for parts in subsets.values()]
        assert values["pass_at_k", str(k)][0] == pytest.approx(float(np.mean(any_right)))
        assert values["pass_hat_k", str(k)][0] == pytest.approx(float(np.mean(all_right)))
    assert ("pass_at_k", "8") not in values


def drawn(split: str, seed: int, tasks: int, arm: str | None = None) -> list[ItemFacts]:
    rng = np.random.default_rng(seed)
    return [
        item(f"t{task}", repeat, float(rng.random()), split=split, arm=arm)
        for task in range(tasks)
        for repeat in range(3)
    ]


def test_gap_by_hand_and_its_interval_against_a_numpy_bootstrap() -> None:
    """Inside 1 and 0.5 (0.75), outside 0.25 and 0.25: gap 0.5. The interval agrees with NumPy's resampling to 0.02."""
    inside = cell([item("a", 0, 1.0), item("b", 0, 0.5)])
    outside = cell([item(task, 0, 0.25, split="out_of_distribution") for task in ("x", "y")])
    values = found(gap(inside, outside, BOOTSTRAP))
    assert values["reward_gap", "out_of_distribution"] == (pytest.approx(0.5), 2)
    assert values["reward_gap", "low", "out_of_distribution"][0] == 0.25  # both resampled tasks are b
    assert values["reward_gap", "high", "out_of_distribution"][0] == 0.75

    sides = drawn("test", 1, 25), drawn("out_of_distribution", 2, 30)
    values = found(gap(cell(sides[0]), cell(sides[1]), BOOTSTRAP))
    means = [
        np.array([[row.reward for row in side if row.task_key == key] for key in sorted({r.task_key for r in side})])
        .astype(float).mean(axis=1)
        for side in sides
    ]  # fmt: skip
    rng = np.random.default_rng(5)
    resampled = [rng.choice(mean, size=(20_000, len(mean))).mean(axis=1) for mean in means]
    low, high = np.percentile(resampled[0] - resampled[1], [2.5, 97.5])
    assert values["reward_gap", "low", "out_of_distribution"][0] == pytest.approx(float(low), abs=0.02)
    assert values["reward_gap", "high", "out_of_distribution"][0] == pytest.approx(float(high), abs=0.02)


def test_forgetting_is_paired_and_positive_where_something_was_lost() -> None:
    """Parent 1, 1, 0.5; checkpoint 0.5, 1, 1: (0.5 + 0 - 0.5) / 3 = 0. Without c, which it never answered: 0.25."""
    parent = [item(task, 0, value, split="anchor") for task, value in (("a", 1.0), ("b", 1.0), ("c", 0.5))]
    after = [item(task, 0, value, split="anchor", arm="v") for task, value in (("a", 0.5), ("b", 1.0), ("c", 1.0))]
    values = found(forgetting(cell(parent), cell(after), BOOTSTRAP))
    assert values["reward_forgotten",] == (pytest.approx(0.0), 3)
    assert values["success_forgotten",] == (pytest.approx((1 - 0 + 0 + 0 - 1) / 3), 3)
    values = found(forgetting(cell(parent), cell([*after[:2], lost(after[2])]), BOOTSTRAP))
    assert values["reward_forgotten",] == (pytest.approx(0.25), 2)
    assert values["reward_forgotten", "low"][0] == 0.0 and values["reward_forgotten", "high"][0] == 0.5


def test_cells_and_gaps_agree_with_the_aggregate() -> None:
    """Values and intervals are those of the execution's own aggregate, bit for bit."""
    inside, outside = drawn("test", 3, 12, "v"), drawn("out_of_distribution", 4, 9, "v")
    aggregate = build_aggregate(
        plan_sha256=PLAN, endpoints=[], strict_pairs=[], items=[*inside, *outside], unchanged=[]
    )
    (stored,) = aggregate["gaps"]
    values = found(gap(cell(inside), cell(outside), BOOTSTRAP))
    for metric in ("reward", "success"):
        said = stored["metrics"][metric]
        assert values[f"{metric}_gap", "out_of_distribution"][0] == decode_float(said["gap"])
        for bound in ("low", "high"):
            assert values[f"{metric}_gap", bound, "out_of_distribution"][0] == decode_float(said["interval"][bound])
    means = next(part for part in aggregate["cells"] if part["splits"] == ["test"])["means"]["reward"]
    values = found(performance(cell(inside), BOOTSTRAP))
    assert values["reward",][0] == decode_float(means["task_mean"]["value"])
    assert values["reward", "high"][0] == decode_float(means["interval"]["high"])


def test_two_verifiers_are_never_averaged() -> None:
    items = [item("a", 0, 1.0), replace(item("b", 0, 1.0), verifier="another")]
    assert found(performance(cell(items), BOOTSTRAP)) == {}
