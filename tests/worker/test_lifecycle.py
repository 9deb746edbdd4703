"""One attempt of a job: fencing, loss, the map of exceptions to states, and crashes between any two steps."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

from evidence.checks.plans import check_plans
from evidence.report import StepLog, VerifyReport
from runs.actions import jobs
from runs.actions.execution import recover_execution, recovery_template
from runs.models import (
    BlobRef,
    ConsumedGroup,
    Document,
    EvaluationItem,
    Execution,
    Group,
    Job,
    MetricPoint,
    Receipt,
    Trajectory,
    UpdateBatch,
)
from runs.storage import blob_store
from tests.runs.scripted import Lab, head_of, run_of
from tests.runs.test_advance import ALONE, QUICK, told
from workbench.contracts.canonical import sha256_hex
from workbench.settings import child_environment
from worker import lifecycle, recorder
from worker.runner_client import RunnerClient, RunnerDied, RunnerFailed

pytest_db = pytest.mark.django_db


ERRORS = [RunnerFailed("x", boundary=None, class_name="ValueError", trace=""), ValueError("x")]


def expire(key: str) -> None:
    """The lease of a job ran out."""
    Job.objects.filter(key=key).update(lease_until=timezone.now() - timedelta(seconds=1))


def counts() -> list[int]:
    models = (Group, Trajectory, UpdateBatch, Document, MetricPoint, EvaluationItem, BlobRef, ConsumedGroup)
    return [model.objects.count() for model in models]


@pytest_db
@pytest.mark.parametrize("kind", ["collect", "update"])
def test_the_result_of_an_old_attempt_is_discarded_whole(lab: Lab, kind: str) -> None:
    """While the engine works, the lease runs out and another process takes the job."""
    execution = lab.start(**ALONE)
    if kind == "update":
        lab.step(execution, only="collect:0")
    other: list[Job] = []

    def steal(op: str, spec: Any) -> None:
        if op == kind and not other:
            expire(job.key)
            lifecycle.reap()
            other.append(jobs.claim(job.pk, owner="other", at=timezone.now()))  # type: ignore[arg-type]

    job = Job.objects.get(key__endswith=f":{kind}:0")
    lab.script.before = steal
    before, receipts = counts(), Receipt.objects.count()
    lifecycle.execute(job.pk)
    assert counts() == before and Receipt.objects.count() == receipts + 1  # the lost attempt
    row = Job.objects.get(pk=job.pk)
    assert (row.state, row.attempt, row.owner) == ("leased", 2, "other")
    (lost,) = told("attempt.lost")
    assert (lost["job"], lost["attempt"], lost["reason"]) == (job.key, 1, "lease ran out")
    expire(job.key)
    lifecycle.reap()
    lab.drive(execution)
    assert execution.state == "closed" and UpdateBatch.objects.count() == 2


@pytest_db
def test_a_message_for_nothing_does_nothing(lab: Lab) -> None:
    lab.start(**ALONE)
    job = Job.objects.get(key__endswith=":collect:0")
    lifecycle.execute(job.pk)
    before = counts()
    lifecycle.execute(job.pk)  # the message arrived twice
    lifecycle.execute(10**6)
    assert counts() == before and lab.script.calls == ["runtime", "collect"]


class Chatty:
    """An engine that reports without a pause, so that its client never polls."""

    def call(self, op: str, spec: dict[str, Any], *, on_progress: Any = None, should_cancel: Any = None) -> Any:
        if op == "runtime":
            return {"runtime": "runtime-test", "harness": sha256_hex(b"harness")}
        for turn in range(1000):
            on_progress({"turn": turn})
        raise AssertionError("nobody stopped it")


@pytest_db
def test_a_heartbeat_after_the_loss_stops_an_engine_that_never_pauses(lab: Lab, monkeypatch: Any) -> None:
    execution = lab.start(**ALONE)
    monkeypatch.setattr(lifecycle, "HEARTBEAT_SECONDS", 0.0)
    monkeypatch.setattr(lifecycle, "engine_client", lambda threads: Chatty())
    real, beats = jobs.heartbeat, []

    def beat(job: Job, **values: Any) -> bool:
        beats.append(dict(values["progress"]))
        if len(beats) == 3:
            Job.objects.filter(pk=job.pk).update(state="cancelled")
        return real(job, **values)

    monkeypatch.setattr(jobs, "heartbeat", beat)
    lab.step(execution, only="collect:0")
    assert beats == [{"turn": 0}, {"turn": 1}, {"turn": 2}]
    assert not Group.objects.exists() and Job.objects.get(key__endswith=":collect:0").progress == {"turn": 1}


@pytest_db
def test_a_lost_attempt_is_collected_again_with_the_same_result(lab: Lab) -> None:
    died: list[str] = []

    def die_once(op: str, spec: Any) -> None:
        if op == "collect" and not died:
            died.append(op)
            raise RunnerDied("killed", -9)

    lab.script.before = die_once
    execution = lab.start(**ALONE)
    lab.drive(execution)
    assert execution.state == "closed" and len(told("attempt.lost")) == 1
    assert "engine process died: killed" in told("attempt.lost")[0]["reason"]
    assert Job.objects.get(attempt=2).state == "succeeded" and not Trajectory.objects.exclude(status="valid").exists()


@pytest_db
def test_after_the_last_attempt_the_groups_are_invalid_and_the_run_goes_on(lab: Lab) -> None:
    """Three attempts, then no reward at all for the group, and its batch is skipped; the next batch trains."""

    def die(op: str, spec: dict[str, Any]) -> None:
        if op == "collect" and spec["purpose"] == "train" and spec["groups"][0]["ordinal"] == 0:
            raise RunnerDied("killed", -9)

    lab.script.before = die
    execution = lab.start(**ALONE)
    lab.drive(execution)
    assert len(told("attempt.lost")) == 3 and len(told("shard.lost")) == 1
    group = Group.objects.get(purpose="train", ordinal=0)
    assert (group.eligible, group.signal, group.mean) == (False, None, None)
    rows = list(group.trajectories.order_by("slot"))
    assert [(row.status, row.reward_total, row.advantage) for row in rows] == [
        ("infrastructure_invalid", None, None)
    ] * 2
    assert "worker_lost: engine process died: killed; 3 of 3 attempts lost" in rows[0].invalid_reason
    job = Job.objects.get(key__endswith=":collect:0")
    assert (job.state, job.attempt) == ("errored", 3)
    head = head_of(execution, "V")
    assert (head.state, head.batch, head.steps, execution.state) == ("completed", 2, 1, "closed")
    assert UpdateBatch.objects.get(batch=0).skipped == "no_eligible_group"


@pytest_db
def test_a_lost_evaluation_shard_leaves_items_without_outcome(lab: Lab) -> None:
    def die(op: str, spec: dict[str, Any]) -> None:
        if op == "collect" and spec["purpose"] == "evaluate" and spec["policy"]["policy_version"] == 0:
            raise RunnerDied("killed", -9)

    lab.script.before = die
    execution = lab.start(**ALONE)
    lab.drive(execution)
    assert execution.state == "closed" and EvaluationItem.objects.count() == 2
    assert EvaluationItem.objects.get(run=None).trajectory.status == "infrastructure_invalid"


@pytest_db
@pytest.mark.parametrize(
    "error", [RunnerFailed("x", boundary=None, class_name="ValueError", trace=""), ValueError("x")]
)
@pytest.mark.parametrize("op", ["collect", "update"])
def test_an_error_of_ours_ends_the_run_as_partial_invalid(lab: Lab, op: str, error: Exception) -> None:
    def fail(found: str, spec: dict[str, Any]) -> None:
        if found == op and spec.get("purpose", "train") == "train":
            raise error

    lab.script.before = fail
    execution = lab.start(**ALONE)
    lab.drive(execution)
    head = head_of(execution, "V")
    assert (head.state, execution.state) == ("partial_invalid", "closed") and "ValueError: x" in head.reason
    assert Job.objects.get(key__endswith=f":{op}:0").state == "errored"
    assert UpdateBatch.objects.count() == 0


@pytest_db
def test_an_error_in_an_evaluation_shard_leaves_its_items_missing(lab: Lab) -> None:
    def fail(op: str, spec: dict[str, Any]) -> None:
        if op == "collect" and spec["purpose"] == "evaluate" and spec["policy"]["policy_version"] == 2:
            raise ValueError("x")

    lab.script.before = fail
    execution = lab.start(**ALONE)
    lab.drive(execution)
    assert execution.state == "closed" and head_of(execution, "V").state == "completed"
    assert EvaluationItem.objects.count() == 1 and told("job.errored")[0]["reason"] == "ValueError: x"


@pytest_db
def test_a_non_finite_update_is_refused_and_recorded_and_the_execution_closes(lab: Lab) -> None:
    lab.script.non_finite = lambda spec: spec.batch == 1
    execution = lab.start(**ALONE)
    lab.drive(execution)
    head = head_of(execution, "V")
    assert (head.state, head.batch, head.steps, head.policy_version) == ("partial_invalid", 2, 1, 1)
    refused = UpdateBatch.objects.get(batch=1)
    assert (refused.skipped, refused.checkpoint_after) == ("non_finite", refused.checkpoint_before)
    assert execution.state == "closed"


@pytest_db
def test_another_runtime_interrupts_without_costing_an_attempt(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    lab.script.runtime = "another"
    keys = lab.drive(execution)
    assert execution.state == "interrupted" and len(keys) == 1 and "runtime: got another" in execution.reason
    job = Job.objects.get(key=keys[0])
    assert (job.state, job.attempt, job.max_attempts) == ("queued", 1, 4) and not told("attempt.lost")
    lab.script.runtime = "runtime-test"
    plan = {**recovery_template(execution), "termination_evidence": "the old host is back"}
    recover_execution(execution, recovery_plan=plan, by=lab.actor, at=timezone.now())
    lab.drive(execution)
    assert execution.state == "closed"


@pytest_db
def test_a_moved_execution_goes_on_under_the_runtime_that_its_recovery_plan_binds(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    assert [lab.step(execution) for _ in range(2)][-1]
    lab.script.runtime = "another"
    lab.drive(execution)
    plan = {**recovery_template(execution), "runtime": "another", "termination_evidence": "host lost, power cut"}
    recover_execution(execution, recovery_plan=plan, by=lab.actor, at=timezone.now())
    lab.drive(execution)
    assert execution.state == "closed" and head_of(execution, "V").runtime == "another"
    named = Group.objects.order_by("pk").values_list("identities__runtime", flat=True)
    assert set(named) == {"runtime-test", "another"} and named[0] == "runtime-test"
    report = VerifyReport({2: "plans"})
    check_plans(StepLog(report, 2), blob_store())
    assert not report.problems


@pytest_db
def test_a_runtime_that_nothing_binds_is_found(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    lab.drive(execution)
    with patch("evidence.checks.plans.bound_runtimes", lambda _: ["another"]):
        report = VerifyReport({2: "plans"})
        check_plans(StepLog(report, 2), blob_store())
    assert [problem.column for problem in report.problems] == ["runtime"]


@pytest_db
def test_trouble_with_the_database_costs_an_attempt_and_not_the_run(lab: Lab, monkeypatch: Any) -> None:
    """A deadlock's victim or a locked database: the lease runs out and the job is tried again."""
    execution = lab.start(**ALONE)
    real, failed = recorder.commit_update, []

    def locked(*arguments: Any) -> None:
        if not failed:
            failed.append(1)
            raise OperationalError("database is locked")
        real(*arguments)

    monkeypatch.setattr(recorder, "commit_update", locked)
    lab.drive(execution)
    job = Job.objects.get(key__endswith=":update:0")
    assert (job.state, head_of(execution, "V").state) == ("leased", "running")
    expire(job.key)
    lifecycle.reap()
    lab.drive(execution)
    assert execution.state == "closed" and head_of(execution, "V").state == "completed"


