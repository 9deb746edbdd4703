"""What comes next, decided from the database alone.

``advance`` is called at the end of every commit, inside its transaction and under the execution's
lock: so there is no instant at which a result is stored and its successor is not. It creates jobs
by unique key and is idempotent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from runs.actions.jobs import cancel_jobs, ensure_job
from runs.actions.plans import plan_body
from runs.actions.receipts import append_receipt
from runs.actions.record_probe import PROBE_JOB, probe_key
from runs.actions.record_trials import TRIALS_JOB, TRIALS_QUEUE
from runs.actions.transitions import move_execution, move_run
from runs.models import (
    Actor,
    Checkpoint,
    Execution,
    Group,
    Job,
    Run,
    RunHead,
    Trajectory,
    TrajectoryCredit,
)
from runs.states import is_terminal
from workbench.contracts import layout
from workbench.contracts.jobs import GroupSpec
from workbench.contracts.records import PREFLIGHT, TRAIN


@dataclass
class _Scene:
    """One reading of the execution for one decision."""

    execution: Execution
    body: dict[str, Any]
    plan_sha256: str
    actor: Actor
    at: datetime
    jobs: dict[str, str]  # key -> state

    def ensure(self, key: str, kind: str, queue: str, run: Run | None, spec: dict[str, Any]) -> str:
        """State of the job with this key, created if need be."""
        if key not in self.jobs:
            ensure_job(
                key=key,
                kind=kind,
                queue=queue,
                execution=self.execution,
                run=run,
                spec=spec,
                max_attempts=self.body["plan"]["budget"]["max_attempts"],
                at=self.at,
            )
            self.jobs[key] = "queued"
        return self.jobs[key]

    def receipt(self, kind: str, subject: str, body: dict[str, Any]) -> None:
        append_receipt(f"execution:{self.execution.uid}", kind, subject, body, actor=self.actor, at=self.at)


def lock_execution(execution: Execution | None) -> Execution:
    """Take the execution's row lock. Every commit takes it first, so that locks have one order.

    Raises ``ValueError`` for None: a job or run without an execution advances nothing.
    """
    if execution is None:
        raise ValueError("execution: got None, expected the execution that the job or run belongs to")
    return Execution.objects.select_for_update(of=("self",)).select_related("plan_version").get(pk=execution.pk)


def advance(execution: Execution | None, *, actor: Actor, at: datetime) -> None:
    """Create every job that can run now and move what has ended. Call inside a transaction."""
    execution = lock_execution(execution)
    if execution.state != "running":
        return
    scene = _Scene(
        execution,
        plan_body(execution.plan_version),
        execution.plan_version.sha256,
        actor,
        at,
        dict(Job.objects.filter(execution=execution).values_list("key", "state")),
    )
    if execution.phase == "preflight" and not _preflight(scene):
        return
    if execution.phase == "train":
        _train(scene)
    if execution.phase == "close":
        _close(scene)


def _set_phase(scene: _Scene, phase: str) -> None:
    Execution.objects.filter(pk=scene.execution.pk).update(phase=phase, updated_at=scene.at)
    scene.execution.phase = phase


def _preflight(scene: _Scene) -> bool:
    """Probe the parent's signal; True when training may begin."""
    uid = str(scene.execution.uid)
    shards = layout.preflight_shards(scene.body, scene.plan_sha256, uid)
    states = [
        scene.ensure(f"{uid}:preflight:{i}", "collect_shard", "rollout", None, {"purpose": "preflight", "shard": i})
        for i in range(len(shards))
    ]
    collected = [
        group
        for shard, state in zip(shards, states, strict=True)
        if state not in ("queued", "leased")
        for group in shard
    ]
    tried = _trials(scene, None, PREFLIGHT, collected)
    if not tried or any(state in ("queued", "leased") for state in states):
        return False
    if shards and not _preflight_gate(scene):
        return False
    _set_phase(scene, "train")
    return True


def _preflight_gate(scene: _Scene) -> bool:
    counts = Group.objects.filter(plan_version=scene.execution.plan_version, purpose="preflight").aggregate(
        probe_groups=Count("pk"),
        eligible_groups=Count("pk", filter=Q(eligible=True)),
        zero_variance_groups=Count("pk", filter=Q(eligible=True) & ~Q(signal="signal")),
    )
    eligible, zero = counts["eligible_groups"], counts["zero_variance_groups"]
    limit = scene.body["plan"]["preflight"]["max_zero_variance_share"]
    share = zero / eligible if eligible else None
    result = {**counts, "zero_variance_share": share, "limit": limit}
    if share is not None and share <= limit:
        scene.receipt("preflight.passed", str(scene.execution.uid), result)
        return True
    reason = (
        "preflight: no eligible probe group"
        if share is None
        else f"preflight: {zero} of {eligible} probe groups carry no signal, limit {limit}"
    )
    scene.receipt("preflight.stopped", str(scene.execution.uid), {**result, "reason": reason})
    for head in RunHead.objects.filter(run__execution=scene.execution).select_related("run"):
        if not is_terminal("run", head.state):
            move_run(head.run, "stopped", reason=reason, actor=scene.actor, at=scene.at, phase="done")
    move_execution(scene.execution, "stopped", reason=reason, actor=scene.actor, at=scene.at, phase="done")
    return False


