"""One attempt of one job: claim, run in the engine process, commit; and the one map of exceptions to states.

``failed`` is the experiment's (it broke a rule of the plan), ``errored`` is ours (code or machine).
A lost attempt goes back to the queue; after the last one the loss is recorded.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from runs.actions import jobs
from runs.actions.actors import service_actor
from runs.actions.advance import advance, lock_execution
from runs.actions.execution import fail_run, interrupt_execution
from runs.actions.inspection import KIND, record_answer
from runs.actions.plans import plan_body
from runs.actions.receipts import append_receipt
from runs.actions.record_branches import BRANCH_JOB, commit_branch
from runs.actions.record_controls import CONTROLS_JOB, commit_controls
from runs.actions.record_probe import PROBE_JOB
from runs.actions.record_trials import TRIALS_JOB
from runs.actions.runs_control import pause_execution
from runs.errors import DomainError, StaleLease
from runs.models import Job
from workbench.contracts.branches import BranchResult
from workbench.contracts.controls import ControlsResult
from workbench.contracts.errors import ContractError
from workbench.contracts.jobs import CollectResult, UpdateResult
from workbench.contracts.probe import ProbeResult
from workbench.contracts.trials import TrialsResult
from workbench.contracts.wire import from_wire, to_wire
from workbench.logcontext import job_fields
from workbench.room import no_room, why_no_room
from workbench.settings import child_environment
from worker import handoff, recorder, recorder_trials
from worker.closing import collect_sources, write_notes
from worker.left import timed
from worker.runner_client import RunnerCancelled, RunnerClient, RunnerDied, RunnerFailed, resident
from worker.sandbox.choose import sweep_left

logger = logging.getLogger(__name__)
HEARTBEAT_SECONDS = 5.0
CODE_CHANGED = "CodeChanged"  # boundary of an environment, reward or profile that is not the one bound


class RuntimeMismatch(Exception):
    """The engine's runtime identity is not the one that the plan binds."""


def engine_client(threads: int) -> RunnerClient:
    """The resident engine process of this process, with the thread count that the plan binds."""
    pinned = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    environment = child_environment({**pinned, "TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_PROGRESS_BARS": "1"})
    return resident(environment, store=settings.BLOB_ROOT, cache_dir=settings.CACHE_HOME)


def execute(job_id: int) -> None:
    """Run one job if it can be claimed; anything else is a no-op."""
    job = jobs.claim(job_id, owner=settings.PROCESS_NAME, at=timezone.now())
    if job is None:
        return
    with job_fields(job):
        _execute(job)


def _execute(job: Job) -> None:
    """Handle a claimed job, and say what became of it."""
    try:
        _HANDLERS[job.kind](job)
    except StaleLease as error:
        logger.info("%s", error)
    except RunnerCancelled:
        logger.info("job %s: stopped, its lease is gone", job.key)
    except RunnerDied as error:
        lose(job, reason=f"engine process died: {error}")
    except RuntimeMismatch as error:
        _interrupt(job, str(error))
    except RunnerFailed as error:
        if error.boundary == CODE_CHANGED and job.execution is not None:
            _interrupt(job, str(error))
        elif error.no_room is not None:
            _hold(job, why_no_room(error.no_room))
        else:
            _fail(job, "errored", f"{error}")
    except (OperationalError, InterfaceError) as error:
        # The database was away, locked or chose this transaction as a deadlock's victim: the work broke no rule.
        logger.warning("job %s: %s; its lease runs out and it is tried again", job.key, error)
    except Exception as error:
        logger.exception("job %s", job.key)
        code = no_room(error)
        if code is not None:
            _hold(job, why_no_room(code))
        else:
            _fail(job, "errored", f"{type(error).__name__}: {error}")


def _watched(job: Job, op: str) -> tuple[Callable[[], bool], Callable[[dict[str, Any]], None]]:
    """(whether the lease is lost, what takes the engine's progress): heartbeats ride on both."""
    last = [time.monotonic()]
    newest: dict[str, Any] = {}

    def lost() -> bool:
        if time.monotonic() - last[0] < HEARTBEAT_SECONDS:
            return False
        last[0] = time.monotonic()
        return not jobs.heartbeat(job, at=timezone.now(), progress=newest or None)

    def progress(value: dict[str, Any]) -> None:
        newest.update(value)
        if lost():  # an engine that reports without a pause is never polled
            raise RunnerCancelled(f"{op}: cancelled")

    return lost, progress


