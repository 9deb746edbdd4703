"""Metric values by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from workbench.contracts.metrics import METRIC_DEFINITIONS
from workbench.contracts.records import GroupRecord
from workbench.contracts.wire import parse_record
from worker.engine import train
from worker.engine.metrics import collection_metrics
from worker.engine.metrics_sink import (
    MetricSink,
    concentration,
    distinct_pairs,
    edit_distance,
    mean,
    pairwise_distance,
    point_biserial,
    quantile,
    variance,
)
from worker.engine.records import Rollout
from worker.engine.rollout import run_rollouts


def test_edit_distance() -> None:
    """kitten -> sitting takes 3 edits; over the longer length 7."""
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance([], ["a", "b"]) == 2
    assert pairwise_distance(["kitten", "sitting"]) == pytest.approx(3 / 7)
    assert pairwise_distance([["a"], ["a"], ["b"]]) == pytest.approx(2 / 3)
    assert pairwise_distance([["a"]]) is None


def test_point_biserial_by_hand() -> None:
    """Lengths 1, 2, 3, 4 with successes 0, 0, 1, 1: means 1.5 and 3.5, sd sqrt(1.25), r = 2 / 1.118 * 0.5 = 0.894."""
    assert point_biserial([1, 2, 3, 4], [False, False, True, True]) == pytest.approx(0.894427, abs=1e-6)
    assert point_biserial([1, 2], [True, True]) is None
    assert point_biserial([2, 2], [True, False]) is None


def test_small_statistics() -> None:
    assert mean([]) is None and variance([]) is None
    assert variance([1.0, 3.0]) == 1.0  # divisor n
    assert distinct_pairs([1, 2, 1, 2]) == pytest.approx(2 / 3)
    assert distinct_pairs([1]) is None


def test_a_condition_that_never_occurred_is_none_with_count_zero() -> None:
    sink = MetricSink("train", "train", 0)
    sink.mean("l2.recovery_by_exposure", [])
    assert (sink.records[0].value, sink.records[0].count) == (None, 0)
    with pytest.raises(KeyError, match=r"definition: got l2\.luck/1"):
        sink.add("l2.luck", 1.0, 1)


def test_collection_values_agree_with_the_records(make_world: Callable[..., Any]) -> None:
    """Rates recomputed from the group records of a real shard, with their denominators."""
    world = make_world()
    result = train.collect(world.collect_spec(groups=4, injected=(0,)), world.store, cache_dir=world.cache_dir)
    groups = [parse_record(GroupRecord, item.record_json.encode()) for item in result.groups]
    every = [item for group in groups for item in group.trajectories]
    found = {item.definition: item for item in result.metrics if item.subject_uid is None and not item.labels}
    exposed = [item for item in every if item.facts is not None and item.facts.exposed]
    assert found["l2.failure_exposure/1"].value == pytest.approx(len(exposed) / 16)
    assert found["l2.recovery_by_exposure/1"].count == len(exposed) > 0
    finished = sum(item.terminal == "finish" for item in every)
    assert found["l2.finish_rate/1"].value == pytest.approx(finished / 16)
    tokens = [sum(turn.policy_tokens for turn in item.turns) for item in every]
    assert found["l2.response_length/1"].value == pytest.approx(sum(tokens) / 16)
    assert found["l3.zero_variance_share/1"].value == pytest.approx(sum(g.signal != "signal" for g in groups) / 4)
    assert result.timing["policy_tokens"] == sum(tokens)
    assert all(item.definition in METRIC_DEFINITIONS for item in result.metrics)
    assert {item.phase for item in result.metrics} == {"train"}


def test_against_numpy() -> None:
    """Variance, correlation and quantiles of 40 drawn values, to 1e-12."""
    rng = np.random.default_rng(3)
    values, right = rng.normal(size=40).tolist(), (rng.random(40) < 0.4).tolist()
    assert variance(values) == pytest.approx(float(np.var(values)), abs=1e-12)
    assert point_biserial(values, right) == pytest.approx(float(np.corrcoef(values, right)[0, 1]), abs=1e-12)
    for share in (0.0, 0.25, 0.5, 0.75, 0.9, 1.0):
        assert quantile(values, share) == pytest.approx(float(np.quantile(values, share)), abs=1e-12)


def test_quantiles_by_hand() -> None:
    """Of 0, 1, 4, 9 the median lies between 1 and 4: 2.5; the upper quartile at place 2.25: 4 + 5 / 4."""
    assert quantile([9.0, 0.0, 4.0, 1.0], 0.5) == 2.5 and quantile([9.0, 0.0, 4.0, 1.0], 0.75) == 5.25
    with pytest.raises(ValueError, match="values: got none"):
        quantile([], 0.5)


def test_concentration_by_hand() -> None:
    """Visits 3 and 1: (3/4)^2 + (1/4)^2 = 10/16. One state: 1. Four states equally: 1/4."""
    assert concentration([3, 1]) == pytest.approx(10 / 16)
    assert concentration([5]) == 1.0 and concentration([2, 2, 2, 2]) == pytest.approx(0.25)


def test_edit_distance_against_the_recursive_definition() -> None:
    """d(a, b) by its definition, without a table, on 60 short random words."""

    def slow(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        return min(slow(a[1:], b) + 1, slow(a, b[1:]) + 1, slow(a[1:], b[1:]) + (a[0] != b[0]))

    rng = np.random.default_rng(4)
    for _ in range(60):
        a, b = ("".join(rng.choice(list("xyz"), size=rng.integers(0, 6))) for _ in range(2))
        assert edit_distance(a, b) == slow(a, b)


def test_signal_of_a_shard_agrees_with_numpy(make_world: Callable[..., Any]) -> None:
    """Sigma quantiles, pass@k and its gap of a real shard; pass@2 by counting all pairs of a group."""
    world = make_world()
    result = train.collect(world.collect_spec(groups=4), world.store, cache_dir=world.cache_dir)
    groups = [parse_record(GroupRecord, item.record_json.encode()) for item in result.groups]
    complete = [group for group in groups if group.eligible]
    rewards = np.array([[item.reward.total for item in group.trajectories if item.reward] for group in complete])
    sigmas = rewards.std(axis=1)
    found = {(item.definition, *item.labels.values()): item for item in result.metrics if item.subject_uid is None}
    for share in ("0", "0.25", "0.5", "0.75", "1"):
        value = found["l3.group_sigma_quantile/1", share]
        assert value.value == pytest.approx(float(np.quantile(sigmas, float(share))), abs=1e-12)
        assert value.count == len(complete)
    successes = [[bool(item.success) for item in group.trajectories] for group in complete]
    pairs = [np.mean([a or b for a, b in combinations(group, 2)]) for group in successes]
    assert found["l3.pass_at_k/1", "2"].value == pytest.approx(float(np.mean(pairs)))
    gaps = [pair - np.mean(group) for pair, group in zip(pairs, successes, strict=True)]
    assert found["l3.pass_gap_k/1", "2"].value == pytest.approx(float(np.mean(gaps)))
    assert found["l3.pass_gap_k/1", "4"].value == pytest.approx(found[("l3.pass_gap/1",)].value)
    assert ("l3.pass_at_k/1", "8") not in found  # a group has four trajectories


def test_states_outside_the_demonstrations(make_world: Callable[..., Any]) -> None:
    """Labels are seen0, seen1 ...: with seen0 demonstrated, the first decisions alone are covered."""
    world = make_world()
    spec = world.collect_spec(groups=4)
    policy = train.load_policy(spec.policy, world.store, cache_dir=world.cache_dir)
    assert policy.demonstrated_states() == frozenset()
    result = train.collect(spec, world.store, cache_dir=world.cache_dir)
    name = "l2.state_outside_demonstrations/1"
    assert not any(item.definition == name for item in result.metrics)  # nothing is known: not measured, not 1
    policy.report["state_coverage"] = {"seen0": 3}
    assert policy.demonstrated_states() == {"seen0"}
    groups = [parse_record(GroupRecord, item.record_json.encode()) for item in result.groups]
    rollouts = again(world)
    found = collection_metrics(groups, rollouts, "train", "train", 0, demonstrated=policy.demonstrated_states())
    (item,) = [item for item in found if item.definition == name]
    labels = [measure.state_label for rollout in rollouts.values() for measure in rollout.measures]
    assert item.count == len(labels) and item.value == pytest.approx(1 - labels.count("seen0") / len(labels))
    assert 0.0 < (item.value or 0.0) < 1.0


def again(world: Any) -> dict[str, Rollout]:
    """The rollouts of the shard, which equal seeds give again."""
    kept: dict[str, Rollout] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "run_rollouts", lambda *a, **k: kept.update(run_rollouts(*a, **k)) or kept)
        train.collect(world.collect_spec(groups=4), world.store, cache_dir=world.cache_dir)
    return kept
