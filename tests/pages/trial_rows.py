"""Trials and credit of the small world with trials, through the product's own recording and arithmetic."""

from __future__ import annotations

import random
from typing import Any

from runs import models as m
from runs.actions.plans import plan_body
from runs.actions.receipts import append_receipt
from runs.actions.record_trials import TRIALS_RECORDED, record_trials, trials_body
from runs.storage import blob_store
from tests.pages.state import World, fake_sha
from tests.pages.trial_plan import FAIL_TO_PASS, PASS_TO_PASS, UTILITIES, Repair, statuses
from workbench.contracts import layout
from workbench.contracts import trials as t
from workbench.contracts.canonical import derive_uid, sha256_hex
from workbench.contracts.wire import record_bytes, to_wire
from worker.engine.counterfactual import judged_blocks, plan_intervention
from worker.engine.edit_credit import edit_credit

VERIFIER = "hidden_calls/1"
LEVEL = {"backend": "bubblewrap", "version": "0.11.0", "unisolated": False, "process_bound": "pids cgroup"}
CAUSES = ("assertion", "timeout", "exit", "import_error")


def _is_test(path: str) -> bool:
    return path.startswith("tests/")


def trial(uid: str, kind: str, repeat: int, tree: str, utility: float | None, rng: random.Random) -> t.TrialRecord:
    """One verdict; ``utility`` None: the sandbox failed, so it is unknown."""
    status = statuses(utility) if utility is not None else {}
    observed = tuple(
        t.TestObservation(name, word, None if word == t.PASSED else rng.choice(CAUSES), "")
        for name, word in status.items()
    )
    executed, known = kind != t.ORIGINAL, utility is not None
    return t.TrialRecord(
        uid=t.trial_uid(uid, kind, repeat), trajectory_uid=uid, kind=kind, repeat=repeat, tree_sha256=tree,
        verifier=VERIFIER, complete=known, utility=utility, success=utility == 1 if known else None,
        unknown=None if known else "sandbox: the program did not start", observed=observed,
        exit_code=0 if executed and known else None, signal=None,
        stdout_sha256=fake_sha(f"{uid}{kind}out") if executed else None,
        stderr_sha256=fake_sha(f"{uid}{kind}err") if executed else None, level=dict(LEVEL) if executed else {},
        repeated=(),
    )  # fmt: skip


def _one(row: Any, repair: Repair, settings: dict[str, Any], seed: str) -> tuple[Any, list[t.TrialRecord]]:
    """The intervention of one trajectory and its trials."""
    uid, rng = str(row.uid), random.Random(f"trial:{row.uid}")
    plan = plan_intervention(
        repair.trees, own_seed=row.seed, seed=seed, has_format_error=row.terminal == "policy_error",
        is_test_path=_is_test,
    )  # fmt: skip
    blocks = tuple(
        t.EditBlockRecord(b.decision, b.paths, dict(b.before), dict(b.after), reason is None, reason)
        for b, reason in judged_blocks(repair.trees, _is_test)
    )
    final, execute = t.tree_digest(repair.trees[-1]), settings["mode"] == t.EXECUTE
    trials = [trial(uid, t.ORIGINAL, 0, final, repair.utility, rng)] if repair.utility is not None else []
    status, without, made = plan.unavailable, None, None
    if status is None:
        status = t.SELECTED if not execute else t.NO_ORIGINAL_UTILITY if repair.utility is None else t.AVAILABLE
        tree = t.tree_digest(plan.tree or {})
        if status == t.AVAILABLE and repair.utility is not None:
            value = repair.utility if rng.random() < 0.5 else rng.choice(UTILITIES)
            made = trial(uid, t.INTERVENTION, 0, tree, None if rng.random() < 0.07 else value, rng)
            status = t.AVAILABLE if made.complete else t.TRIAL_INCOMPLETE
            without = made.utility
            trials.append(made)
            trials += [trial(uid, t.INTERVENTION_REPEAT, n, tree, without, rng) for n in range(settings["repeats"])]
            trials += [trial(uid, t.FACTUAL_REPLAY, n, final, repair.utility, rng) for n in range(settings["replays"])]
    counted = [item.complete for item in trials if item.kind == t.FACTUAL_REPLAY]
    again = [item.complete for item in trials if item.kind == t.INTERVENTION_REPEAT]
    turns = {turn.decision: turn.policy_tokens for turn in row.turns.all()}
    # A block is named where one was chosen for use: what was drawn and could not be read is none.
    selected = plan.block.decision if plan.block is not None else None
    return t.InterventionRecord(
        trajectory_uid=uid, slot=row.slot, status=status, detail=None, blocks=blocks, selected=selected,
        policy_tokens=row.policy_tokens, selected_tokens=None if selected is None else turns[selected],
        final_tree_sha256=final, without_tree_sha256=None if plan.tree is None else t.tree_digest(plan.tree),
        final_paths=plan.final_paths, touched_share=plan.touched_share,
        is_empty_patch=None if selected is None else plan.is_empty_patch, original_utility=repair.utility,
        without_utility=without,
        difference=repair.utility - without if repair.utility is not None and without is not None else None,
        replays_agree=sum(counted), replays=sum(counted), repeats_agree=sum(again), repeats=sum(again),
    ), trials  # fmt: skip


