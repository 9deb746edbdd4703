"""Frozen bytes -> job specifications. Reads rows and the plan's body; decides nothing."""

from __future__ import annotations

from typing import Any

from runs.actions.advance import policy_of
from runs.actions.execution import bound_runtimes
from runs.actions.plans import plan_body
from runs.models import Checkpoint, Document, Execution, Group, Job, Run, RunHead, Trajectory, Turn
from workbench.contracts import layout
from workbench.contracts.branches import BranchSpec, branch_seed, branch_uid
from workbench.contracts.jobs import CollectSpec, EnvironmentRef, GroupSpec, PolicyRef, UpdateGroup, UpdateSpec
from workbench.contracts.probe import CONDITION, PROBE, ProbeSpec
from workbench.contracts.records import CaptureRef, GroupRecord
from workbench.contracts.trials import TRIALS, TrialsSpec, trials_uid
from workbench.contracts.wire import parse_record

BINDINGS = "bindings"


def collect_spec(job: Job) -> tuple[CollectSpec, Checkpoint]:
    """Specification of a ``collect_shard`` or ``evaluate_shard`` job and the checkpoint that it samples from."""
    assert job.execution is not None
    version = job.execution.plan_version
    body, sha = plan_body(version), version.sha256
    checkpoint = _checkpoint(job)
    evaluation = job.kind == "evaluate_shard"
    config = layout.arm_of(body, job.run.arm.key)["config"] if job.run is not None and not evaluation else body["plan"]
    sampling = dict(config["rollout"]["sampling"])
    if evaluation:
        sampling["temperature"] = body["plan"]["evaluation"]["temperature"]
    objective = config["objective"]
    purpose = "evaluate" if evaluation else job.spec["purpose"]
    spec = CollectSpec(
        run_uid=str(job.run.uid if job.run is not None else job.execution.uid),
        plan_sha256=sha,
        purpose=purpose,
        condition=job.spec["condition"] if evaluation else "train",
        split=job.spec["split"] if evaluation else config["rollout"]["split"],
        policy=policy_ref(body, checkpoint),
        environment=environment_ref(body),
        reward=reward_ref(body),
        sampling=sampling,
        max_decisions=config["rollout"]["max_decisions"],
        advantage=None if evaluation else {"kind": objective["advantage"], "eps": objective["advantage_eps"]},
        runtime=bound_runtimes(_execution(job))[-1],
        groups=_groups(job, body, sha),
    )
    return spec, checkpoint


def probe_spec(job: Job) -> tuple[ProbeSpec, Checkpoint]:
    """Specification of a ``probe_shard`` job and the checkpoint that it probes. One probe is one job."""
    execution = _execution(job)
    body, sha = plan_body(execution.plan_version), execution.plan_version.sha256
    plan, settings = body["plan"], body["plan"]["probe"]
    checkpoint = Checkpoint.objects.get(uid=job.spec["checkpoint"])
    owner = str(job.run.uid if job.run is not None else execution.uid)
    uid = layout.probe_uid(owner, job.spec["batch"])
    rollout = plan["rollout"]
    collect = CollectSpec(
        run_uid=owner,
        plan_sha256=sha,
        purpose=PROBE,
        condition=CONDITION,
        split=settings["split"],
        policy=policy_ref(body, checkpoint),
        environment=environment_ref(body),
        reward=reward_ref(body),
        sampling={**rollout["sampling"], "temperature": settings["temperature"]},
        max_decisions=settings["max_decisions"] or rollout["max_decisions"],
        advantage=None,
        runtime=bound_runtimes(execution)[-1],
        groups=layout.probe_groups(body, sha, uid),
    )
    rows = plan["runtime"]["shard_rows"]
    return ProbeSpec(uid, job.spec["batch"], settings["decisions"], rows, settings, collect), checkpoint


def _execution(job: Job) -> Execution:
    """The job's execution; only inspections have none, and they are handed over elsewhere."""
    assert job.execution is not None
    return job.execution


