"""Start a frozen plan: its execution, its runs (one arm at one seed each) and the parent checkpoint."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from runs.actions.advance import advance, lock_execution
from runs.actions.plans import plan_body
from runs.actions.receipts import append_receipt
from runs.actions.transitions import move_execution, move_run
from runs.errors import DomainError, StaleTransition
from runs.models import Actor, Arm, Checkpoint, Execution, PlanVersion, Receipt, Run, RunHead
from workbench.contracts import layout
from workbench.contracts.canonical import parse_canonical

RECOVERY = "execution.recovery_plan"
OPEN_RUNS = ("pending", "running", "paused", "interrupted")


def start_execution(version: PlanVersion, *, by: Actor, at: datetime, provenance: dict[str, Any]) -> Execution:
    """Create the execution of a plan version with all its runs and start it; returns the existing one if any.

    ``provenance`` (repository commit, dirty difference, dependency lock, host) goes into the
    receipt, not into hashed study content.
    """
    body, version_uid = plan_body(version), str(version.uid)
    with transaction.atomic():
        execution, created = Execution.objects.get_or_create(
            plan_version=version,
            defaults={
                "uid": layout.execution_uid(version_uid),
                "state": "pending",
                "phase": "preflight",
                "counters": {},
                "updated_at": at,
            },
        )
        if not created:
            return execution
        parent = _parent_checkpoint(version, body, at)
        for arm in Arm.objects.filter(plan_version=version).order_by("position"):
            for seed in arm.seeds:
                run = Run.objects.create(
                    uid=layout.run_uid(version_uid, arm.key, seed),
                    execution=execution,
                    plan_version=version,
                    arm=arm,
                    seed=seed,
                    origin="native",
                    name=f"{arm.key}-s{seed}",
                    parent_checkpoint=parent,
                    created_at=at,
                )
                RunHead.objects.create(
                    run=run,
                    state="pending",
                    phase="train",
                    policy_version=0,
                    checkpoint=parent,
                    runtime=body["bindings"]["runtime"],
                    updated_at=at,
                )
        append_receipt(
            f"execution:{execution.uid}",
            "execution.started",
            str(execution.uid),
            {"plan_sha256": version.sha256, "provenance": provenance},
            actor=by,
            at=at,
        )
        move_execution(execution, "running", reason="started", actor=by, at=at)
        advance(execution, actor=by, at=at)
    execution.refresh_from_db()
    return execution


def _parent_checkpoint(version: PlanVersion, body: dict[str, Any], at: datetime) -> Checkpoint:
    policy = body["bindings"]["policy"]
    return Checkpoint.objects.create(
        uid=layout.parent_checkpoint_uid(str(version.uid)),
        run=None,
        parent=None,
        sha256=policy["parent_adapter_sha256"],
        policy_version=0,
        kind="parent",
        base_model_sha256=policy["base_model_sha256"],
        tokenizer_sha256=policy["tokenizer_sha256"],
        adaptation=body["plan"]["policy"]["adaptation"],
        blob_bytes=policy["parent_adapter_bytes"],
        created_at=at,
    )


def interrupt_execution(execution: Execution, *, reason: str, by: Actor, at: datetime) -> None:
    """Another runtime identity was met: nothing goes on until a recovery plan is recorded."""
    with transaction.atomic():
        lock_execution(execution)
        move_execution(execution, "interrupted", reason=reason, actor=by, at=at)
        append_receipt(
            f"execution:{execution.uid}",
            "execution.interrupted",
            str(execution.uid),
            {"reason": reason},
            actor=by,
            at=at,
        )


def bound_runtimes(execution: Execution) -> list[str]:
    """Runtime identities under which the execution may be computed, the oldest first; jobs must meet the last one.

    The first is the plan's; each recorded recovery plan adds its own.
    """
    plans = Receipt.objects.filter(stream=f"execution:{execution.uid}", kind=RECOVERY).order_by("seq")
    later = [parse_canonical(bytes(receipt.bytes))["body"]["runtime"] for receipt in plans]
    return [plan_body(execution.plan_version)["bindings"]["runtime"], *later]


def recovery_template(execution: Execution) -> dict[str, Any]:
    """A recovery plan to fill in: the checkpoints that the open runs stand at, and the runtime that was bound last."""
    heads = RunHead.objects.filter(run__execution=execution, state__in=OPEN_RUNS).select_related("run", "checkpoint")
    return {
        "checkpoint": {head.run.name: head.checkpoint.sha256 for head in heads.order_by("run__name")},
        "runtime": bound_runtimes(execution)[-1],
        "termination_evidence": "",
    }


def _check_recovery(execution: Execution, plan: dict[str, Any]) -> None:
    missing = [name for name in ("checkpoint", "runtime", "termination_evidence") if not plan.get(name)]
    expected = recovery_template(execution)["checkpoint"]
    if not expected and missing == ["checkpoint"]:
        missing = []  # every run has ended; what is left is to close
    if missing:
        raise DomainError(f"recovery_plan: got nothing for {', '.join(missing)}, expected a value for each")
    for name in ("runtime", "termination_evidence"):
        if not isinstance(plan[name], str):
            raise DomainError(f"recovery_plan.{name}: got {type(plan[name]).__name__}, expected text")
    given = plan.get("checkpoint")
    if given != expected:
        raise DomainError(
            f"recovery_plan.checkpoint: got {given!r}, expected that of each run that has not ended: {expected!r}"
        )


def recover_execution(execution: Execution, *, recovery_plan: dict[str, Any], by: Actor, at: datetime) -> None:
    """Go on after an interruption under a recorded recovery plan.

    The plan binds the checkpoint of each open run, the runtime under which it goes on (the plan's own,
    or another one, which its captures then name) and the evidence of termination. Other engine code
    cannot be bound: results of two codes never stand in one execution.
    """
    with transaction.atomic():
        if lock_execution(execution).state != "interrupted":
            raise StaleTransition(f"execution {execution.uid}: it is not interrupted, there is nothing to recover")
        _check_recovery(execution, recovery_plan)
        append_receipt(f"execution:{execution.uid}", RECOVERY, str(execution.uid), recovery_plan, actor=by, at=at)
        RunHead.objects.filter(run__execution=execution, state__in=OPEN_RUNS).update(runtime=recovery_plan["runtime"])
        move_execution(execution, "running", reason="recovery plan recorded", actor=by, at=at)
        advance(execution, actor=by, at=at)


def fail_run(run: Run, *, reason: str, by: Actor, at: datetime) -> None:
    """An error of ours broke the run: it keeps what it committed as ``partial_invalid``, never merged."""
    with transaction.atomic():
        if run.execution is not None:
            lock_execution(run.execution)
        move_run(run, "partial_invalid", reason=reason, actor=by, at=at, phase="done")
        append_receipt(f"run:{run.uid}", "run.partial_invalid", str(run.uid), {"reason": reason}, actor=by, at=at)
        if run.execution is not None:
            advance(run.execution, actor=by, at=at)
