"""Rights of the pages of trials, written by hand, and an update with a stored term of edit credit for them to show."""

from __future__ import annotations

from typing import Any

from runs.models import Trajectory, TrajectoryCredit, UpdateBatch
from tests.people.rights_row import READERS, Row
from workbench.contracts.canonical import derive_uid

_PLAN = "/studies/{study}/plans/{plan}/"
EDIT_PAGES = [
    Row("runs:edit_credit", "GET", _PLAN + "edit-credit/", READERS),
    Row("runs:trials", "GET", _PLAN + "trials/", READERS),
    Row("runs:trials", "GET", _PLAN + "trials/?list=queries&run={run}", READERS),
    Row("runs:edits", "GET", "/trajectories/{trajectory}/edits/", READERS),
    Row("runs:coefficients", "GET", "/updates/{edit_update}/edit-credit/", READERS),
]
EDIT = {"arm": "M", "status": "applied", "selected": 0, "tokens": 12, "selected_tokens": 3, "difference": 0.5,
        "shrinkage": 0.5, "capped": True, "signed_mass": 3.0, "l1_mass": 3.0, "squared_mass": 3.0}  # fmt: skip


def parts(trajectory: Trajectory) -> dict[str, Any]:
    """s = 1/|1/2 * 12/3| = 1/2; signed and L1 mass 1/2 * 1/2 * 12 = 3, squared (1/2 * 1/2 * 12)^2 / 3 = 3."""
    before = UpdateBatch.objects.filter(run=trajectory.group.run).latest("batch")
    update = UpdateBatch.objects.create(
        uid=derive_uid(before.uid, "edit"), run=before.run, batch=before.batch + 50, policy_version=0,
        checkpoint_before=before.checkpoint_before, checkpoint_after=before.checkpoint_after,
        capture_digest=before.capture_digest, clipping_inert=False, record_sha256=before.record_sha256,
    )  # fmt: skip
    TrajectoryCredit.objects.create(
        update=update, trajectory=trajectory, advantage=1.0, policy_tokens=12, trained_tokens=12, masked_tokens=0,
        clamp_actionable=False, edit=EDIT,
    )  # fmt: skip
    return {"edit_update": update.uid}
