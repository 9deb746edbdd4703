"""L2 to L4 quantities of a collected shard, as ``MetricRecord`` values.

Definitions: ``workbench.contracts.metrics``. A value is None where its condition never occurred (a
recovery rate without a failure), with count 0; it is never a zero instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.contracts.capture import SEGMENT_THINK
from workbench.contracts.estimators import task_pass_at_k
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

from .metrics_sink import MetricSink, concentration, mean, pairwise_distance, point_biserial, quantile, variance
from .records import Rollout
from .text_metrics import IsContent, token_metrics

__all__ = ["MetricSink", "collection_metrics", "mean"]

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


def collection_metrics(
    groups: Sequence[GroupRecord],
    rollouts: dict[str, Rollout],
    phase: str,
    split: str,
    policy_version: int,
    *,
    is_content: IsContent | None = None,
    demonstrated: frozenset[str] = frozenset(),
) -> tuple[MetricRecord, ...]:
    """L2 to L4 of a shard: one value for the shard, and one a group where the scope says so.

    ``is_content``: which ids are content, for the influence of Observations. ``demonstrated``: state labels of
    the warm start's demonstrations. Without them these two are not measured.
    """
    sink = MetricSink(phase, split, policy_version)
    every = [item for group in groups for item in group.trajectories]
    valid = [item for item in every if item.status == VALID]
    sink.mean("l2.infrastructure_invalid_share", (item.status != VALID for item in every))
    token_metrics(sink, [rollouts[item.uid] for item in valid], is_content)
    _demonstrated(sink, [rollouts[item.uid] for item in valid], demonstrated)
    _behaviour_metrics(sink, valid)
    _length_metrics(sink, valid)
    _signal_metrics(sink, groups, valid)
    _exploration_metrics(sink, groups, rollouts)
    return tuple(sink.records)


def _demonstrated(sink: MetricSink, rollouts: Sequence[Rollout], demonstrated: frozenset[str]) -> None:
    labels = [measure.state_label for item in rollouts for measure in item.measures if measure.state_label]
    if demonstrated:
        sink.mean("l2.state_outside_demonstrations", (label not in demonstrated for label in labels))


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
    for part in QUANTILES if sigmas else ():
        sink.add("l3.group_sigma_quantile", quantile(sigmas, part), len(sigmas), q=f"{part:g}")
    sink.mean("l3.pass_gap", gaps)
    _pass_at_k(sink, [[bool(item.success) for item in group.trajectories] for group in complete])
    top = sorted(sums, reverse=True)[: max(1, len(sums) // 10)]
    sink.add("l3.reward_concentration", math.fsum(top) / math.fsum(sums) if math.fsum(sums) else None, len(sums))
    if any(group.signal is not None for group in complete):
        kinds = [group.signal for group in complete]
        sink.mean("l3.zero_variance_share", (kind != SIGNAL for kind in kinds))
        sink.mean("l3.zero_all_right_share", (kind == "zero_all_right" for kind in kinds))
        sink.mean("l3.zero_all_wrong_share", (kind == "zero_all_wrong" for kind in kinds))
        sink.mean("l3.groups_with_signal", (group.signal == SIGNAL for group in groups))


def _pass_at_k(sink: MetricSink, groups: Sequence[Sequence[bool]]) -> None:
    """pass@k and its gap to pass@1 by the unbiased estimator, for k = 2, 4, 8 ... up to the smallest group."""
    smallest = min((len(group) for group in groups), default=0)
    k = 2
    while k <= smallest:
        values = [task_pass_at_k(len(group), sum(group), k) for group in groups]
        ones = [sum(group) / len(group) for group in groups]
        sink.mean("l3.pass_at_k", values, k=str(k))
        sink.mean("l3.pass_gap_k", (value - one for value, one in zip(values, ones, strict=True)), k=str(k))
        k *= 2


def _actions(item: TrajectoryRecord) -> list[str]:
    return [turn.action_text for turn in item.turns]


def _exploration_metrics(sink: MetricSink, groups: Sequence[GroupRecord], rollouts: dict[str, Rollout]) -> None:
    distances, distinct, thinks, sizes, shares, labels = [], [], [], [], [], set()
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
        if visits:
            shares.append(concentration(list(visits.values())))
            sink.add("l4.state_concentration", shares[-1], sum(visits.values()), group.uid)
        labels |= set(visits)
    sink.mean("l4.action_edit_distance", distances)
    sink.mean("l4.distinct_sequences", distinct)
    sink.mean("l4.think_edit_distance", thinks)
    sink.mean("l4.step_group_size", sizes)
    sink.mean("l4.state_concentration", shares)
    sink.add("l4.state_coverage", float(len(labels)), len(labels))


def _first_think(rollout: Rollout) -> list[int]:
    if not rollout.measures:
        return []
    turn = rollout.measures[0]
    return [token for token, kind in zip(turn.generated_ids, turn.segments, strict=True) if kind == SEGMENT_THINK]