def _train(scene: _Scene) -> None:
    heads = list(
        RunHead.objects.filter(run__execution=scene.execution)
        .select_related("run__arm", "checkpoint")
        .order_by("run_id")
    )
    parent = Checkpoint.objects.get(uid=layout.parent_checkpoint_uid(str(scene.execution.plan_version.uid)))
    # Gated runs last: what decides a gate may end in this very pass, and no later job would look again.
    for head in sorted(heads, key=lambda item: item.run.arm.gate is not None):
        if head.state == "pending" and _may_start(scene, head, heads):
            move_run(head.run, "running", reason="started", actor=scene.actor, at=scene.at)
            head.state = "running"
        if head.state == "running":
            _advance_run(scene, head)
    parent_done = _evaluate(scene, parent, None)
    _probe(scene, None, parent, 0)
    if parent_done and not _probes_open(scene) and all(is_terminal("run", head.state) for head in heads):
        _set_phase(scene, "close")


def _may_start(scene: _Scene, head: RunHead, heads: list[RunHead]) -> bool:
    """True unless the run's arm has a gate that is undecided or unmet; an unmet gate refuses the run."""
    gate = head.run.arm.gate
    if gate is None:
        return True
    counted = [other for other in heads if other.run.arm.key == gate["counted_over"]]
    if any(other.phase == "train" and not is_terminal("run", other.state) for other in counted):
        return False
    actionable = TrajectoryCredit.objects.filter(
        update__run__in=[other.run for other in counted], clamp_actionable=True
    ).count()
    met = actionable >= gate["minimum"]
    result = {
        "rule": gate["rule"],
        "counted_over": gate["counted_over"],
        "cases": actionable,
        "minimum": gate["minimum"],
        "met": met,
    }
    scene.receipt("gate.met" if met else "gate.refused", str(head.run.uid), result)
    if not met:
        reason = f"gate: {actionable} actionable cases, minimum {gate['minimum']}"
        move_run(head.run, "refused", reason=reason, actor=scene.actor, at=scene.at, phase="done")
        head.state = "refused"
    return met


def _advance_run(scene: _Scene, head: RunHead) -> None:
    run, config = head.run, layout.arm_of(scene.body, head.run.arm.key)["config"]
    if head.phase == "train":
        if _error_gate(scene, head, config):
            return
        if head.batch >= config["budget"]["batches"] or head.steps >= config["budget"]["max_steps"]:
            RunHead.objects.filter(pk=head.pk).update(phase="evaluate", updated_at=scene.at)
            head.phase = "evaluate"
        else:
            if head.batch in layout.probe_batches(scene.body, config):
                _probe(scene, run, policy_of(head), head.batch)
            collect = f"{run.uid}:collect:{head.batch}"
            spec = {"purpose": "train", "batch": head.batch}
            collected = scene.ensure(collect, "collect_shard", "rollout", run, spec)
            if collected in ("succeeded", "failed", "errored") and _batch_tried(scene, run, head.batch):
                scene.ensure(f"{run.uid}:update:{head.batch}", "apply_update", "update", run, {"batch": head.batch})
    if head.phase == "evaluate":
        _probe(scene, run, policy_of(head), head.batch)
        if not _evaluate(scene, policy_of(head), run) or _probes_open(scene, run):
            return
        move_run(run, "completed", reason="budget spent", actor=scene.actor, at=scene.at, phase="done")
        head.state = "completed"


def _batch_tried(scene: _Scene, run: Run, batch: int) -> bool:
    """Whether the trials of a collected batch have ended, or it needs none; its update waits for that."""
    if layout.trial_settings(scene.body, TRAIN, run.arm.key) is None:
        return True
    groups = layout.training_groups(scene.body, scene.plan_sha256, str(run.uid), run.arm.key, run.seed, batch)
    return _trials(scene, run, TRAIN, groups)


def _trials(scene: _Scene, run: Run | None, purpose: str, groups: Sequence[GroupSpec]) -> bool:
    """Trials of collected groups, a job each, where the plan asks for them; True when all of them have ended."""
    if layout.trial_settings(scene.body, purpose, None if run is None else run.arm.key) is None:
        return True
    owner, states = str(scene.execution.uid if run is None else run.uid), []
    for group in groups:
        spec = {"purpose": purpose, "ordinal": group.ordinal, "group": group.group_uid}
        key = layout.trials_key(owner, purpose, group.ordinal)
        states.append(scene.ensure(key, TRIALS_JOB, TRIALS_QUEUE, run, spec))
    return all(state not in ("queued", "leased") for state in states)


