"""L2 to L4 quantities of a collected shard, as ``MetricRecord`` values.

Definitions: ``workbench.contracts.metrics``. A value is None where its condition never occurred (a
recovery rate without a failure), with count 0; it is never a zero instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import Any

from workbench.contracts.capture import SEGMENT_NAMES, SEGMENT_THINK
from workbench.contracts.metrics import METRIC_DEFINITIONS
from workbench.contracts.records import (
    BUDGET_EXHAUSTED,
    FINISH,
    POLICY_ERROR,
    SIGNAL,
    UNPARSEABLE,
    VALID,
    GroupRecord,
    MetricRecord,
    TrajectoryRecord,
)

from .records import Rollout

Numbers = Sequence[float]


def mean(values: Numbers) -> float | None:
    """Arithmetic mean, None of nothing."""
    return math.fsum(values) / len(values) if values else None


def variance(values: Numbers) -> float | None:
    """Population variance (divisor n), None of nothing."""
    if not values:
        return None
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values) / len(values)


def edit_distance(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Levenshtein distance of two sequences, unit costs."""
    previous = list(range(len(second) + 1))
    for row, left in enumerate(first, 1):
        current = [row]
        for column, right in enumerate(second, 1):
            current.append(min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (left != right)))
        previous = current
    return previous[-1]


def pairwise_distance(sequences: Sequence[Sequence[Any]]) -> float | None:
    """Mean over pairs of edit distance / longer length; two empty sequences have distance 0."""
    shares = [edit_distance(a, b) / max(len(a), len(b), 1) for a, b in combinations(sequences, 2)]
    return mean(shares)


def distinct_pairs(ids: Sequence[int]) -> float | None:
    """Distinct pairs of neighbours over pairs (distinct-2); None below two ids."""
    pairs = list(pairwise(ids))
    return len(set(pairs)) / len(pairs) if pairs else None


def point_biserial(values: Numbers, successes: Sequence[bool]) -> float | None:
    """Correlation of a quantity with success; None where either does not vary."""
    spread = variance(values)
    right = [value for value, success in zip(values, successes, strict=True) if success]
    wrong = [value for value, success in zip(values, successes, strict=True) if not success]
    if not right or not wrong or not spread:
        return None
    share = len(right) / len(values)
    gap = math.fsum(right) / len(right) - math.fsum(wrong) / len(wrong)
    return gap / math.sqrt(spread) * math.sqrt(share * (1 - share))


class MetricSink:
    """Collects records of one phase, split and policy version."""

    def __init__(self, phase: str, split: str, policy_version: int, update: int | None = None):
        self.phase, self.split, self.policy_version, self.update = phase, split, policy_version, update
        self.records: list[MetricRecord] = []

    def add(self, name: str, value: float | None, count: int | None, subject: str | None = None, **labels: str) -> None:
        """One value of definition ``name`` (version 1). ``count`` is its denominator."""
        identity = f"{name}/1"
        if identity not in METRIC_DEFINITIONS:
            raise KeyError(f"definition: got {identity}, expected one of the table")
        record = MetricRecord(
            identity,
            self.phase,
            self.split,
            dict(labels),
            None if value is None else float(value),
            count,
            self.policy_version,
            self.update,
            None,
            None,
            subject,
        )
        self.records.append(record)

    def mean(self, name: str, values: Iterable[float], subject: str | None = None, **labels: str) -> None:
        """Mean of ``values`` with their number as denominator."""
        found = [float(value) for value in values]
        self.add(name, mean(found), len(found), subject, **labels)


def collection_metrics(
    groups: Sequence[GroupRecord], rollouts: dict[str, Rollout], phase: str, split: str, policy_version: int
) -> tuple[MetricRecord, ...]:
    """L2 to L4 of a shard: one value for the shard, and one a group where the scope says so."""
    sink = MetricSink(phase, split, policy_version)
    every = [item for group in groups for item in group.trajectories]
    valid = [item for item in every if item.status == VALID]
    sink.mean("l2.infrastructure_invalid_share", (item.status != VALID for item in every))
    _token_metrics(sink, [rollouts[item.uid] for item in valid])
    _behaviour_metrics(sink, valid)
    _length_metrics(sink, valid)
    _signal_metrics(sink, groups, valid)
    _exploration_metrics(sink, groups, rollouts)
    return tuple(sink.records)


def _token_metrics(sink: MetricSink, rollouts: Sequence[Rollout]) -> None:
    measures = [measure for rollout in rollouts for measure in rollout.measures]
    sink.mean("l2.entropy_sampled", (value for item in measures for value in item.entropies), segment="all")
    for segment, name in enumerate(SEGMENT_NAMES):
        values = [
            value
            for item in measures
            for value, kind in zip(item.entropies, item.segments, strict=True)
            if kind == segment
        ]
        if not values:
            continue
        sink.mean("l2.entropy_sampled", values, segment=name)
        parts = [
            [token for token, kind in zip(item.generated_ids, item.segments, strict=True) if kind == segment]
            for item in measures
        ]
        sink.mean("l2.segment_length", (len(part) for part in parts), segment=name)
        shares = [share for part in parts if (share := distinct_pairs(part)) is not None]
        sink.mean("l2.distinct_2", shares, segment=name)