def _checkpoint(job: Job) -> Checkpoint:
    if job.kind == "evaluate_shard":
        return Checkpoint.objects.get(uid=job.spec["checkpoint"])
    if job.run is None:
        return Checkpoint.objects.get(uid=layout.parent_checkpoint_uid(str(job.execution.plan_version.uid)))
    return policy_of(RunHead.objects.select_related("checkpoint").get(run=job.run))


def _groups(job: Job, body: dict[str, Any], sha: str) -> tuple[GroupSpec, ...]:
    if job.kind == "evaluate_shard":
        shards = layout.evaluation_shards(body, sha, job.spec["checkpoint"], job.spec["condition"], job.spec["split"])
        return shards[job.spec["shard"]]
    if job.run is None:
        return layout.preflight_shards(body, sha, str(job.execution.uid))[job.spec["shard"]]
    return layout.training_groups(body, sha, str(job.run.uid), job.run.arm.key, job.run.seed, job.spec["batch"])


def policy_ref(body: dict[str, Any], checkpoint: Checkpoint) -> PolicyRef:
    """The policy of a checkpoint under the plan's model section."""
    policy, bound = body["plan"]["policy"], body[BINDINGS]["policy"]
    return PolicyRef(
        model=policy["model"],
        base_model_sha256=bound["base_model_sha256"],
        tokenizer_sha256=bound["tokenizer_sha256"],
        adapter_sha256=checkpoint.sha256,
        policy_version=checkpoint.policy_version,
        dtype=policy["dtype"],
        adaptation=policy["adaptation"],
        formatter=policy["formatter"],
        profile=bound.get("profile", {}),
    )


def environment_ref(body: dict[str, Any]) -> EnvironmentRef:
    """The environment that the plan binds."""
    bound = body[BINDINGS]["environment"]
    return EnvironmentRef(
        environment=body["plan"]["environment"]["id"],
        version=bound["version"],
        code_sha256=bound["code_sha256"],
        config=body["plan"]["environment"]["config"],
        task_set_sha256=body[BINDINGS]["task_set"]["sha256"],
        code=bound.get("code", {}),
    )


def reward_ref(body: dict[str, Any]) -> dict[str, Any]:
    """The reward that the plan names; with its code where that comes from outside the environment."""
    plan, bound = body["plan"]["reward"], body[BINDINGS]["reward"]
    named = {"id": plan["id"], "version": plan["version"]}
    return {**named, "code_sha256": bound["code_sha256"], "code": bound["code"]} if bound.get("code") else named


def update_spec(job: Job) -> UpdateSpec:
    """Specification of an ``apply_update`` job: the batch's groups as they were recorded."""
    assert job.run is not None
    run: Run = job.run
    version = job.execution.plan_version
    body = plan_body(version)
    config = layout.arm_of(body, run.arm.key)["config"]
    head = RunHead.objects.select_related("checkpoint").get(run=run)
    batch, size = job.spec["batch"], config["rollout"]["groups_per_batch"]
    groups = Group.objects.filter(run=run, purpose="train", ordinal__gte=batch * size, ordinal__lt=(batch + 1) * size)
    return UpdateSpec(
        run_uid=str(run.uid),
        plan_sha256=version.sha256,
        update_uid=layout.update_uid(str(run.uid), batch),
        batch=batch,
        first_step=head.steps,
        policy=policy_ref(body, policy_of(head)),
        optimizer_sha256=head.optimizer_sha256,
        objective=config["objective"],
        optimizer=config["optimizer"],
        runtime=bound_runtimes(_execution(job))[-1],
        groups=tuple(_update_group(group) for group in groups.order_by("ordinal")),
        reference_adapter_sha256=None if run.parent_checkpoint is None else run.parent_checkpoint.sha256,
    )


