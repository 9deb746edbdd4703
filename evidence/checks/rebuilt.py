"""Metric values that one group's or one update's document fixes, by definition id.

Written apart from the engine. Values over several documents: ``derived``. Those of a whole shard (no
subject) are proved by the hash of their own record only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

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


def _edits(first: Sequence[str], second: Sequence[str]) -> int:
    """Levenshtein distance over the full table."""
    rows, columns = len(first) + 1, len(second) + 1
    table = [[row + column if not row or not column else 0 for column in range(columns)] for row in range(rows)]
    for row, left in enumerate(first, 1):
        for column, right in enumerate(second, 1):
            change = table[row - 1][column - 1] + (left != right)
            table[row][column] = min(table[row - 1][column] + 1, table[row][column - 1] + 1, change)
    return table[-1][-1]


def _edit_distance(record: GroupRecord) -> Found:
    paths = [[turn.action_text for turn in item.turns] for item in record.trajectories if item.status == VALID]
    shares = [_edits(a, b) / (max(len(a), len(b)) or 1) for a, b in combinations(paths, 2)]
    return sum(shares) / len(shares), len(paths)


def _distinct(record: GroupRecord) -> Found:
    valid = [item for item in record.trajectories if item.status == VALID]
    return float(len({tuple(turn.action_text for turn in item.turns) for item in valid})), len(valid)


GROUP_VALUES: dict[str, Callable[[GroupRecord], Found]] = {
    "l3.reward_mean/1": lambda record: _mean(_rewards(record)),
    "l3.group_sigma/1": _sigma,
    "l4.distinct_sequences/1": _distinct,
    "l4.action_edit_distance/1": _edit_distance,
}


def _masked_share(record: UpdateRecord) -> Found:
    tokens = sum(item.policy_tokens for item in record.credits)
    return (sum(item.masked_tokens for item in record.credits) / tokens if tokens else None), tokens


def _drift_max(record: UpdateRecord) -> Found:
    worst = [item.engine_drift_max for item in record.credits if item.engine_drift_max is not None]
    measured = sum(item.policy_tokens for item in record.credits if item.engine_drift_mean is not None)
    return (max(worst) if worst else None), measured


def _drift_mean(record: UpdateRecord) -> Found:
    known = [item for item in record.credits if item.engine_drift_mean is not None]
    tokens = sum(item.policy_tokens for item in known)
    total = sum((item.engine_drift_mean or 0.0) * item.policy_tokens for item in known)
    return (total / tokens if tokens else None), tokens


def _effective_batch(record: UpdateRecord) -> Found:
    weights = [abs(item.advantage) for item in record.credits]
    squares = sum(weight * weight for weight in weights)
    return (sum(weights) ** 2 / squares if squares else None), len(weights)


def _with_update(record: UpdateRecord) -> Found:
    return len(record.trained_group_uids) / max(1, len(record.group_uids)), len(record.group_uids)


def _reference(record: UpdateRecord, name: str) -> Found:
    measures = record.measures
    return (None, 0) if measures is None else (getattr(measures, name), measures.reference_tokens)


UPDATE_VALUES: dict[str, Callable[[UpdateRecord], Found]] = {
    "l1.skipped_share/1": lambda record: (1.0 if record.skipped else 0.0, 1),
    "l1.masked_token_share/1": _masked_share,
    "l1.engine_drift_max/1": _drift_max,
    "l1.engine_drift_mean/1": _drift_mean,
    "l1.kl_k1_reference/1": lambda record: _reference(record, "kl_k1_reference"),
    "l1.kl_k3_reference/1": lambda record: _reference(record, "kl_k3_reference"),
    "l3.effective_batch/1": _effective_batch,
    "l3.groups_with_update/1": _with_update,
}
EDIT_MASSES = {f"l3.edit_{name}/1": name for name in ("signed_mass", "l1_mass", "squared_mass")}


def _middle(values: Sequence[float]) -> Found:
    ordered, half = sorted(values), len(values) // 2
    if not ordered:
        return None, 0
    return (ordered[half] + ordered[-1 - half]) / 2, len(ordered)


def _edit_value(item: MetricRecord, update: UpdateRecord) -> Found | None:
    """Credit from edits of one arm, from the update's own edit records; None for another definition."""
    terms = [credit.edit for credit in update.credits if credit.edit is not None]
    terms = [term for term in terms if term.arm == item.labels.get("arm")]
    applied = [term for term in terms if term.status == "applied"]
    if item.definition in EDIT_MASSES:
        return _mean([getattr(term, EDIT_MASSES[item.definition]) for term in terms])
    if item.definition == "l3.edit_capped_share/1":
        return _mean([float(term.capped) for term in applied])
    if item.definition == "l3.edit_nonzero_share/1":
        return _mean([float(term.difference != 0) for term in terms if term.difference is not None])
    if item.definition == "l3.edit_unavailable_share/1":
        return _mean([float(term.status == item.labels.get("reason")) for term in terms])
    if item.definition == "l3.edit_selected_share/1":
        return _middle([term.selected_tokens / term.tokens for term in applied])
    if item.definition == "l3.edit_shrinkage/1":
        return _middle([term.shrinkage for term in applied if term.shrinkage is not None])
    if item.definition == "l3.edit_only_groups/1":
        return _mean([float(uid in update.edit_only_group_uids) for uid in update.trained_group_uids])
    return None


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
    epoch = item.labels.get("epoch")
    if "segment" in item.labels:
        return _segment_values(item.labels["segment"], str(epoch), subject)
    if item.definition in STEP_FIELDS:
        steps = [step for step in subject.steps if str(step.epoch) == epoch]
        return [step_value(step, STEP_FIELDS[item.definition]) for step in steps]
    edit = _edit_value(item, subject)
    if edit is not None:
        return [edit]
    compute = UPDATE_VALUES.get(item.definition)
    return None if compute is None else [compute(subject)]


def _segment_values(segment: str, epoch: str, subject: UpdateRecord) -> list[Found]:
    """Entropy of a segment at every step of the epoch, as the update recorded it."""
    steps = {step.step for step in subject.steps if str(step.epoch) == epoch}
    found = subject.measures.segment_entropies if subject.measures is not None else ()
    return [(item.entropy, item.tokens) for item in found if item.step in steps and item.segment == segment]
