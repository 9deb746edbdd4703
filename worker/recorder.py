"""Results -> rows: one transaction a job, fenced by the attempt, ending in ``advance``.

Order inside a commit: lock the execution, end the attempt (a stale one raises and nothing is
stored), append the records, append the receipt, decide what comes next.
"""

from __future__ import annotations

import dataclasses
import platform
import socket
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from runs.actions import jobs
from runs.actions.actors import service_actor
from runs.actions.advance import advance, lock_execution
from runs.actions.closure import close_execution
from runs.actions.derived_metrics import Writing, decay_metrics, evaluation_metrics, funnel_metrics
from runs.actions.execution import fail_run
from runs.actions.plans import plan_body
from runs.actions.receipts import append_receipt
from runs.actions.record_group import record_group
from runs.actions.record_metrics import write_points
from runs.actions.record_probe import (
    NOT_AVAILABLE,
    RECORDED,
    probe_axes,
    record_probe,
    trial_counts,
)
from runs.actions.record_update import parse_update, record_update
from runs.actions.retention import retain
from runs.models import Actor, Checkpoint, Execution, Group, Job, Run, RunHead, Task
from runs.storage import blob_store
from workbench.capturefile import write_group_file
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.jobs import CollectedGroup, CollectResult, CollectSpec, GroupSpec, SlotSpec, UpdateResult
from workbench.contracts.probe import ProbeResult
from workbench.contracts.records import (
    EVALUATE,
    INFRASTRUCTURE_INVALID,
    GroupRecord,
    Identities,
    MetricRecord,
    TrajectoryRecord,
)
from workbench.contracts.wire import record_bytes
from workbench.faults import reach

LOST_REASON = "worker_lost"


def _machine(timing: dict[str, float] | None) -> dict[str, Any]:
    return {"host": socket.gethostname(), "platform": platform.platform(), "timing": timing or {}}


def write_receipt(
    job: Job, kind: str, body: dict[str, Any], actor: Actor, at: datetime, timing: dict[str, float] | None
) -> None:
    """Append what a job did to the stream of its run, or of its execution where it has no run."""
    stream = f"run:{job.run.uid}" if job.run is not None else f"execution:{job.execution.uid}"
    full = {"job": job.key, "attempt": job.attempt, "owner": job.owner, **body, "machine": _machine(timing)}
    append_receipt(stream, kind, str(job.uid), full, actor=actor, at=at)
    reach("receipt_append")


def _wall_seconds(run: Run | None, at: datetime) -> float | None:
    return None if run is None else (at - run.created_at).total_seconds()


def _with_axes(metrics: Sequence[MetricRecord], run: Run | None) -> list[MetricRecord]:
    """Fill in the step axes that only the run's head knows."""
    if run is None:
        return list(metrics)
    head = RunHead.objects.get(run=run)
    return [
        dataclasses.replace(item, trajectories=head.trajectories, generated_tokens=head.generated_tokens)
        if item.trajectories is None
        else item
        for item in metrics
    ]


def _write_metrics(job: Job, metrics: Sequence[MetricRecord], at: datetime) -> None:
    """Points of a job. Without a run the execution's uid is the segment: two plans never share a series."""
    write_points(
        job.run,
        _with_axes(metrics, job.run),
        segment="" if job.run is not None else str(job.execution.uid),
        at=at,
        wall_seconds=_wall_seconds(job.run, at),
        source=job.key,
    )


def _write_derived(job: Job, found: Writing, at: datetime) -> None:
    """Points that follow from what is stored, under the run that they speak of (None: the parent)."""
    write_points(
        found.run,
        _with_axes(found.records, found.run),
        segment="" if found.run is not None else str(job.execution.uid),
        at=at,
        wall_seconds=0.0 if found.at_start else _wall_seconds(found.run, at),
        source=found.source,
    )


def commit_collect(job: Job, spec: CollectSpec, checkpoint: Checkpoint, result: CollectResult) -> None:
    """Store a collected shard."""
    _commit_groups(job, spec, checkpoint, result.groups, result.metrics, result.timing, state="succeeded", error="")