def policy_of(head: RunHead) -> Checkpoint:
    """The checkpoint that a native run is at. Raises ``ValueError`` for a run without a policy of ours."""
    if head.checkpoint is None:
        raise ValueError(f"run {head.run_id}: got no checkpoint, expected a native run")
    return head.checkpoint


def _error_gate(scene: _Scene, head: RunHead, config: dict[str, Any]) -> bool:
    """Stop the run when too many of its trajectories are infrastructure-invalid; True when it did."""
    gate = config["error_gate"]
    counts = Trajectory.objects.filter(group__run=head.run, group__purpose="train").aggregate(
        total=Count("pk"), invalid=Count("pk", filter=Q(status="infrastructure_invalid"))
    )
    if (
        counts["total"] < gate["minimum_trajectories"]
        or counts["invalid"] <= gate["max_invalid_share"] * counts["total"]
    ):
        return False
    reason = (
        f"error-rate gate: {counts['invalid']} of {counts['total']} trajectories are infrastructure-invalid, "
        f"limit {gate['max_invalid_share']}"
    )
    append_receipt(
        f"run:{head.run.uid}",
        "run.stopped",
        str(head.run.uid),
        {**counts, "reason": reason},
        actor=scene.actor,
        at=scene.at,
    )
    cancel_jobs(run=head.run, at=scene.at, reason=reason)
    move_run(head.run, "stopped", reason=reason, actor=scene.actor, at=scene.at, phase="done")
    head.state = "stopped"
    return True


def _evaluate(scene: _Scene, checkpoint: Checkpoint, run: Run | None) -> bool:
    """Evaluation jobs of a checkpoint; True when all of them have ended."""
    states = []
    for condition, split in layout.evaluation_grid(scene.body):
        for i in range(layout.evaluation_shard_count(scene.body, split)):
            spec = {"condition": condition, "split": split, "shard": i, "checkpoint": str(checkpoint.uid)}
            key = f"{checkpoint.uid}:evaluate:{condition}:{split}:{i}"
            states.append(scene.ensure(key, "evaluate_shard", "evaluate", run, spec))
    return all(state in ("succeeded", "failed", "errored") for state in states)


def _probe(scene: _Scene, run: Run | None, checkpoint: Checkpoint, batch: int) -> None:
    """The reasoning probe after ``batch`` batches, where the plan probes. Training does not wait for it."""
    if scene.body["plan"]["probe"] is not None:
        owner = scene.execution if run is None else run
        spec = {"batch": batch, "checkpoint": str(checkpoint.uid)}
        scene.ensure(probe_key(str(owner.uid), batch), PROBE_JOB, "rollout", run, spec)


def _probes_open(scene: _Scene, run: Run | None = None) -> bool:
    """Whether a probe of the run (or of any run and the parent) has not ended."""
    prefix = "" if run is None else str(run.uid)
    return any(
        state in ("queued", "leased")
        for key, state in scene.jobs.items()
        if key.startswith(prefix) and ":probe:" in key
    )


def _close(scene: _Scene) -> None:
    key = f"{scene.execution.uid}:close"
    broken = sum(name.startswith(key) and state in ("failed", "errored") for name, state in scene.jobs.items())
    if broken:  # an earlier try broke and interrupted the execution; this one follows its recovery plan
        key = f"{key}:{broken}"
    if scene.ensure(key, "close_execution", "io", None, {}) == "succeeded":
        _set_phase(scene, "done")


def progress_of(execution: Execution) -> dict[str, Any]:
    """Progress for pages and terminals: jobs done, jobs expected by the plan, and what runs now."""
    body = plan_body(execution.plan_version)
    jobs = Job.objects.filter(execution=execution)
    done = jobs.exclude(state__in=("queued", "leased")).count()
    shards = sum(layout.evaluation_shard_count(body, split) for _, split in layout.evaluation_grid(body))
    expected = len(layout.preflight_shards(body, execution.plan_version.sha256, str(execution.uid))) + shards + 1
    expected += body["plan"]["probe"] is not None
    if layout.trial_settings(body, PREFLIGHT, None) is not None:
        expected += body["plan"]["preflight"]["groups"]
    for head in RunHead.objects.filter(run__execution=execution).select_related("run__arm"):
        if is_terminal("run", head.state):
            expected += jobs.filter(run=head.run).count()
        else:
            config = layout.arm_of(body, head.run.arm.key)["config"]
            tried = layout.trial_settings(body, TRAIN, head.run.arm.key) is not None
            per_batch = 2 + (config["rollout"]["groups_per_batch"] if tried else 0)
            expected += per_batch * config["budget"]["batches"] + shards + len(layout.probe_batches(body, config))
    now = [
        {"key": job.key, "kind": job.kind, "run": job.run.name if job.run else None, "progress": job.progress}
        for job in jobs.filter(state="leased").select_related("run").order_by("pk")
    ]
    if execution.state in ("closed", "stopped", "cancelled"):
        expected = done
    return {
        "done": done,
        "expected": max(expected, done),
        "now": now,
        "state": execution.state,
        "phase": execution.phase,
    }
