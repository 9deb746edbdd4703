"""Segments, entropies by decision and the influence of Observations: by hand, and on a real shard."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workbench.capturefile import read_capture
from workbench.contracts.capture import (
    SEGMENT_ACTION,
    SEGMENT_ANSWER,
    SEGMENT_NAMES,
    SEGMENT_OTHER,
    SEGMENT_THINK,
    Capture,
)
from workbench.contracts.records import FINISH, TOOL, UNPARSEABLE, GroupRecord, MetricRecord
from workbench.contracts.wire import parse_record
from worker.engine import train
from worker.engine.metrics_sink import MetricSink
from worker.engine.records import Rollout, TurnMeasure
from worker.engine.text_metrics import content_test, fresh_ids, segment_complies, token_metrics


def capture(decision: int, prompt: Sequence[int], generated: Sequence[int]) -> Capture:
    ones = array("B", [1] * len(generated))
    return Capture(
        "t", decision, "main", None, 0, "1", {}, {}, "0" * 64, array("i", prompt), array("i", generated), ones,
        array("B", [0] * len(generated)), None,
    )  # fmt: skip


def two_turns(next_segments: Sequence[int]) -> Rollout:
    """Prompt 1 2, turn 10 11; Observation 2 20 21 9; then the turn 20 10 21 22 under ``next_segments``."""
    rollout = Rollout("t", 0, "1", "valid")
    first, second = capture(0, [1, 2], [10, 11]), capture(1, [1, 2, 10, 11, 2, 20, 21, 9], [20, 10, 21, 22])
    rollout.captures = [first.to_bytes(), second.to_bytes()]
    rollout.measures = [
        TurnMeasure(0, (10, 11), (0.5, 1.5), (SEGMENT_THINK, SEGMENT_ACTION), "a"),
        TurnMeasure(1, (20, 10, 21, 22), (1.0, 2.0, 3.0, 6.0), tuple(next_segments), "b"),
    ]
    turns: Any = [
        SimpleNamespace(observation=object(), action_kind=TOOL),
        SimpleNamespace(observation=None, action_kind=FINISH),
    ]
    rollout.turns = turns
    return rollout


def found(records: Sequence[MetricRecord], name: str) -> dict[str, tuple[float | None, int | None]]:
    """(value, count) by the one label that a series of ``name`` has."""
    return {
        next(iter(item.labels.values())): (item.value, item.count) for item in records if item.definition == f"{name}/1"
    }


def measured(rollout: Rollout, is_content: Callable[[int], bool] | None) -> list[MetricRecord]:
    sink = MetricSink("train", "train", 0)
    token_metrics(sink, [rollout], is_content)
    return sink.records


def test_influence_by_hand() -> None:
    """Fresh in the Observation: 20, 21 (2 stood in the prompt; 9 is no content).

    think = 20, 10, 21: 20 and 21 are fresh, 10 was there before: 2 / 3. answer = 22: seen nowhere: 0 / 1.
    """
    segments = (SEGMENT_THINK, SEGMENT_THINK, SEGMENT_THINK, SEGMENT_ANSWER)
    records = measured(two_turns(segments), lambda token: token != 9)
    assert found(records, "l2.observation_influence") == {
        "think": (pytest.approx(2 / 3), 3), "answer": (0.0, 1)
    }  # fmt: skip
    assert found(measured(two_turns(segments), None), "l2.observation_influence") == {}


def test_influence_needs_a_prompt_that_carries_its_history() -> None:
    """A prompt that was rewritten holds no Observation that could be cut out: unknown, not 0."""
    before = capture(0, [1, 2], [10, 11])
    assert fresh_ids(before, capture(1, [1, 2, 10, 11, 2, 20], [5])) == {20}
    assert fresh_ids(before, capture(1, [1, 7, 10, 11, 2, 20], [5])) is None


def test_entropy_by_decision_and_segment_by_hand() -> None:
    """Decision 0: (0.5 + 1.5) / 2. Decision 1: (1 + 2 + 3 + 6) / 4. think over both turns: (0.5 + 1) / 2."""
    rollout = two_turns((SEGMENT_THINK, SEGMENT_ACTION, SEGMENT_ACTION, SEGMENT_ACTION))
    records = measured(rollout, None)
    assert found(records, "l4.entropy_by_decision") == {"0": (1.0, 2), "1": (3.0, 4)}
    entropies = found(records, "l2.entropy_sampled")
    assert entropies["think"] == (0.75, 2) and entropies["all"] == (pytest.approx(14 / 6), 6)
    late = TurnMeasure(40, (1,), (7.0,), (SEGMENT_ACTION,), None)
    rollout.measures[1] = late
    assert found(measured(rollout, None), "l4.entropy_by_decision")["15"] == (7.0, 1)


@pytest.mark.parametrize(
    ("segment", "segments", "kind", "expected"),
    [
        (SEGMENT_THINK, (SEGMENT_THINK, SEGMENT_ACTION), UNPARSEABLE, True),  # closed, whatever the action is
        (SEGMENT_THINK, (SEGMENT_THINK, SEGMENT_THINK), UNPARSEABLE, False),  # the budget ended inside
        (SEGMENT_THINK, (SEGMENT_ACTION,), TOOL, None),
        (SEGMENT_ACTION, (SEGMENT_THINK, SEGMENT_ACTION), TOOL, True),
        (SEGMENT_ACTION, (SEGMENT_ACTION,), UNPARSEABLE, False),
        (SEGMENT_ANSWER, (SEGMENT_ANSWER,), FINISH, True),
        (SEGMENT_ANSWER, (SEGMENT_ANSWER,), UNPARSEABLE, False),
        (SEGMENT_ANSWER, (SEGMENT_OTHER,), UNPARSEABLE, None),
    ],
)
def test_compliance_of_a_segment(segment: int, segments: tuple[int, ...], kind: str, expected: bool | None) -> None:
    assert segment_complies(segment, segments, kind) is expected


def test_content_is_letters_and_digits_and_no_special_token() -> None:
    texts = ["a", " 7", "|", '{"', "<end>"]
    tokenizer = SimpleNamespace(all_special_ids=[4], decode=lambda ids: texts[ids[0]])
    is_content = content_test(tokenizer)
    assert [is_content(token) for token in range(5)] == [True, True, False, False, False]


def test_a_real_shard_agrees_with_its_captures(make_world: Callable[..., Any]) -> None:
    """Influence, compliance and entropies of a collected shard from the stored captures, with NumPy, to 1e-9."""
    world = make_world()
    result = train.collect(world.collect_spec(groups=4), world.store, cache_dir=world.cache_dir)
    groups = [parse_record(GroupRecord, item.record_json.encode()) for item in result.groups]
    tokenizer = train.load_policy(world.policy_ref(), world.store, cache_dir=world.cache_dir).tokenizer
    letters = {index for index in range(len(tokenizer)) if tokenizer.decode([index]).strip().isalnum()}
    turns = {turn.capture_sha256: turn for group in groups for item in group.trajectories for turn in item.turns}
    stored: dict[str, list[tuple[Capture, Any]]] = {}
    for item in result.groups:
        blob = world.store.get(item.capture_blob_sha256)
        for ref in item.captures:
            pair = (Capture.from_bytes(read_capture(blob, ref)), turns[ref.capture_sha256])
            stored.setdefault(ref.trajectory_uid, []).append(pair)
    shared: dict[str, list[bool]] = {}
    kept: dict[str, list[bool]] = {}
    for pairs in stored.values():
        for place, (own, turn) in enumerate(pairs):
            kinds = np.array(own.segments)
            if SEGMENT_ACTION in kinds:
                kept.setdefault("action", []).append(turn.action_kind == TOOL)
            if SEGMENT_ANSWER in kinds:
                kept.setdefault("answer", []).append(turn.action_kind == FINISH)
            if not place:
                continue
            last = pairs[place - 1][0]
            seen = np.array([*last.prompt_ids, *last.generated_ids])
            fresh = np.setdiff1d(np.array(own.prompt_ids)[len(seen) :], seen)
            for token, kind in zip(own.generated_ids, kinds, strict=True):
                if token in letters:
                    shared.setdefault(SEGMENT_NAMES[kind], []).append(bool(np.isin(token, fresh)))
    influence = found(result.metrics, "l2.observation_influence")
    assert influence and "other" not in influence
    for name, pair in influence.items():
        assert pair == (pytest.approx(float(np.mean(shared[name])), abs=1e-9), len(shared[name]))
    labelled = [item for item in result.metrics if item.definition == "l2.format_compliance/1" and item.labels]
    assert {item.labels["segment"]: (item.value, item.count) for item in labelled} == {
        name: (pytest.approx(float(np.mean(flags))), len(flags)) for name, flags in kept.items()
    }
    counts = [count for _, count in found(result.metrics, "l4.entropy_by_decision").values()]
    assert sum(count or 0 for count in counts) == found(result.metrics, "l2.entropy_sampled")["all"][1]
