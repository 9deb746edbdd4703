"""L2 quantities that read a shard's tokens: segments, entropies by decision, influence of Observations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from workbench.contracts.capture import (
    SEGMENT_ACTION,
    SEGMENT_ANSWER,
    SEGMENT_NAMES,
    SEGMENT_THINK,
    Capture,
)
from workbench.contracts.records import FINISH, TOOL, TurnRecord

from .metrics_sink import MetricSink, distinct_pairs
from .records import Rollout, TurnMeasure

LATEST_DECISION = 15  # decisions from here on share one series
IsContent = Callable[[int], bool]


def content_test(tokenizer: Any) -> IsContent:
    """Whether an id is content: its text has a letter or a digit, and it is no special token."""
    special, known = frozenset(tokenizer.all_special_ids), dict[int, bool]()

    def is_content(token: int) -> bool:
        if token not in known:
            known[token] = token not in special and any(sign.isalnum() for sign in tokenizer.decode([token]))
        return known[token]

    return is_content


def token_metrics(sink: MetricSink, rollouts: Sequence[Rollout], is_content: IsContent | None = None) -> None:
    """Every quantity of this module for valid rollouts. ``is_content`` None: no influence is measured."""
    measures = [measure for rollout in rollouts for measure in rollout.measures]
    sink.mean("l2.entropy_sampled", (value for item in measures for value in item.entropies), segment="all")
    for segment, name in enumerate(SEGMENT_NAMES):
        _segment(sink, measures, segment, name)
    _compliance(sink, rollouts)
    _by_decision(sink, measures)
    if is_content is not None:
        _influence(sink, rollouts, is_content)


def _part(item: TurnMeasure, values: Sequence[Any], segment: int) -> list[Any]:
    return [value for value, kind in zip(values, item.segments, strict=True) if kind == segment]


def _segment(sink: MetricSink, measures: Sequence[TurnMeasure], segment: int, name: str) -> None:
    values = [value for item in measures for value in _part(item, item.entropies, segment)]
    if not values:
        return
    sink.mean("l2.entropy_sampled", values, segment=name)
    parts = [_part(item, item.generated_ids, segment) for item in measures]
    sink.mean("l2.segment_length", (len(part) for part in parts), segment=name)
    shares = [share for part in parts if (share := distinct_pairs(part)) is not None]
    sink.mean("l2.distinct_2", shares, segment=name)


def segment_complies(segment: int, segments: Sequence[int], action_kind: str) -> bool | None:
    """Whether a turn keeps the grammar of one segment; None where it has no token of it.

    think: something follows it; action: the turn was read as a legal call; answer: as a legal Finish.
    """
    if segment not in segments:
        return None
    if segment == SEGMENT_THINK:
        return segments[-1] != SEGMENT_THINK
    return action_kind == (TOOL if segment == SEGMENT_ACTION else FINISH)


def _compliance(sink: MetricSink, rollouts: Sequence[Rollout]) -> None:
    turns = [pair for item in rollouts for pair in zip(item.measures, item.turns, strict=True)]
    for segment in (SEGMENT_THINK, SEGMENT_ACTION, SEGMENT_ANSWER):
        found = [segment_complies(segment, measure.segments, turn.action_kind) for measure, turn in turns]
        known = [value for value in found if value is not None]
        if known:
            sink.mean("l2.format_compliance", known, segment=SEGMENT_NAMES[segment])


def _by_decision(sink: MetricSink, measures: Sequence[TurnMeasure]) -> None:
    found: dict[int, list[float]] = {}
    for item in measures:
        found.setdefault(min(item.decision, LATEST_DECISION), []).extend(item.entropies)
    for decision, values in sorted(found.items()):
        sink.mean("l4.entropy_by_decision", values, decision=str(decision))


def fresh_ids(before: Capture, after: Capture) -> frozenset[int] | None:
    """Ids of the Observation between two turns that the context did not hold before it.

    None where the later prompt does not carry the earlier turn verbatim: its Observation cannot be cut out.
    """
    context = [*before.prompt_ids, *before.generated_ids]
    prompt = after.prompt_ids.tolist()
    if prompt[: len(context)] != context:
        return None
    return frozenset(prompt[len(context) :]) - frozenset(context)


def _followed(rollout: Rollout) -> Iterator[tuple[TurnMeasure, frozenset[int]]]:
    """Turns after an Observation, with its fresh ids."""
    captures = [Capture.from_bytes(data) for data in rollout.captures]
    turns: list[TurnRecord] = rollout.turns
    for place, (before, after) in enumerate(pairwise(captures)):
        fresh = fresh_ids(before, after) if turns[place].observation is not None else None
        if fresh is not None:
            yield rollout.measures[place + 1], fresh


def _influence(sink: MetricSink, rollouts: Sequence[Rollout], is_content: IsContent) -> None:
    followed = [pair for rollout in rollouts for pair in _followed(rollout)]
    for segment in (SEGMENT_THINK, SEGMENT_ACTION, SEGMENT_ANSWER):
        shared = total = 0
        for measure, fresh in followed:
            content = [token for token in _part(measure, measure.generated_ids, segment) if is_content(token)]
            shared += sum(token in fresh for token in content)
            total += len(content)
        if total:
            sink.add("l2.observation_influence", shared / total, total, segment=SEGMENT_NAMES[segment])
