"""Pause, resume and cancel, in every phase."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runs.actions.execution import interrupt_execution
from runs.actions.runs_control import (
    cancel_execution,
    cancel_run,
    pause_execution,
    pause_run,
    resume_execution,
    resume_run,
)
from runs.errors import NotAllowed, StaleTransition
from runs.models import Execution, Group, Job, RunHead, UpdateBatch
from tests.runs.scripted import AT, Lab, head_of, run_of
from tests.runs.test_advance import ALONE, told
from worker import recorder

pytestmark = pytest.mark.django_db

# How far the execution has come when the order arrives.
MOMENTS: dict[str, list[str]] = {
    "preflight": [],
    "collect": ["preflight"],
    "update": ["preflight", "collect:0"],
    "evaluate": ["preflight", "collect", "update", "collect", "update"],
    "close": ["preflight", "collect", "update", "collect", "update", "evaluate"],
}
PLAN = {**ALONE, "preflight": {"groups": 1, "max_zero_variance_share": 1.0}}


def at_moment(lab: Lab, moment: str) -> Execution:
    execution = lab.start(**PLAN)
    for only in MOMENTS[moment]:
        lab.drive(execution, only=only)
    return execution


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_paused_execution_stands_still_and_resumes_to_the_same_end(lab: Lab, moment: str) -> None:
    execution = at_moment(lab, moment)
    pause_execution(execution, by=lab.actor, at=AT)
    assert lab.drive(execution) == [] and execution.state == "paused"
    resume_execution(execution, by=lab.actor, at=AT)
    lab.drive(execution)
    assert (execution.state, head_of(execution, "V").state) == ("closed", "completed")
    assert told("execution.paused") == told("execution.resumed") == [{}]
    assert UpdateBatch.objects.count() == 2 and Group.objects.count() == 1 + 2 + 2


@pytest.mark.parametrize("moment", [name for name in MOMENTS if name != "close"])
def test_a_paused_run_stands_still_while_the_rest_goes_on(lab: Lab, moment: str) -> None:
    execution = at_moment(lab, moment)
    run = run_of(execution, "V")
    pause_run(run, by=lab.actor, at=AT)
    lab.drive(execution)
    assert execution.state == "running" and head_of(execution, "V").state == "paused"
    batch = head_of(execution, "V").batch
    resume_run(run, by=lab.actor, at=AT)
    assert head_of(execution, "V").batch == batch
    lab.drive(execution)
    assert (execution.state, head_of(execution, "V").state) == ("closed", "completed")
    assert UpdateBatch.objects.count() == 2


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_cancelled_execution_ends_with_all_its_runs(lab: Lab, moment: str) -> None:
    execution = at_moment(lab, moment)
    cancel_execution(execution, by=lab.actor, at=AT)
    assert lab.drive(execution) == [] and execution.state == "cancelled"
    assert head_of(execution, "V").state == ("completed" if moment == "close" else "cancelled")
    assert not Job.objects.filter(state__in=("queued", "leased")).exists()
    for act in (pause_execution, resume_execution, cancel_execution):
        with pytest.raises(StaleTransition):
            act(Execution.objects.get(), by=lab.actor, at=AT)


@pytest.mark.parametrize("moment", [name for name in MOMENTS if name != "close"])
def test_a_cancelled_run_ends_and_the_execution_still_closes(lab: Lab, moment: str) -> None:
    execution = at_moment(lab, moment)
    run = run_of(execution, "V")
    cancel_run(run, by=lab.actor, at=AT, reason="enough")
    assert not Job.objects.filter(run=run, state__in=("queued", "leased")).exists()
    lab.drive(execution)
    head = head_of(execution, "V")
    assert (execution.state, head.state, head.phase, head.reason) == ("closed", "cancelled", "done", "enough")
    for act in (pause_run, resume_run, cancel_run):
        with pytest.raises(StaleTransition):
            act(run, by=lab.actor, at=AT)


def test_a_job_in_flight_commits_into_a_pause(lab: Lab) -> None:
    """The update was claimed before the pause: its result counts, its successor waits."""
    execution = at_moment(lab, "update")
    run = run_of(execution, "V")

    def pause(op: str, spec: object) -> None:
        if op == "update" and head_of(execution, "V").state == "running":
            pause_run(run, by=lab.actor, at=AT)

    lab.script.before = pause
    lab.drive(execution, only=f"{run.uid}:update:0")
    assert (head_of(execution, "V").batch, head_of(execution, "V").state) == (1, "paused")
    assert not Job.objects.filter(key=f"{run.uid}:collect:1").exists()
    lab.script.before = lambda op, spec: None
    resume_run(run, by=lab.actor, at=AT)
    lab.drive(execution)
    assert execution.state == "closed" and UpdateBatch.objects.count() == 2


def test_a_job_in_flight_is_discarded_by_a_cancellation(lab: Lab) -> None:
    execution = at_moment(lab, "update")
    run = run_of(execution, "V")
    lab.script.before = lambda op, spec: cancel_run(run, by=lab.actor, at=AT) if op == "update" else None
    lab.step(execution, only=f"{run.uid}:update:0")
    assert not UpdateBatch.objects.exists() and head_of(execution, "V").batch == 0
    assert Job.objects.get(key=f"{run.uid}:update:0").state == "cancelled"
    lab.drive(execution)
    assert execution.state == "closed"


def test_a_non_finite_update_of_a_paused_run_ends_it(lab: Lab) -> None:
    execution = at_moment(lab, "update")
    run = run_of(execution, "V")
    lab.script.non_finite = lambda spec: True
    lab.script.before = lambda op, spec: pause_run(run, by=lab.actor, at=AT) if op == "update" else None
    lab.step(execution, only=f"{run.uid}:update:0")
    assert head_of(execution, "V").state == "partial_invalid"
    lab.drive(execution)
    assert execution.state == "closed"


def test_a_close_that_meets_a_pause_is_tried_again_after_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = at_moment(lab, "close")
    real = recorder.commit_close

    def pause_first(job: Job) -> None:
        pause_execution(Execution.objects.get(), by=lab.actor, at=AT)
        real(job)

    monkeypatch.setattr(recorder, "commit_close", pause_first)
    lab.step(execution)
    execution.refresh_from_db()
    assert execution.state == "paused" and Job.objects.get(kind="close_execution").state == "errored"
    monkeypatch.setattr(recorder, "commit_close", real)
    resume_execution(execution, by=lab.actor, at=AT)
    lab.drive(execution)
    assert execution.state == "closed"


def test_resuming_cannot_lead_a_pending_run_past_its_gate(lab: Lab) -> None:
    execution = lab.start()
    run = run_of(execution, "K")
    with pytest.raises(StaleTransition, match="not paused"):
        resume_run(run, by=lab.actor, at=AT)
    pause_run(run, by=lab.actor, at=AT)
    resume_run(run, by=lab.actor, at=AT)
    assert head_of(execution, "K").state == "pending"
    with pytest.raises(StaleTransition, match="not paused"):
        resume_run(run, by=lab.actor, at=AT)


def test_an_interrupted_execution_is_not_simply_resumed(lab: Lab) -> None:
    execution = lab.start(**PLAN)
    interrupt_execution(execution, reason="lost", by=lab.actor, at=AT)
    with pytest.raises(NotAllowed, match="recovery plan"):
        resume_execution(execution, by=lab.actor, at=AT)
    cancel_execution(execution, by=lab.actor, at=AT)
    assert Execution.objects.get().state == "cancelled"


@pytest.mark.parametrize("act", [pause_run, cancel_run])
def test_nobody_changes_a_run_anonymously(lab: Lab, act: Callable[..., None]) -> None:
    execution = lab.start(**PLAN)
    before = list(RunHead.objects.values())
    with pytest.raises(NotAllowed, match="no anonymous mutation"):
        act(run_of(execution, "V"), by=None, at=AT)
    for change in (pause_execution, cancel_execution):
        with pytest.raises(NotAllowed, match="no anonymous mutation"):
            change(execution, by=None, at=AT)
    assert list(RunHead.objects.values()) == before
