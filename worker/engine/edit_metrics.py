"""L3 quantities of credit from edits: where an update put auxiliary mass, and how much of it was withheld."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from workbench.contracts.records import EditCreditRecord, UpdateRecord
from workbench.contracts.trials import UNAVAILABLE

from .edit_credit import NO_SELECTED_TOKEN
from .metrics_sink import MetricSink

APPLIED = "applied"
REASONS = (*UNAVAILABLE, NO_SELECTED_TOKEN)
MASSES = ("signed_mass", "l1_mass", "squared_mass")


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def edit_metrics(sink: MetricSink, update: UpdateRecord) -> None:
    """Of the trained trajectories of one update, labelled by arm; nothing for an arm without credit from edits."""
    terms = [item.edit for item in update.credits if item.edit is not None]
    for arm in sorted({item.arm for item in terms}):
        _of_arm(sink, update, arm, [item for item in terms if item.arm == arm])


def _of_arm(sink: MetricSink, update: UpdateRecord, arm: str, terms: Sequence[EditCreditRecord]) -> None:
    applied = [item for item in terms if item.status == APPLIED]
    known = [item.difference for item in terms if item.difference is not None]
    shrunk = [item.shrinkage for item in applied if item.shrinkage is not None]
    for name in MASSES:
        total = math.fsum(getattr(item, name) for item in terms)
        sink.add(f"l3.edit_{name}", total / len(terms), len(terms), update.uid, arm=arm)
    capped = sum(item.capped for item in applied)
    sink.add("l3.edit_capped_share", capped / len(applied) if applied else None, len(applied), update.uid, arm=arm)
    if arm != "E":
        nonzero = sum(value != 0 for value in known)
        sink.add("l3.edit_nonzero_share", nonzero / len(known) if known else None, len(known), update.uid, arm=arm)
        sink.add("l3.edit_shrinkage", _median(shrunk), len(shrunk), update.uid, arm=arm)
    for reason in REASONS:
        share = sum(item.status == reason for item in terms) / len(terms)
        sink.add("l3.edit_unavailable_share", share, len(terms), update.uid, arm=arm, reason=reason)
    parts = [item.selected_tokens / item.tokens for item in applied]
    sink.add("l3.edit_selected_share", _median(parts), len(parts), update.uid, arm=arm)
    trained = len(update.trained_group_uids)
    only = len(update.edit_only_group_uids)
    sink.add("l3.edit_only_groups", only / trained if trained else None, trained, update.uid, arm=arm)
