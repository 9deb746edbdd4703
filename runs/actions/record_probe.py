"""Record a reasoning probe, and say of every cadence point of a run what became of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Sum

from runs.actions.documents import store_document
from runs.actions.plans import plan_body
from runs.models import Checkpoint, Document, Execution, Job, Run, RunHead, Trajectory
from runs.states import is_terminal
from workbench.contracts import layout
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import RecordError
from workbench.contracts.probe import FACTUAL, INTERVENTIONS, PROBE, ProbeRecord, ProbeResult
from workbench.contracts.records import TRAIN
from workbench.contracts.wire import parse_record

PROBE_JOB = "probe_shard"
RECORDED, NOT_AVAILABLE = "probe.recorded", "probe.unavailable"  # kinds of receipts
ORDER = (FACTUAL, *INTERVENTIONS)


def probe_key(owner: str, batch: int) -> str:
    """Key of the job that probes after ``batch`` batches. ``owner``: the run, or the execution for the parent."""
    return f"{owner}:probe:{batch}"


def parse_probe(data: bytes) -> ProbeRecord:
    """The record of canonical bytes, with its inner relations checked. Raises ``RecordError``."""
    record = parse_record(ProbeRecord, data)
    for task in record.tasks:
        for decision in task.decisions:
            found = tuple(trial.intervention for trial in decision.trials)
            where = f"task {task.task_uid} decision {decision.decision}"
            if found != ORDER:
                raise RecordError(f"{where}.trials: got {found}, expected {ORDER}")
            if any((trial.sample is None) != (trial.state != "measured") for trial in decision.trials):
                raise RecordError(f"{where}.trials: expected a sample exactly where the state is measured")
            if not any(turn.decision == decision.decision for turn in task.repeats[0].sample.turns):
                raise RecordError(f"{where}: expected a decision of the task's first rollout")
    return record


def record_probe(*, execution: Execution, run: Run | None, checkpoint: Checkpoint, result: ProbeResult) -> ProbeRecord:
    """Store the document of one probe. Call inside a transaction.

    Raises ``RecordError`` where record and context disagree, ``AlreadyRecorded`` for a second one.
    """
    data = result.record_json.encode()
    if sha256_hex(data) != result.record_sha256:
        raise RecordError(f"record_sha256: got {result.record_sha256}, expected {sha256_hex(data)}")
    record = parse_probe(data)
    owner = str(execution.uid if run is None else run.uid)
    for field, got, expected in (
        ("run_uid", record.run_uid, owner),
        ("uid", record.uid, layout.probe_uid(owner, record.batch)),
        ("plan_sha256", record.plan_sha256, execution.plan_version.sha256),
        ("identities.adapter", record.identities.adapter, checkpoint.sha256),
        ("identities.policy_version", record.identities.policy_version, checkpoint.policy_version),
    ):
        if got != expected:
            raise RecordError(f"{field}: got {got}, expected {expected}")
    store_document(PROBE, record.uid, data)
    return record


def trial_counts(record: ProbeRecord) -> dict[str, Any]:
    """Tasks, probed decisions, and interventions by state."""
    decisions = [decision for task in record.tasks for decision in task.decisions]
    states = Counter(trial.state for decision in decisions for trial in decision.trials)
    return {"tasks": len(record.tasks), "decisions": len(decisions), "trials": dict(sorted(states.items()))}


def probe_axes(run: Run | None, batch: int) -> tuple[int, int]:
    """(training trajectories, generated tokens) of the batches before the probe: what its points stand at.

    The run's head may be further on by now.
    """
    if run is None or run.plan_version is None or run.arm is None:
        return 0, 0
    size = layout.arm_of(plan_body(run.plan_version), run.arm.key)["config"]["rollout"]["groups_per_batch"]
    rows = Trajectory.objects.filter(group__run=run, group__purpose=TRAIN, group__ordinal__lt=batch * size)
    found = rows.aggregate(count=Count("pk"), tokens=Sum("generated_tokens"))
    return found["count"], found["tokens"] or 0


@dataclass(frozen=True)
class ProbePoint:
    """One cadence point. ``state``: measured | pending | unavailable | cancelled | not_reached.

    ``reason`` says why there is no value (empty for a measured point); ``probe_uid`` names the document.
    """

    batch: int
    state: str
    reason: str
    probe_uid: str | None
    job_key: str


_WAITING = {"queued": "waits for a worker", "leased": "runs now"}


def probe_points(execution: Execution, run: Run | None = None) -> list[ProbePoint] | None:
    """Every cadence point of a run (or the parent's one, for ``run`` None) and what became of it.

    None where the plan probes nothing: not measured.
    """
    body = plan_body(execution.plan_version)
    if body["plan"]["probe"] is None:
        return None
    owner = str(execution.uid if run is None else run.uid)
    jobs = {job.key: job for job in Job.objects.filter(execution=execution, run=run, kind=PROBE_JOB)}
    batches = (
        {0}
        if run is None or run.arm is None
        else set(layout.probe_batches(body, layout.arm_of(body, run.arm.key)["config"]))
    )
    batches |= {int(job.spec["batch"]) for job in jobs.values()}
    return [_point(execution, run, owner, batch, jobs.get(probe_key(owner, batch))) for batch in sorted(batches)]


def _point(execution: Execution, run: Run | None, owner: str, batch: int, job: Job | None) -> ProbePoint:
    key, uid = probe_key(owner, batch), layout.probe_uid(owner, batch)
    if job is None:
        state, reason = _without_job(execution, run)
        return ProbePoint(batch, state, reason, None, key)
    if job.state in _WAITING:
        return ProbePoint(batch, "pending", _WAITING[job.state], None, key)
    if job.state == "succeeded":
        if Document.objects.filter(kind=PROBE, subject_uid=uid).exists():
            return ProbePoint(batch, "measured", "", uid, key)
        return ProbePoint(batch, "unavailable", "its document is missing", None, key)
    state = "cancelled" if job.state == "cancelled" else "unavailable"
    return ProbePoint(batch, state, job.error or job.state, None, key)


def _without_job(execution: Execution, run: Run | None) -> tuple[str, str]:
    """State and reason of a point for which no job was made."""
    head = None if run is None else RunHead.objects.filter(run=run).first()
    if head is not None and is_terminal("run", head.state):
        return "not_reached", f"the run is {head.state} after {head.batch} batches" + (
            f": {head.reason}" if head.reason else ""
        )
    if is_terminal("execution", execution.state):
        return "not_reached", f"the execution is {execution.state}: {execution.reason}"
    return "pending", "not reached yet"
