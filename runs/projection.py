"""Records to row columns: the one mapping that writes rows and that ``verify`` rebuilds them with.

Each function returns the non-relational columns of one row. Text that a database cannot hold (NUL)
is written with its visible sign; the exact text stays in the document.
"""

from __future__ import annotations

import dataclasses
import math
import uuid
from typing import Any

from workbench.contracts.canonical import canonical_bytes, derive_uid
from workbench.contracts.errors import RecordError
from workbench.contracts.records import (
    CaptureRef,
    GroupRecord,
    MetricRecord,
    ObservationRecord,
    OutcomeFacts,
    RewardComponent,
    StepRecord,
    ToolCallRecord,
    TraceRef,
    TrajectoryCredit,
    TrajectoryRecord,
    TurnRecord,
    UpdateRecord,
)
from workbench.contracts.wire import to_wire

FACT_COLUMNS = tuple(item.name for item in dataclasses.fields(OutcomeFacts))
STEP_COLUMNS = tuple(item.name for item in dataclasses.fields(StepRecord))
CREDIT_COLUMNS = tuple(
    item.name
    for item in dataclasses.fields(TrajectoryCredit)
    if item.name not in ("trajectory_uid", "group_uid", "edit")
)

Columns = dict[str, Any]


def storable(value: Any) -> Any:
    """Plain JSON or text without NUL, which PostgreSQL refuses in text and in JSON."""
    if isinstance(value, str):
        return value.replace("\x00", "\u2400")
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value


def _json(value: Any) -> Any:
    return storable(to_wire(value))


def nonfinite_name(value: float | None) -> str:
    """``nan``, ``inf`` or ``-inf``; empty for a finite value and for none at all."""
    if value is None or math.isfinite(value):
        return ""
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


def _finite(value: float | None, field: str) -> float | None:
    if nonfinite_name(value):
        raise RecordError(f"{field}: got {value}, expected a finite number or none")
    return value


def _with_nonfinite(columns: Columns) -> Columns:
    """Replace non-finite floats by None and name them in ``nonfinite``."""
    named = {key: nonfinite_name(value) for key, value in columns.items() if isinstance(value, float)}
    named = {key: name for key, name in named.items() if name}
    return {**columns, **dict.fromkeys(named), "nonfinite": named}


def group_columns(record: GroupRecord) -> Columns:
    """Columns of ``Group`` that the record proves."""
    return {
        "uid": uuid.UUID(record.uid),
        "purpose": record.purpose,
        "condition": record.condition,
        "split": record.split,
        "ordinal": record.ordinal,
        "failure_profile": record.failure_profile,
        "identities": _json(record.identities),
        "policy_version": record.identities.policy_version,
        "eligible": record.eligible,
        "ineligible_reason": storable(record.ineligible_reason),
        "signal": record.signal,
        "mean": _finite(record.mean, "mean"),
        "sigma": _finite(record.sigma, "sigma"),
    }


def trajectory_columns(record: TrajectoryRecord, advantage: float | None) -> Columns:
    """Columns of ``Trajectory``."""
    reward, facts = record.reward, record.facts
    return {
        "uid": uuid.UUID(record.uid),
        "slot": record.slot,
        "seed": record.seed,
        "status": record.status,
        "invalid_reason": storable(record.invalid_reason),
        "terminal": record.terminal,
        "success": record.success,
        "success_definition": record.success_definition,
        "reward_total": None if reward is None else _finite(reward.total, f"trajectories[{record.slot}].reward.total"),
        "advantage": _finite(advantage, f"advantages_G[{record.slot}]"),
        "reward_version": None if reward is None else reward.version,
        "gate": None if reward is None else _finite(reward.gate, f"trajectories[{record.slot}].reward.gate"),
        **{name: None if facts is None else getattr(facts, name) for name in FACT_COLUMNS},
        "injections": _json(record.injections),
        "invariants": _json(record.invariants),
        "generated_tokens": sum(turn.generated_tokens for turn in record.turns),
        "policy_tokens": sum(turn.policy_tokens for turn in record.turns),
        "prompt_tokens": sum(turn.prompt_tokens for turn in record.turns),
        "initial_state_sha256": record.initial_state_sha256,
        "final_state_sha256": record.final_state_sha256,
        "grade": "A",
    }


def advantages(record: GroupRecord) -> list[float | None]:
    """Advantage per trajectory; None for each where the group trains nothing."""
    if record.advantages_G is None:
        return [None] * len(record.trajectories)
    if len(record.advantages_G) != len(record.trajectories):
        raise RecordError(
            f"advantages_G: got {len(record.advantages_G)} values, expected one for each of {len(record.trajectories)}"
        )
    return list(record.advantages_G)