@pytest_db
def test_a_close_that_breaks_interrupts_and_can_be_recovered(lab: Lab, monkeypatch: Any) -> None:
    execution = lab.start(**ALONE)
    with monkeypatch.context() as patch:
        patch.setattr("worker.recorder.close_execution", lambda *a, **k: 1 / 0)
        lab.drive(execution)
    assert (execution.state, execution.phase) == ("interrupted", "close") and "ZeroDivisionError" in execution.reason
    plan = {**recovery_template(execution), "termination_evidence": "a bug, mended"}
    recover_execution(execution, recovery_plan=plan, by=lab.actor, at=timezone.now())
    assert lab.drive(execution) == [f"{execution.uid}:close:1"] and execution.state == "closed"


@pytest_db
def test_the_reaper_leaves_a_renewed_lease_and_goes_on_after_a_job_that_breaks(lab: Lab, monkeypatch: Any) -> None:
    execution = lab.start(**QUICK)
    first, second = Job.objects.order_by("pk")
    for job in (first, second):
        assert jobs.claim(job.pk, owner="w", at=timezone.now())
        expire(job.key)
    found = jobs.expired(timezone.now())
    jobs.heartbeat(found[0], at=timezone.now())  # between the reaper's look and its act
    monkeypatch.setattr(jobs, "expired", lambda at: found)
    lifecycle.reap()
    assert list(Job.objects.order_by("pk").values_list("state", flat=True)) == ["leased", "queued"]
    assert len(told("attempt.lost")) == 1

    for job in (first, second):
        Job.objects.filter(pk=job.pk).update(state="queued")
        assert jobs.claim(job.pk, owner="w", at=timezone.now())
        expire(job.key)
    monkeypatch.undo()
    real = jobs.give_back

    def break_first(job: Job, **values: Any) -> bool:
        if job.pk == first.pk:
            raise ValueError("poison")
        return real(job, **values)

    monkeypatch.setattr(jobs, "give_back", break_first)
    lifecycle.reap()
    assert list(Job.objects.order_by("pk").values_list("state", flat=True)) == ["leased", "queued"]
    assert Execution.objects.get(pk=execution.pk).state == "running"