def trials_spec(job: Job) -> TrialsSpec:
    """Specification of a ``run_trials`` job: one recorded group, tried as the plan asks."""
    execution = _execution(job)
    body = plan_body(execution.plan_version)
    group = Group.objects.select_related("checkpoint").get(uid=job.spec["group"])
    document = Document.objects.get(kind="group", subject_uid=group.uid)
    settings = layout.trial_settings(body, group.purpose, None if job.run is None else job.run.arm.key)
    if settings is None:
        raise ValueError(f"job {job.key}: got trials, expected none: the plan asks for none here")
    return TrialsSpec(
        trials_uid=trials_uid(str(group.uid)),
        run_uid=str(execution.uid if job.run is None else job.run.uid),
        plan_sha256=execution.plan_version.sha256,
        record_json=bytes(document.bytes).decode(),
        record_sha256=document.sha256,
        policy=policy_ref(body, group.checkpoint),
        environment=environment_ref(body),
        reward=reward_ref(body),
        seed=layout.trial_seed(body, None if job.run is None else job.run.seed),
        settings=settings,
        runtime=bound_runtimes(execution)[-1],
    )


def branch_spec(job: Job) -> BranchSpec:
    """Specification of a ``branch_state`` job: one decision of a recorded trajectory under a checkpoint."""
    rows = Trajectory.objects.select_related("group__plan_version", "group__task", "group__run__arm")
    trajectory = rows.get(uid=job.spec["trajectory"])
    group, decision = trajectory.group, job.spec["decision"]
    body = plan_body(group.plan_version)
    document = Document.objects.get(kind="group", subject_uid=group.uid)
    record = parse_record(GroupRecord, bytes(document.bytes))
    own = next(item for item in record.trajectories if item.uid == str(trajectory.uid))
    config = (
        layout.arm_of(body, group.run.arm.key)["config"] if group.run is not None and group.run.arm else body["plan"]
    )
    turn = trajectory.turns.get(decision=decision)
    turn.trajectory = trajectory
    ordinals = tuple(item.ordinal for item in own.injections)
    spec = GroupSpec(str(group.uid), group.ordinal, str(group.task.uid), group.failure_profile, ordinals, ())
    return BranchSpec(
        uid=branch_uid(str(trajectory.uid), decision, job.spec["ordinal"]),
        trajectory_uid=str(trajectory.uid),
        decision=decision,
        ordinal=job.spec["ordinal"],
        count=job.spec["count"],
        seed=branch_seed(str(trajectory.uid), decision, job.spec["ordinal"]),
        record_json=bytes(document.bytes).decode(),
        record_sha256=document.sha256,
        capture_blob_sha256=group.capture_blob_sha256,
        capture=_capture_ref(turn),
        group=spec,
        policy=policy_ref(body, Checkpoint.objects.get(uid=job.spec["checkpoint"])),
        environment=environment_ref(body),
        reward=reward_ref(body),
        sampling=dict(record.sampling),
        max_decisions=config["rollout"]["max_decisions"],
        runtime=bound_runtimes(group.plan_version.execution)[-1],
    )


def _update_group(group: Group) -> UpdateGroup:
    document = Document.objects.get(kind="group", subject_uid=group.uid)
    trials = Document.objects.filter(kind=TRIALS, subject_uid=trials_uid(str(group.uid))).first()
    turns = Turn.objects.filter(trajectory__group=group).order_by("trajectory__slot", "decision")
    captures = tuple(_capture_ref(turn) for turn in turns.select_related("trajectory"))
    return UpdateGroup(
        record_json=bytes(document.bytes).decode(),
        record_sha256=document.sha256,
        capture_blob_sha256=group.capture_blob_sha256,
        captures=captures,
        trials_json=None if trials is None else bytes(trials.bytes).decode(),
        trials_sha256=None if trials is None else trials.sha256,
    )


def _capture_ref(turn: Turn) -> CaptureRef:
    if turn.capture_sha256 is None or turn.offset is None or turn.length is None:
        raise ValueError(f"turn {turn.pk}: got no capture, expected one: only captured turns are trained on")
    return CaptureRef(turn.capture_sha256, str(turn.trajectory.uid), turn.decision, turn.offset, turn.length)