def turn_columns(record: TurnRecord) -> Columns:
    """Columns of ``Turn`` but the place of its capture."""
    return {
        "decision": record.decision,
        "branch": record.branch,
        "parent_decision": record.parent_decision,
        "capture_sha256": record.capture_sha256,
        "prompt_tokens": record.prompt_tokens,
        "generated_tokens": record.generated_tokens,
        "policy_tokens": record.policy_tokens,
        "action_kind": record.action_kind,
        "parse_error": storable(record.parse_error),
        "think_text": storable(record.think_text),
        "action_text": storable(record.action_text),
        "finish": _json(record.finish),
        "state_before": record.state_before_sha256,
        "state_after": record.state_after_sha256,
        "policy_version": record.policy_version,
    }


def place_columns(ref: CaptureRef) -> Columns:
    """Where the capture's frame lies in the group file."""
    return {"offset": ref.offset, "length": ref.length}


def call_columns(record: ToolCallRecord) -> Columns:
    """Columns of ``ToolCall``."""
    return {
        "ordinal": record.ordinal,
        "tool": storable(record.tool),
        "arguments": _json(record.arguments),
        "executed": record.executed,
        "backend_called": record.backend_called,
        "is_repeat": record.is_repeat,
        "is_productive": record.is_productive,
    }


def observation_columns(record: ObservationRecord) -> Columns:
    """Columns of ``Observation``."""
    return {
        "status": record.status,
        "retryable": record.retryable,
        "injected": record.injected,
        "text": storable(record.text),
        "facts": _json(record.facts),
    }


def component_columns(record: RewardComponent) -> Columns:
    """Columns of ``RewardComponent``."""
    return {
        "name": record.name,
        "weight": _finite(record.weight, f"{record.name}.weight"),
        "value": _finite(record.value, f"{record.name}.value"),
        "points": _finite(record.points, f"{record.name}.points"),
        "state": record.state,
        "detail": _json(record.detail),
    }


def update_columns(record: UpdateRecord) -> Columns:
    """Columns of ``UpdateBatch`` but its checkpoints."""
    return {
        "uid": uuid.UUID(record.uid),
        "batch": record.batch,
        "policy_version": record.policy_version,
        "optimizer_before": record.optimizer_before,
        "optimizer_after": record.optimizer_after,
        "capture_digest": record.capture_digest,
        "old_logprobs_sha256": record.old_logprobs_sha256,
        "trace_blob_sha256": record.trace_blob_sha256,
        "skipped": record.skipped,
        "note": storable(record.note),
        "clipping_inert": record.clipping_inert,
    }


def step_columns(record: StepRecord) -> Columns:
    """Columns of ``UpdateStep``."""
    return _with_nonfinite({name: getattr(record, name) for name in STEP_COLUMNS})


def credit_columns(record: TrajectoryCredit) -> Columns:
    """Columns of ``TrajectoryCredit``. ``edit``: the record's as plain JSON, None where the arm has none."""
    columns = _with_nonfinite({name: getattr(record, name) for name in CREDIT_COLUMNS})
    return {**columns, "edit": to_wire(record.edit)}


def trace_columns(record: TraceRef) -> Columns:
    """Columns of ``TraceFrame``."""
    return {
        "step": record.step,
        "frame_sha256": record.frame_sha256,
        "offset": record.offset,
        "length": record.length,
    }


def labels_key(labels: dict[str, str]) -> str:
    """Canonical text of a series' labels."""
    return canonical_bytes(labels).decode()


def series_uid(run_uid: str | None, record: MetricRecord, segment: str) -> uuid.UUID:
    """Uid of the series that a point belongs to."""
    identity = [record.definition, record.phase, record.split, record.labels, segment]
    return derive_uid(run_uid, "series:" + canonical_bytes(identity).decode())


def point_columns(record: MetricRecord) -> Columns:
    """Columns of ``MetricPoint`` but its times."""
    name = nonfinite_name(record.value)
    return {
        "value": None if name else record.value,
        "nonfinite": name,
        "count": record.count,
        "policy_version": record.policy_version,
        "update": record.update,
        "trajectories": record.trajectories,
        "generated_tokens": record.generated_tokens,
        "subject_uid": None if record.subject_uid is None else uuid.UUID(record.subject_uid),
    }


def item_uid(trajectory_uid: str) -> uuid.UUID:
    """Uid of the evaluation item of a trajectory."""
    return derive_uid(trajectory_uid, "evaluation_item")