def _call(job: Job, op: str, spec: Any) -> dict[str, Any]:
    """Call the engine under the runtime that the plan binds; a lost lease stops it."""
    lost, progress = _watched(job, op)
    body = plan_body(job.execution.plan_version)
    client = engine_client(body["plan"]["runtime"]["threads"])
    expected = {"runtime": spec.runtime, "harness": body["bindings"]["harness"]}
    _check_runtime(client, expected, spec.policy.dtype, lost)
    return client.call(op, to_wire(spec), on_progress=progress, should_cancel=lost)


def _check_runtime(client: RunnerClient, bound: dict[str, str], dtype: str, lost: Callable[[], bool]) -> None:
    """Refuse to go on under another runtime or other engine code than the plan (or its recovery plan) binds."""
    found = client.call("runtime", {"dtype": dtype}, should_cancel=lost)  # loads torch: may take long
    for name in ("runtime", "harness"):
        if found[name] != bound[name]:
            raise RuntimeMismatch(f"{name}: got {found[name]}, expected {bound[name]} as the plan binds")


def _collect(job: Job) -> None:
    spec, checkpoint = handoff.collect_spec(job)
    result = from_wire(CollectResult, _call(job, "collect", spec))
    recorder.commit_collect(job, spec, checkpoint, result)


def _update(job: Job) -> None:
    spec = handoff.update_spec(job)
    result = from_wire(UpdateResult, _call(job, "update", spec))
    recorder.commit_update(job, result)


def _probe(job: Job) -> None:
    spec, checkpoint = handoff.probe_spec(job)
    result = from_wire(ProbeResult, _call(job, "probe", spec))
    recorder.commit_probe(job, checkpoint, result)


def _trials(job: Job) -> None:
    result = from_wire(TrialsResult, _call(job, "trials", handoff.trials_spec(job)))
    recorder_trials.commit_trials(job, result)


def _close(job: Job) -> None:
    recorder.commit_close(job)
    if job.execution is not None:
        collect_sources(job.execution.plan_version.plan.study)
        write_notes(job.execution)


def _inspect(job: Job) -> None:
    """Say what a draft would bind. The answer is small: identities, counts and hashes of blobs in the store."""
    lost, progress = _watched(job, "describe")
    progress = timed(progress)
    client = engine_client(job.spec["threads"])
    try:
        found = client.call("describe", job.spec["describe"], on_progress=progress, should_cancel=lost)
    except RunnerFailed as error:
        if error.boundary is None:
            raise
        jobs.finish(job, "failed", at=timezone.now(), error=str(error))  # the draft names what cannot be loaded
        return
    try:
        record_answer(job, found, at=timezone.now())
    except StaleLease:
        raise
    except (ContractError, DomainError) as error:  # tasks that break a rule: the environment's fault, not ours
        jobs.finish(job, "failed", at=timezone.now(), error=str(error))


def _controls(job: Job) -> None:
    """Run the controls of an environment. A job of a study, outside any execution."""
    lost, progress = _watched(job, "controls")
    try:
        found = engine_client(1).call("controls", job.spec["controls"], on_progress=progress, should_cancel=lost)
    except RunnerFailed as error:
        if error.boundary is None:
            raise
        jobs.finish(job, "failed", at=timezone.now(), error=str(error))  # it names what cannot be loaded or tried
        return
    try:
        commit_controls(job, from_wire(ControlsResult, found), by=service_actor("worker"), at=timezone.now())
    except StaleLease:
        raise
    except (ContractError, DomainError) as error:
        jobs.finish(job, "failed", at=timezone.now(), error=str(error))


def _branch(job: Job) -> None:
    """Continue a recorded trajectory from a state of it. A job of a study, outside any execution."""
    lost, progress = _watched(job, "branch")
    spec = handoff.branch_spec(job)
    try:
        found = engine_client(job.spec["threads"]).call(
            "branch", to_wire(spec), on_progress=progress, should_cancel=lost
        )
    except RunnerFailed as error:
        if error.boundary is None:
            raise
        jobs.finish(job, "failed", at=timezone.now(), error=str(error))  # another runtime, code or state
        return
    try:
        commit_branch(job, from_wire(BranchResult, found), by=service_actor("worker"), at=timezone.now())
    except StaleLease:
        raise
    except (ContractError, DomainError) as error:
        jobs.finish(job, "failed", at=timezone.now(), error=str(error))


_HANDLERS: dict[str, Callable[[Job], None]] = {
    "collect_shard": _collect,
    "evaluate_shard": _collect,
    "apply_update": _update,
    PROBE_JOB: _probe,
    TRIALS_JOB: _trials,
    CONTROLS_JOB: _controls,
    BRANCH_JOB: _branch,
    "close_execution": _close,
    KIND: _inspect,
}