def _commit_groups(
    job: Job,
    spec: CollectSpec,
    checkpoint: Checkpoint,
    groups: Sequence[CollectedGroup],
    metrics: Sequence[MetricRecord],
    timing: dict[str, float] | None,
    *,
    state: str,
    error: str,
) -> None:
    at, actor = timezone.now(), service_actor("worker")
    expected = [group.group_uid for group in spec.groups]
    with transaction.atomic():
        execution = lock_execution(job.execution)
        jobs.finish(job, state, at=at, error=error)
        rows = [
            record_group(plan_version=execution.plan_version, run=job.run, checkpoint=checkpoint, collected=item, at=at)
            for item in groups
        ]
        if [str(row.uid) for row in rows] != expected:
            raise ValueError(f"groups: got {[str(row.uid) for row in rows]}, expected {expected}")
        if job.run is not None and spec.purpose == "train":
            _count(job.run, rows, at)
        _write_metrics(job, metrics, at)
        _derive(job, execution, spec, checkpoint, bool(metrics), at)
        body = {
            "purpose": spec.purpose,
            "condition": spec.condition,
            "split": spec.split,
            "checkpoint": checkpoint.sha256,
            "groups": [[str(row.uid), row.record_sha256, row.capture_blob_sha256] for row in rows],
        }
        write_receipt(job, "shard.collected" if state == "succeeded" else "shard.lost", body, actor, at, timing)
        advance(execution, actor=actor, at=at)


def _derive(
    job: Job, execution: Execution, spec: CollectSpec, checkpoint: Checkpoint, measured: bool, at: datetime
) -> None:
    """Points of the evaluation cell, or of the run's entropy, that this shard completes."""
    if spec.purpose == EVALUATE:
        for found in evaluation_metrics(execution, checkpoint, spec.condition, spec.split):
            _write_derived(job, found, at)
    elif job.run is not None and measured:
        records = decay_metrics(job.run, spec.split, spec.policy.policy_version)
        _write_derived(job, Writing(job.run, f"{job.key}:decay", records), at)


def _count(run: Run, groups: Sequence[Group], at: datetime) -> None:
    trajectories = [item for group in groups for item in group.trajectories.all()]
    RunHead.objects.filter(run=run).update(
        trajectories=F("trajectories") + len(trajectories),
        generated_tokens=F("generated_tokens") + sum(item.generated_tokens or 0 for item in trajectories),
        updated_at=at,
    )


def commit_update(job: Job, result: UpdateResult) -> None:
    """Store an optimizer batch and move the run's head; a non-finite batch ends the run as partial_invalid."""
    at, actor = timezone.now(), service_actor("worker")
    record, run = parse_update(result.record_json.encode()), job.run
    if run is None:
        raise ValueError(f"job {job.key}: got no run, expected the run that the update belongs to")
    with transaction.atomic():
        execution = lock_execution(job.execution)
        jobs.finish(job, "succeeded", at=at)
        update = record_update(run=run, result=result, at=at)
        RunHead.objects.filter(run=run).update(
            policy_version=update.checkpoint_after.policy_version,
            checkpoint=update.checkpoint_after,
            optimizer_sha256=record.optimizer_after,
            batch=record.batch + 1,
            steps=F("steps") + len(record.steps),
            updated_at=at,
        )
        _write_metrics(job, result.metrics, at)
        _write_derived(job, Writing(run, f"{job.key}:funnel", funnel_metrics(record)), at)
        body = {
            "update": record.uid,
            "record_sha256": result.record_sha256,
            "adapter_before": record.adapter_before,
            "adapter_after": record.adapter_after,
            "steps": len(record.steps),
            "skipped": record.skipped,
        }
        write_receipt(
            job, "update.applied" if record.skipped is None else "update.skipped", body, actor, at, result.timing
        )
        if record.skipped == "non_finite":
            fail_run(run, reason=f"update {record.batch}: a non-finite loss or gradient was refused", by=actor, at=at)
        advance(execution, actor=actor, at=at)


def commit_probe(job: Job, checkpoint: Checkpoint, result: ProbeResult) -> None:
    """Store a probe: its document, its values and what it cost."""
    at, actor = timezone.now(), service_actor("worker")
    with transaction.atomic():
        execution = lock_execution(job.execution)
        jobs.finish(job, "succeeded", at=at)
        record = record_probe(execution=execution, run=job.run, checkpoint=checkpoint, result=result)
        trajectories, tokens = probe_axes(job.run, record.batch)
        write_points(
            job.run,
            [dataclasses.replace(item, trajectories=trajectories, generated_tokens=tokens) for item in result.metrics],
            segment="" if job.run is not None else str(execution.uid),
            at=at,
            wall_seconds=_wall_seconds(job.run, at),
            source=job.key,
        )
        body = {
            "probe": record.uid,
            "record_sha256": result.record_sha256,
            "batch": record.batch,
            "checkpoint": checkpoint.sha256,
            **trial_counts(record),
            "cost": dataclasses.asdict(record.cost),
            "unavailable": [[item.part, item.reason] for item in record.unavailable],
        }
        write_receipt(job, RECORDED, body, actor, at, result.timing)
        advance(execution, actor=actor, at=at)


