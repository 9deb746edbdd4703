"""Controls to row columns: the one mapping that writes rows and that ``verify`` rebuilds them with."""

from __future__ import annotations

import uuid
from typing import Any

from runs.projection import storable
from workbench.contracts.controls import ControlSlot, ControlsRecord, SlotTiming
from workbench.contracts.wire import to_wire

Columns = dict[str, Any]
TIMES = ("setup_s", "run_s", "cleanup_s", "service_s")


def control_set_columns(record: ControlsRecord) -> Columns:
    """Columns of ``ControlSet`` that the record proves."""
    names = ("environment", "environment_version", "code_sha256", "verifier", "ordinal")
    return {
        **{name: getattr(record, name) for name in names},
        "uid": uuid.UUID(record.uid),
        "splits": list(record.splits),
    }


def control_slot_columns(slot: ControlSlot) -> Columns:
    """Columns of ``ControlSlot`` but its timings, which no record holds."""
    names = (
        "kind", "split", "expected", "tests", "tree_sha256", "complete", "passed", "as_expected", "exit_code",
        "signal", "stdout_sha256", "stderr_sha256",
    )  # fmt: skip
    return {
        **{name: getattr(slot, name) for name in names},
        "categories": list(slot.categories),
        "unknown": storable(slot.unknown),
        "observed": storable(to_wire(slot.observed)),
        "level": storable(to_wire(slot.level)),
    }


def timing_columns(timing: SlotTiming) -> Columns:
    """Seconds of one slot."""
    return {name: getattr(timing, name) for name in TIMES}
