"""One update's trajectories by their gradient norm at its steps: what stands behind a spike."""

from __future__ import annotations

import math
from dataclasses import dataclass

from runs.models import TraceFrame, Trajectory, UpdateBatch
from runs.presenters.told import told
from runs.storage import blob_store
from workbench.blobs import BlobError
from workbench.contracts.errors import ContractError
from workbench.tracefile import read_frame


@dataclass(frozen=True)
class Contribution:
    """One trajectory of an update. ``norms`` by optimizer step: None where it was not measured or not readable.

    ``share`` of the summed norms at the first step; norms add where gradients may cancel. ``why``: what kept a
    frame from being read, "" for nothing.
    """

    trajectory: Trajectory
    advantage: float | None
    policy_tokens: int
    trained_tokens: int
    norms: tuple[float | None, ...]
    share: float | None
    why: str


def _norm(frame: TraceFrame, blob: str) -> tuple[float | None, str]:
    try:
        data = blob_store().open_range(blob, frame.offset, frame.length)
        return read_frame(data, frame.frame_sha256).grad_norm, ""
    except (BlobError, ContractError) as error:
        return None, told(error)


def contributions_of(update: UpdateBatch) -> tuple[list[int], list[Contribution]]:
    """Steps of the update, and its trajectories with the largest gradient norm first."""
    frames: dict[int, dict[int, TraceFrame]] = {}
    for frame in TraceFrame.objects.filter(update=update).order_by("step"):
        frames.setdefault(frame.trajectory_id, {})[frame.step] = frame
    steps = sorted({step for found in frames.values() for step in found})
    rows = []
    for credit in update.credits.select_related("trajectory__group__task").order_by("id"):
        norms, why = [], ""
        for step in steps:
            kept = frames.get(credit.trajectory_id, {}).get(step)
            value, trouble = (None, "") if kept is None else _norm(kept, update.trace_blob_sha256 or "")
            norms.append(value)
            why = why or trouble
        rows.append((credit, tuple(norms), why))
    total = math.fsum(norms[0] or 0.0 for _, norms, _ in rows if norms)
    found = [
        Contribution(
            credit.trajectory, credit.advantage, credit.policy_tokens, credit.trained_tokens, norms,
            norms[0] / total if norms and norms[0] is not None and total > 0 else None, why,
        )
        for credit, norms, why in rows
    ]  # fmt: skip
    found.sort(key=lambda row: (-max((value or 0.0 for value in row.norms), default=0.0), row.trajectory.pk))
    return steps, found