def lose(job: Job, *, reason: str, expired_at: datetime | None = None) -> None:
    """A lost attempt: back to the queue, or recorded as infrastructure-invalid after the last one.

    ``expired_at``: only if the lease had run out by then, since a slow worker may have renewed it.
    """
    at, actor = timezone.now(), service_actor("worker")
    try:
        with transaction.atomic():
            if job.execution is not None:
                lock_execution(job.execution)
            if not jobs.holds(job, expired_at=expired_at):
                return
            if job.execution is not None:  # the loss of an inspection stands in the job's own log
                append_receipt(
                    f"execution:{job.execution.uid}",
                    "attempt.lost",
                    str(job.uid),
                    {"job": job.key, "attempt": job.attempt, "owner": job.owner, "reason": reason},
                    actor=actor,
                    at=at,
                )
            if jobs.give_back(job, reason=reason, at=at):
                return
        _give_up(job, f"{reason}; {job.attempt} of {job.max_attempts} attempts lost")
    except StaleLease as error:
        logger.info("%s", error)


def _give_up(job: Job, reason: str) -> None:
    if job.kind in ("collect_shard", "evaluate_shard"):
        try:
            spec, checkpoint = handoff.collect_spec(job)
            recorder.commit_lost(job, spec, checkpoint, reason)
            return
        except (StaleLease, OperationalError, InterfaceError):
            raise
        except Exception as error:  # else the job would be given up again and again
            logger.exception("job %s", job.key)
            reason = f"{reason}; the loss could not be recorded: {type(error).__name__}: {error}"
    _fail(job, "errored", reason)


def _fail(job: Job, state: str, reason: str) -> None:
    at, actor = timezone.now(), service_actor("worker")
    try:
        if job.kind == PROBE_JOB:  # no result of the experiment rests on it
            recorder.commit_probe_unavailable(job, state, reason)
            return
        if job.kind == TRIALS_JOB:  # a model failure stays one; its group trains without credit from edits
            recorder_trials.commit_trials_unavailable(job, state, reason)
            return
        with transaction.atomic():
            if job.execution is None:
                jobs.finish(job, state, at=at, error=reason)
                return
            execution = lock_execution(job.execution)
            jobs.finish(job, state, at=at, error=reason)
            if job.run is not None and job.kind in ("apply_update", "collect_shard"):
                fail_run(job.run, reason=f"{job.kind}: {reason}", by=actor, at=at)
            elif job.kind == "close_execution" and execution.state == "running":
                interrupt_execution(execution, reason=f"{job.kind}: {reason}", by=actor, at=at)
            else:
                append_receipt(
                    f"execution:{job.execution.uid}",
                    f"job.{state}",
                    str(job.uid),
                    {"job": job.key, "reason": reason},
                    actor=actor,
                    at=at,
                )
                advance(job.execution, actor=actor, at=at)
    except StaleLease as error:
        logger.info("%s", error)


def _hold(job: Job, reason: str) -> None:
    """No room to write: the job goes back uncharged and its execution pauses, so that a person resumes it with room."""
    logger.warning("job %s: %s", job.key, reason)
    if job.execution is None:
        _fail(job, "errored", reason)
        return
    at = timezone.now()
    try:
        with transaction.atomic():
            execution = lock_execution(job.execution)
            jobs.give_back(job, reason=reason, at=at, charged=False)
            if execution.state == "running":
                pause_execution(execution, by=service_actor("worker"), at=at, reason=reason)
    except StaleLease as error:
        logger.info("%s", error)
    except (OperationalError, InterfaceError) as error:  # the database has no room either
        logger.warning("job %s: %s; its lease runs out and it is tried again", job.key, error)


def _interrupt(job: Job, reason: str) -> None:
    at, actor = timezone.now(), service_actor("worker")
    try:
        with transaction.atomic():
            execution = lock_execution(job.execution)
            jobs.give_back(job, reason=reason, at=at, charged=False)
            if execution.state == "running":
                interrupt_execution(execution, reason=reason, by=actor, at=at)
    except StaleLease as error:
        logger.info("%s", error)


def reap() -> None:
    """Re-queue what was lost, send again what nobody answered, remove what killed processes left of trials."""
    at = timezone.now()
    for job in jobs.expired(at):
        try:
            lose(job, reason="lease ran out", expired_at=at)
        except Exception:  # one job that cannot be given up must not hold up the others
            logger.exception("job %s", job.key)
    jobs.resend_unanswered(at)
    sweep_left()