def commit_probe_unavailable(job: Job, state: str, reason: str) -> None:
    """A probe that could not be made: the cadence point stays without values and says why; the run goes on."""
    at, actor = timezone.now(), service_actor("worker")
    with transaction.atomic():
        execution = lock_execution(job.execution)
        jobs.finish(job, state, at=at, error=reason)
        body = {"batch": job.spec["batch"], "checkpoint": job.spec["checkpoint"], "state": state, "reason": reason}
        write_receipt(job, NOT_AVAILABLE, body, actor, at, None)
        advance(execution, actor=actor, at=at)


def commit_close(job: Job) -> None:
    """Close the execution, then apply the plan's retention."""
    at, actor = timezone.now(), service_actor("worker")
    with transaction.atomic():
        execution = lock_execution(job.execution)
        jobs.finish(job, "succeeded", at=at)
        close_execution(execution, actor=actor, at=at)
    retain(Execution.objects.get(pk=execution.pk), actor=actor, at=at)


def commit_lost(job: Job, spec: CollectSpec, checkpoint: Checkpoint, reason: str) -> None:
    """Record a shard whose attempts were all lost: infrastructure-invalid, without any reward."""
    groups = [_lost_group(job, spec, checkpoint, index, reason) for index in range(len(spec.groups))]
    _commit_groups(job, spec, checkpoint, groups, (), None, state="errored", error=reason)


def _lost_trajectory(group: GroupSpec, slot: SlotSpec, definition: str, reason: str) -> TrajectoryRecord:
    return TrajectoryRecord(
        uid=slot.trajectory_uid,
        slot=slot.slot,
        seed=slot.seed,
        task_uid=group.task_uid,
        failure_profile=group.failure_profile,
        status=INFRASTRUCTURE_INVALID,
        invalid_reason=f"{LOST_REASON}: {reason}",
        terminal=None,
        turns=(),
        injections=(),
        facts=None,
        reward=None,
        success=None,
        success_definition=definition,
        invariants=(),
        initial_state_sha256=sha256_hex(b"workbench.unknown-state"),
        final_state_sha256=None,
    )


def _bound_identities(spec: CollectSpec, checkpoint: Checkpoint, bindings: dict[str, Any]) -> Identities:
    return Identities(
        base_model=checkpoint.base_model_sha256,
        adapter=checkpoint.sha256,
        tokenizer=checkpoint.tokenizer_sha256,
        formatter=bindings["policy"]["formatter"],
        environment=bindings["environment"]["code_sha256"],
        harness=bindings["harness"],
        runtime=spec.runtime,
        reward=bindings["reward"]["code_sha256"],
        task_set=spec.environment.task_set_sha256,
        policy_version=checkpoint.policy_version,
    )


def _lost_group(job: Job, spec: CollectSpec, checkpoint: Checkpoint, index: int, reason: str) -> CollectedGroup:
    group = spec.groups[index]
    task = Task.objects.get(uid=group.task_uid)
    bindings = plan_body(job.execution.plan_version)["bindings"]
    definition = bindings["environment"]["success_definition"]
    record = GroupRecord(
        uid=group.group_uid,
        run_uid=spec.run_uid,
        plan_sha256=spec.plan_sha256,
        purpose=spec.purpose,
        condition=spec.condition,
        split=spec.split,
        ordinal=group.ordinal,
        task_uid=group.task_uid,
        task_sha256=task.task_sha256,
        family=task.family,
        failure_profile=group.failure_profile,
        sampling=spec.sampling,
        identities=_bound_identities(spec, checkpoint, bindings),
        trajectories=tuple(_lost_trajectory(group, slot, definition, reason) for slot in group.slots),
        eligible=False,
        ineligible_reason=f"{LOST_REASON} in every slot",
        signal=None,
        mean=None,
        sigma=None,
        advantage_kind=spec.advantage["kind"] if spec.advantage else None,
        advantages_G=None,
    )
    blob, refs = write_group_file([])
    data = record_bytes(record)
    return CollectedGroup(data.decode(), sha256_hex(data), blob_store().put(blob), len(blob), refs)