@pytest_db
def test_a_loss_that_cannot_be_recorded_ends_the_job(lab: Lab, monkeypatch: Any) -> None:
    execution = lab.start(**{**ALONE, "budget": {"batches": 1, "max_steps": 1, "max_attempts": 1}})
    job = Job.objects.get(key__endswith=":collect:0")
    assert jobs.claim(job.pk, owner="w", at=timezone.now())
    expire(job.key)
    monkeypatch.setattr(recorder, "commit_lost", lambda *a: 1 / 0)
    lifecycle.reap()
    assert Job.objects.get(pk=job.pk).state == "errored" and head_of(execution, "V").state == "partial_invalid"


@pytest_db
def test_a_real_engine_process_that_is_killed_is_started_again(lab: Lab, monkeypatch: Any, tmp_path: Path) -> None:
    """The runner dies by SIGKILL inside the first collection; the second attempt has the same bytes as a double."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "die.collect").touch()
    client = RunnerClient(
        child_environment(), store=settings.BLOB_ROOT, cache_dir=cache, service="tests.runs.engine_double"
    )
    monkeypatch.setattr(lifecycle, "engine_client", lambda threads: client)
    try:
        execution = lab.start(**ALONE)
        lab.step(execution, only="collect:0")
        assert "exit status -9" in told("attempt.lost")[0]["reason"] and not Group.objects.exists()
        lab.step(execution, only="collect:0")
        assert Group.objects.get().eligible and Job.objects.get(key__endswith=":collect:0").attempt == 2
        assert blob_store().exists(Group.objects.get().capture_blob_sha256)
        assert run_of(execution, "V").head.trajectories == 2
    finally:
        client.close()
