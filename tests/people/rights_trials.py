"""A tried group in the private study, written as rows: addresses need one to name."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from runs.models import Group, Intervention, Trajectory, Trial, TrialSet
from tests.people.rights_row import EVERYONE, READERS, Row
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.trials import trial_uid, trials_uid

_API = "/api/v1/"
TRIALS = [
    Row("api:trial_sets", "GET", _API + "trial-sets", EVERYONE),
    Row("api:trial_set", "GET", _API + "trial-sets/{trial_set}", READERS),
    Row("api:interventions", "GET", _API + "interventions", EVERYONE),
    Row("api:intervention", "GET", _API + "trajectories/{trajectory}/intervention", READERS),
    Row("api:trials", "GET", _API + "trials", EVERYONE),
    Row("api:trial", "GET", _API + "trials/{trial}", READERS),
]
TREE, OTHER = sha256_hex(b"with"), sha256_hex(b"without")
BLOCK = {"decision": 0, "paths": ["a.py"], "before": {"a.py": None}, "after": {"a.py": TREE}, "eligible": True,
         "reason": None}  # fmt: skip


def add_tried(group: Group, trajectory: Trajectory) -> TrialSet:
    """A set with one intervention of D = 0.5 - 0 and its two trials: the original, and one that took half a second."""
    made = TrialSet.objects.create(
        uid=trials_uid(str(group.uid)), group=group, run=group.run, plan_version=group.plan_version,
        purpose=group.purpose, ordinal=group.ordinal, verifier="hand/1", seed="7", mode="execute", replays=0, repeats=0,
        fail_to_pass=["f1", "f2"], pass_to_pass=["p"], snapshots_sha256=None, unavailable=None,
        record_sha256=sha256_hex(b"record"), created_at=timezone.now(),
    )  # fmt: skip
    Intervention.objects.create(
        trial_set=made, trajectory=trajectory, slot=trajectory.slot, status="available", detail=None, blocks=[BLOCK],
        eligible_blocks=1, selected=0, policy_tokens=12, selected_tokens=3, final_tree_sha256=TREE,
        without_tree_sha256=OTHER, final_paths=2, touched_share=0.5, is_empty_patch=False, original_utility=0.5,
        without_utility=0.0, difference=0.5, replays_agree=0, replays=0, repeats_agree=0, repeats=0,
    )  # fmt: skip
    for kind, tree, utility, seconds in (("original", TREE, 0.5, None), ("intervention", OTHER, 0.0, 0.5)):
        Trial.objects.create(
            uid=trial_uid(str(trajectory.uid), kind, 0), trial_set=made, trajectory=trajectory, kind=kind, repeat=0,
            tree_sha256=tree, verifier="hand/1", complete=True, utility=utility, success=False, unknown=None,
            observed=[{"test": "f1", "status": "FAILED", "cause": "exit", "detail": ""}], exit_code=None, signal=None,
            stdout_sha256=None, stderr_sha256=None, level={}, repeated=[], queue_s=seconds, setup_s=seconds,
            run_s=seconds, cleanup_s=seconds, service_s=seconds,
        )  # fmt: skip
    return made


def parts(group: Any, trajectory: Any) -> dict[str, Any]:
    """What addresses name."""
    made = add_tried(group, trajectory)
    return {"trial_set": made.uid, "trial": made.trials.order_by("pk")[0].uid}
