"""Trials to row columns: the one mapping that writes rows and that ``verify`` rebuilds them with."""

from __future__ import annotations

import uuid
from typing import Any

from runs.projection import storable
from workbench.contracts.trials import GroupTrials, InterventionRecord, TrialRecord, TrialTiming
from workbench.contracts.wire import to_wire

Columns = dict[str, Any]
TIMES = ("queue_s", "setup_s", "run_s", "cleanup_s", "service_s")


def _json(value: Any) -> Any:
    return storable(to_wire(value))


def trial_set_columns(record: GroupTrials) -> Columns:
    """Columns of ``TrialSet`` that the record proves."""
    return {
        "uid": uuid.UUID(record.uid),
        "purpose": record.purpose,
        "ordinal": record.ordinal,
        "verifier": record.verifier,
        "seed": record.seed,
        "mode": record.settings["mode"],
        "replays": record.settings["replays"],
        "repeats": record.settings["repeats"],
        "fail_to_pass": _json(record.fail_to_pass),
        "pass_to_pass": _json(record.pass_to_pass),
        "snapshots_sha256": record.snapshots_sha256,
        "unavailable": storable(record.unavailable),
    }


def intervention_columns(record: InterventionRecord) -> Columns:
    """Columns of ``Intervention``."""
    names = (
        "slot", "status", "selected", "policy_tokens", "selected_tokens", "final_tree_sha256", "without_tree_sha256",
        "final_paths", "touched_share", "is_empty_patch", "original_utility", "without_utility", "difference",
        "replays_agree", "replays", "repeats_agree", "repeats",
    )  # fmt: skip
    return {
        **{name: getattr(record, name) for name in names},
        "detail": storable(record.detail),
        "blocks": _json(record.blocks),
        "eligible_blocks": sum(block.eligible for block in record.blocks),
    }


def trial_columns(record: TrialRecord) -> Columns:
    """Columns of ``Trial`` but its timings, which no record holds."""
    names = (
        "kind", "repeat", "tree_sha256", "verifier", "complete", "utility", "success", "exit_code", "signal",
        "stdout_sha256", "stderr_sha256",
    )  # fmt: skip
    return {
        "uid": uuid.UUID(record.uid),
        **{name: getattr(record, name) for name in names},
        "unknown": storable(record.unknown),
        "observed": _json(record.observed),
        "level": _json(record.level),
        "repeated": _json(record.repeated),
    }


def timing_columns(timing: TrialTiming | None, waited_s: float) -> Columns:
    """Timings of a trial, None each where nothing was executed. ``waited_s``: how long its job had waited."""
    if timing is None:
        return dict.fromkeys(TIMES)
    own = {name: round(getattr(timing, name), 6) for name in TIMES}
    return {**own, "queue_s": round(waited_s + timing.queue_s, 6)}