def _behaviour_metrics(sink: MetricSink, valid: Sequence[TrajectoryRecord]) -> None:
    facts = [item.facts for item in valid if item.facts is not None]
    turns = [turn for item in valid for turn in item.turns]
    depths = [float(fact.tool_depth) for fact in facts]
    calls = sum(fact.tool_depth for fact in facts)
    sink.mean("l2.format_compliance", (turn.action_kind != UNPARSEABLE for turn in turns))
    sink.mean("l2.tool_calls_mean", depths)
    sink.add("l2.tool_calls_variance", variance(depths), len(depths))
    for name, terminal in (
        ("finish_rate", FINISH),
        ("policy_error_rate", POLICY_ERROR),
        ("share_at_budget", BUDGET_EXHAUSTED),
    ):
        sink.mean(f"l2.{name}", (item.terminal == terminal for item in valid))
    for name, total in (
        ("repeat_call_rate", sum(fact.repeat_calls for fact in facts)),
        ("productive_call_rate", sum(fact.productive_calls for fact in facts)),
    ):
        sink.add(f"l2.{name}", total / calls if calls else None, calls)
    sink.mean("l2.premature_finish_rate", (bool(fact.premature_finish) for fact in facts if fact.finished))
    sink.mean("l2.failure_exposure", (fact.exposed for fact in facts))
    sink.mean("l2.recovery_by_exposure", (bool(fact.recovered) for fact in facts if fact.exposed))
    sink.mean("l2.recovery_all", (bool(fact.recovered) for fact in facts))
    fatal = [fact for fact in facts if fact.fatal_start is not None]
    sink.mean("l2.fatal_rate", (fact.fatal_start is not None for fact in facts))
    sink.mean("l2.continued_after_fatal", (bool(fact.continued_after_fatal) for fact in fatal))


def _length_metrics(sink: MetricSink, valid: Sequence[TrajectoryRecord]) -> None:
    lengths = [float(sum(turn.policy_tokens for turn in item.turns)) for item in valid]
    successes = [bool(item.success) for item in valid]
    sink.mean("l2.response_length", lengths)
    sink.add("l2.length_correctness_r", point_biserial(lengths, successes), len(lengths))
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
    for tercile in range(3):
        part = order[tercile * len(order) // 3 : (tercile + 1) * len(order) // 3]
        sink.mean("l2.correct_by_length", (successes[index] for index in part), tercile=str(tercile + 1))


def _signal_metrics(sink: MetricSink, groups: Sequence[GroupRecord], valid: Sequence[TrajectoryRecord]) -> None:
    rewards = [item.reward.total for item in valid if item.reward is not None]
    sink.mean("l3.reward_mean", rewards)
    spread = variance(rewards)
    sink.add("l3.reward_std", None if spread is None else math.sqrt(spread), len(rewards))
    sink.mean("l3.success_rate", (bool(item.success) for item in valid))
    complete = [group for group in groups if group.eligible]
    sums, sigmas, gaps = [], [], []
    for group in complete:
        totals = [item.reward.total for item in group.trajectories if item.reward is not None]
        successes = [bool(item.success) for item in group.trajectories]
        sigma = math.sqrt(variance(totals) or 0.0)
        sums.append(math.fsum(totals))
        sigmas.append(sigma)
        gaps.append(float(any(successes)) - sum(successes) / len(successes))
        sink.mean("l3.reward_mean", totals, group.uid)
        sink.add("l3.group_sigma", sigma, len(totals), group.uid)
    sink.mean("l3.group_sigma", sigmas)
    sink.mean("l3.pass_gap", gaps)
    top = sorted(sums, reverse=True)[: max(1, len(sums) // 10)]
    sink.add("l3.reward_concentration", math.fsum(top) / math.fsum(sums) if math.fsum(sums) else None, len(sums))
    if any(group.signal is not None for group in complete):
        kinds = [group.signal for group in complete]
        sink.mean("l3.zero_variance_share", (kind != SIGNAL for kind in kinds))
        sink.mean("l3.zero_all_right_share", (kind == "zero_all_right" for kind in kinds))
        sink.mean("l3.zero_all_wrong_share", (kind == "zero_all_wrong" for kind in kinds))
        sink.mean("l3.groups_with_signal", (group.signal == SIGNAL for group in groups))


def _actions(item: TrajectoryRecord) -> list[str]:
    return [turn.action_text for turn in item.turns]


def _exploration_metrics(sink: MetricSink, groups: Sequence[GroupRecord], rollouts: dict[str, Rollout]) -> None:
    distances, distinct, thinks, sizes, labels = [], [], [], [], set()
    for group in groups:
        valid = [item for item in group.trajectories if item.status == VALID]
        if len(valid) < 2:
            continue
        actions = [_actions(item) for item in valid]
        distances.append(pairwise_distance(actions) or 0.0)
        distinct.append(float(len({tuple(sequence) for sequence in actions})))
        sink.add("l4.action_edit_distance", distances[-1], len(valid), group.uid)
        sink.add("l4.distinct_sequences", distinct[-1], len(valid), group.uid)
        think = [_first_think(rollouts[item.uid]) for item in valid]
        if any(think):
            thinks.append(pairwise_distance(think) or 0.0)
            sink.add("l4.think_edit_distance", thinks[-1], len(valid), group.uid)
        visits: dict[str, int] = {}
        for item in valid:
            for label in {measure.state_label for measure in rollouts[item.uid].measures if measure.state_label}:
                visits[label] = visits.get(label, 0) + 1
        sizes += [float(count) for count in visits.values()]
        labels |= set(visits)
    sink.mean("l4.action_edit_distance", distances)
    sink.mean("l4.distinct_sequences", distinct)
    sink.mean("l4.think_edit_distance", thinks)
    sink.mean("l4.step_group_size", sizes)
    sink.add("l4.state_coverage", float(len(labels)), len(labels))


def _first_think(rollout: Rollout) -> list[int]:
    if not rollout.measures:
        return []
    turn = rollout.measures[0]
    return [token for token, kind in zip(turn.generated_ids, turn.segments, strict=True) if kind == SEGMENT_THINK]
