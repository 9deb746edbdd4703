"""Metric values by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workbench.contracts.metrics import METRIC_DEFINITIONS
from workbench.contracts.records import GroupRecord
from workbench.contracts.wire import parse_record
from worker.engine import train
from worker.engine.metrics import (
    MetricSink,
    distinct_pairs,
    edit_distance,
    mean,
    pairwise_distance,
    point_biserial,
    variance,
)


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
