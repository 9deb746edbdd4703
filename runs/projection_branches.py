"""Branches to row columns: the one mapping that writes rows and that ``verify`` rebuilds them with."""

from __future__ import annotations

import uuid
from typing import Any

from runs.projection import storable
from workbench.contracts.branches import (
    AFTER,
    BEFORE,
    BranchRecord,
    Continuation,
    mean_reward,
    point_of,
    standard_error,
    turn_value,
)

Columns = dict[str, Any]


def branch_columns(record: BranchRecord) -> Columns:
    """Columns of ``StateBranch`` that the record proves."""
    before, before_n = mean_reward(point_of(record, BEFORE), record.reward)
    after, after_n = mean_reward(point_of(record, AFTER), record.reward)
    names = ("decision", "ordinal", "count", "seed", "adapter_sha256", "policy_version")
    return {
        **{name: getattr(record, name) for name in names},
        "uid": uuid.UUID(record.uid),
        "before": before,
        "before_n": before_n,
        "after": after,
        "after_n": after_n,
        "value": turn_value(record),
        "points": [
            {
                "point": point.point,
                "recorded": point.recorded_state_sha256,
                "replayed": point.replayed_state_sha256,
                "restored": point.restored_state_sha256,
                "snapshot": point.snapshot_sha256,
                "terminal": point.terminal,
                "prompt": point.prompt_sha256,
                "standard_error": standard_error(point),
            }
            for point in record.points
        ],
    }


def continuation_columns(point: str, item: Continuation) -> Columns:
    """Columns of ``BranchContinuation``."""
    names = (
        "index", "seed", "start_state_sha256", "status", "terminal", "reward", "success", "policy_tokens",
        "final_state_sha256",
    )  # fmt: skip
    return {
        **{name: getattr(item, name) for name in names},
        "point": point,
        "invalid_reason": storable(item.invalid_reason),
        "actions": storable(list(item.actions)),
    }