def add_trials(world: World, group: Any, repairs: list[Repair], actor: Any) -> Any:
    """Record the trials of a group as its job does, with timings and a receipt."""
    run, body = group.run, plan_body(world.version)
    settings = layout.trial_settings(body, group.purpose, None if run is None else run.arm.key)
    if settings is None:
        return None
    rows = list(group.trajectories.prefetch_related("turns").order_by("slot"))
    seed = layout.trial_seed(body, None if run is None else run.seed)
    pairs = [_one(row, repair, settings, seed) for row, repair in zip(rows, repairs, strict=True)]
    contents: dict[str, bytes] = {}
    for repair in repairs:
        contents |= repair.contents
    trees = {str(row.uid): repair.trees for row, repair in zip(rows, repairs, strict=True)}
    snapshots = blob_store().put(t.pack_snapshots(trees, contents))
    owner = str(world.execution.uid) if run is None else str(run.uid)
    record = t.GroupTrials(
        uid=t.trials_uid(str(group.uid)), group_uid=str(group.uid), run_uid=owner, plan_sha256=world.version.sha256,
        ordinal=group.ordinal, purpose=group.purpose, verifier=VERIFIER, seed=seed, settings=settings,
        fail_to_pass=FAIL_TO_PASS, pass_to_pass=PASS_TO_PASS, snapshots_sha256=snapshots, unavailable=None,
        interventions=tuple(item for item, _ in pairs), trials=tuple(one for _, some in pairs for one in some),
    )  # fmt: skip
    data, rng = record_bytes(record), random.Random(f"time:{group.uid}")
    timings = tuple(
        t.TrialTiming(
            one.uid, rng.expovariate(20), 0.012, 0.02 + rng.expovariate(12), 0.004, 0.036 + rng.expovariate(12)
        )
        for one in record.trials
        if one.kind != t.ORIGINAL
    )
    result = t.TrialsResult(data.decode(), sha256_hex(data), 0, timings, {})
    made = record_trials(group=group, run=run, result=result, waited_s=0.4, at=world.tick())
    key = layout.trials_key(owner, group.purpose, group.ordinal)
    job = m.Job.objects.create(
        uid=derive_uid(None, f"job:{key}"), key=key, kind="run_trials", queue="trial", execution=world.execution,
        run=run, spec={"group": str(group.uid)}, state="succeeded", attempt=1, created_at=world.tick(),
        finished_at=world.clock,
    )  # fmt: skip
    stream = f"execution:{owner}" if run is None else f"run:{owner}"
    append_receipt(stream, TRIALS_RECORDED, str(job.uid), trials_body(made), actor=actor, at=world.tick())
    return made


def add_credit(update: Any, row: Any, objective: dict[str, Any], arm: str) -> None:
    """The stored credit of one trajectory, by the engine's own arithmetic."""
    item = m.Intervention.objects.filter(trajectory=row).first()
    edit = None
    if item is not None and arm != "O":
        decisions = [turn.decision for turn in row.turns.order_by("decision") for _ in range(turn.policy_tokens)]
        difference = None if arm == "E" else item.difference
        absent = item.selected is None if arm == "E" else difference is None
        term = edit_credit(
            arm, advantage=row.advantage or 0.0, decisions_T=decisions, selected=item.selected, difference=difference,
            unavailable=item.status if absent else None, weight=objective["edit_weight"], cap=objective["edit_cap"],
        )  # fmt: skip
        names = ("arm", "status", "tokens", "selected_tokens", "difference", "shrinkage", "capped", "signed_mass",
                 "l1_mass", "squared_mass")  # fmt: skip
        edit = to_wire({name: getattr(term, name) for name in names} | {"selected": item.selected})
    m.TrajectoryCredit.objects.create(
        update=update, trajectory=row, advantage=row.advantage, policy_tokens=row.policy_tokens,
        trained_tokens=row.policy_tokens, masked_tokens=0, clamp_actionable=False, fatal_start=None,
        engine_drift_mean=1e-6, engine_drift_max=1e-5, edit=edit,
    )  # fmt: skip
