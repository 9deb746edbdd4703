"""L1 to L3 quantities of an optimizer batch, as ``MetricRecord`` values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from workbench.contracts.capture import SEGMENT_NAMES
from workbench.contracts.records import GroupRecord, MetricRecord, SegmentEntropy, StepRecord, UpdateRecord
from workbench.tracefile import Trace

from .batch import TrajectoryTokens
from .edit_metrics import edit_metrics
from .metrics_sink import MetricSink

LARGEST_LOG = math.log(np.finfo(np.float64).max)


def segment_entropies(traces: Iterable[Trace], trajectories: Sequence[TrajectoryTokens]) -> tuple[SegmentEntropy, ...]:
    """Mean exact entropy of the trained tokens by (step, segment), in that order; absent where none was trained."""
    segments = {item.uid: np.array(item.segments_T, dtype=np.int64) for item in trajectories}
    sums: dict[int, np.ndarray] = {}
    for trace in traces:
        kept = np.array(trace.is_credited, dtype=bool)
        kinds = segments[trace.trajectory_uid][kept]
        values = np.array(trace.entropies, dtype=np.float64)[kept]
        total = sums.setdefault(trace.step, np.zeros((2, len(SEGMENT_NAMES))))
        total[0] += np.bincount(kinds, weights=values, minlength=len(SEGMENT_NAMES))
        total[1] += np.bincount(kinds, minlength=len(SEGMENT_NAMES))
    return tuple(
        SegmentEntropy(step, name, float(total[0, kind] / total[1, kind]), int(total[1, kind]))
        for step, total in sorted(sums.items())
        for kind, name in enumerate(SEGMENT_NAMES)
        if total[1, kind]
    )


def _measures(sink: MetricSink, update: UpdateRecord) -> None:
    found = update.measures
    if found is None:
        return
    if found.reference_adapter is not None:
        sink.add("l1.kl_k1_reference", found.kl_k1_reference, found.reference_tokens, update.uid)
        sink.add("l1.kl_k3_reference", found.kl_k3_reference, found.reference_tokens, update.uid)
    epochs = {step.step: str(step.epoch) for step in update.steps}
    for item in found.segment_entropies:
        labels = {"epoch": epochs[item.step], "segment": item.segment}
        sink.add("l2.entropy_trained", item.entropy, item.tokens, update.uid, **labels)


def effective_sample_size(log_weights: Sequence[float]) -> float | None:
    """(sum w)^2 / sum w^2 of weights given by their logarithms; None of none. Between 1 and their number.

    Weights are divided by the largest first, which changes nothing and cannot overflow.
    """
    if not log_weights:
        return None
    largest = max(log_weights)
    weights = [math.exp(value - largest) for value in log_weights]
    return math.fsum(weights) ** 2 / math.fsum(weight * weight for weight in weights)


def exponential(value: float) -> float:
    """exp, infinite instead of an overflow."""
    return math.exp(value) if value <= LARGEST_LOG else math.inf


def _lag(sink: MetricSink, update: UpdateRecord, groups: Sequence[GroupRecord], traces: Sequence[Trace]) -> None:
    """How far each trajectory was from the weights of its last step, and what that leaves of the batch."""
    version = {item.uid: group.identities.policy_version for group in groups for item in group.trajectories}
    last = {trace.trajectory_uid: trace for trace in traces}  # traces stand in the order of the steps
    sequences: list[float] = []
    tokens: list[float] = []
    for uid, trace in last.items():
        deltas = [new - old for new, old in zip(trace.new_logprobs, trace.old_logprobs, strict=True)]
        count, credited = len(deltas), sum(trace.is_credited)
        clipped = sum(1 for side, keep in zip(trace.clipped, trace.is_credited, strict=True) if side and keep)
        sequences.append(math.fsum(deltas))
        tokens += deltas
        k3 = math.fsum(exponential(delta) - 1.0 - delta for delta in deltas)
        sink.add("l1.trajectory_age", float(update.policy_version - version[uid]), 1, uid)
        sink.add("l1.sequence_ratio", exponential(sequences[-1]), count, uid)
        sink.add("l1.trajectory_kl_k3", k3 / count if count else None, count, uid)
        sink.add("l1.trajectory_clip_share", clipped / credited if credited else None, credited, uid)
    for name, logs in (("trajectory", sequences), ("token", tokens)):
        sink.add("l1.effective_sample_size", effective_sample_size(logs), len(logs), update.uid, over=name)


def _step_metrics(sink: MetricSink, step: StepRecord, uid: str) -> None:
    for name in ("loss", "grad_norm", "update_norm", "relative_update_norm"):
        sink.add(f"l1.{name}", getattr(step, name), step.trajectories, uid, epoch=str(step.epoch))
    for name, value in (
        ("l1.clip_low_share", step.clip_low_share),
        ("l1.clip_high_share", step.clip_high_share),
        ("l1.ratio_max_deviation", step.ratio_max_deviation),
        ("l1.kl_k1_old", step.kl_k1),
        ("l1.kl_k3_old", step.kl_k3),
        ("l2.entropy_trained", step.entropy),
    ):
        sink.add(name, value if step.trained_tokens else None, step.trained_tokens, uid, epoch=str(step.epoch))


def update_metrics(
    update: UpdateRecord, groups: Sequence[GroupRecord], gradient_norms: dict[str, float], traces: Sequence[Trace] = ()
) -> tuple[MetricRecord, ...]:
    """L1 and L3 of an optimizer batch; ``gradient_norms`` by trajectory uid, of the first step.

    ``traces``: every (step, trajectory) of the batch; a trajectory's lag is that of its last step.
    """
    split = groups[0].split if groups else ""
    sink = MetricSink("train", split, update.policy_version, update.batch)
    for step in update.steps:
        _step_metrics(sink, step, update.uid)
    sink.add("l1.skipped_share", float(update.skipped is not None), 1, update.uid)
    sink.add("l3.groups_with_update", len(update.trained_group_uids) / max(1, len(groups)), len(groups), update.uid)
    credits = update.credits
    tokens = sum(item.policy_tokens for item in credits)
    masked = sum(item.masked_tokens for item in credits)
    sink.add("l1.masked_token_share", masked / tokens if tokens else None, tokens, update.uid)
    drifts = [
        (item.engine_drift_mean, item.policy_tokens, item.engine_drift_max)
        for item in credits
        if item.engine_drift_mean is not None
    ]
    weight = sum(count for _, count, _ in drifts)
    total = math.fsum(value * count for value, count, _ in drifts if value is not None)
    sink.add("l1.engine_drift_mean", total / weight if weight else None, weight, update.uid)
    worst = [value for _, _, value in drifts if value is not None]
    sink.add("l1.engine_drift_max", max(worst) if worst else None, weight, update.uid)
    weights = [abs(item.advantage) for item in credits]
    squares = math.fsum(value * value for value in weights)
    sink.add("l3.effective_batch", math.fsum(weights) ** 2 / squares if squares else None, len(weights), update.uid)
    _gradient_shares(sink, update, groups, gradient_norms)
    _measures(sink, update)
    edit_metrics(sink, update)
    _lag(sink, update, groups, traces)
    return tuple(sink.records)


def _gradient_shares(
    sink: MetricSink, update: UpdateRecord, groups: Sequence[GroupRecord], gradient_norms: dict[str, float]
) -> None:
    total = math.fsum(gradient_norms.values())
    if not total:
        return
    shares: dict[str, list[float]] = {"none": [], "some": [], "all": []}
    for group in groups:
        successes = [bool(item.success) for item in group.trajectories]
        stratum = "all" if all(successes) else ("some" if any(successes) else "none")
        shares[stratum] += [gradient_norms[item.uid] for item in group.trajectories if item.uid in gradient_norms]
    for stratum, norms in shares.items():
        sink.add("l3.gradient_share", math.fsum(norms) / total, len(norms), update.uid, success=stratum)
