"""Metric values that one group's or one update's document fixes, by definition id.

Written apart from the engine. Values of a whole shard (no subject) lie over several documents and
are proved by the hash of their own record only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from workbench.contracts.records import VALID, GroupRecord, MetricRecord, StepRecord, UpdateRecord

Found = tuple[float | None, int]  # value and denominator


def _rewards(record: GroupRecord) -> list[float]:
    return [item.reward.total for item in record.trajectories if item.reward is not None]


def _mean(values: Sequence[float]) -> Found:
    return (sum(values) / len(values) if values else None), len(values)


def _sigma(record: GroupRecord) -> Found:
    rewards = _rewards(record)
    centre = sum(rewards) / len(rewards)
    return math.sqrt(sum((value - centre) ** 2 for value in rewards) / len(rewards)), len(rewards)


def _distinct(record: GroupRecord) -> Found:
    valid = [item for item in record.trajectories if item.status == VALID]
    return float(len({tuple(turn.action_text for turn in item.turns) for item in valid})), len(valid)


GROUP_VALUES: dict[str, Callable[[GroupRecord], Found]] = {
    "l3.reward_mean/1": lambda record: _mean(_rewards(record)),
    "l3.group_sigma/1": _sigma,
    "l4.distinct_sequences/1": _distinct,
}


def _masked_share(record: UpdateRecord) -> Found:
    tokens = sum(item.policy_tokens for item in record.credits)
    return (sum(item.masked_tokens for item in record.credits) / tokens if tokens else None), tokens


def _drift_max(record: UpdateRecord) -> Found:
    worst = [item.engine_drift_max for item in record.credits if item.engine_drift_max is not None]
    measured = sum(item.policy_tokens for item in record.credits if item.engine_drift_mean is not None)
    return (max(worst) if worst else None), measured


UPDATE_VALUES: dict[str, Callable[[UpdateRecord], Found]] = {
    "l1.skipped_share/1": lambda record: (1.0 if record.skipped else 0.0, 1),
    "l1.masked_token_share/1": _masked_share,
    "l1.engine_drift_max/1": _drift_max,
}
# Per optimizer step; ``l1`` shares exist only where the step trained a token.
STEP_FIELDS = {
    "l1.loss/1": "loss",
    "l1.grad_norm/1": "grad_norm",
    "l1.update_norm/1": "update_norm",
    "l1.relative_update_norm/1": "relative_update_norm",
    "l1.clip_low_share/1": "clip_low_share",
    "l1.clip_high_share/1": "clip_high_share",
    "l1.ratio_max_deviation/1": "ratio_max_deviation",
    "l1.kl_k1_old/1": "kl_k1",
    "l1.kl_k3_old/1": "kl_k3",
    "l2.entropy_trained/1": "entropy",
}
OVER_TRAJECTORIES = ("loss", "grad_norm", "update_norm", "relative_update_norm")


def step_value(step: StepRecord, field: str) -> Found:
    """Value and denominator of a per-step quantity."""
    if field in OVER_TRAJECTORIES:
        return getattr(step, field), step.trajectories
    return (getattr(step, field) if step.trained_tokens else None), step.trained_tokens


def expected_values(item: MetricRecord, subject: GroupRecord | UpdateRecord) -> list[Found] | None:
    """What ``item`` may say about its subject; None where this module does not know the definition.

    A per-step definition has as many right values as the update has steps in the labelled epoch.
    """
    if isinstance(subject, GroupRecord):
        rebuild = GROUP_VALUES.get(item.definition)
        return None if rebuild is None else [rebuild(subject)]
    if item.definition in STEP_FIELDS:
        epoch = item.labels.get("epoch")
        steps = [step for step in subject.steps if str(step.epoch) == epoch]
        return [step_value(step, STEP_FIELDS[item.definition]) for step in steps]
    compute = UPDATE_VALUES.get(item.definition)
    return None if compute is None else [compute(subject)]
