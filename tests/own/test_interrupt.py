"""Changed code interrupts an execution, at no cost of attempts, and the reason names the file."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from runs.actions.execution import recover_execution, recovery_template
from runs.models import Group, Job
from tests.runs.scripted import Lab
from tests.runs.scripted import lab as lab
from worker.runner_client import RunnerFailed

ALONE = {"preflight": None, "budget": {"batches": 1, "max_steps": 2}}


@pytest.mark.django_db
def test_changed_code_interrupts_and_the_old_code_goes_on(lab: Lab, monkeypatch: Any) -> None:
    execution = lab.start(**ALONE)
    said = "environment 'inventory': world.py changed. Put back what the plan binds"
    changed = RunnerFailed(said, boundary="CodeChanged", class_name="CodeChanged", trace="")
    with monkeypatch.context() as patch:
        patch.setattr("worker.lifecycle._call", lambda *a, **k: (_ for _ in ()).throw(changed))
        lab.drive(execution)
    assert execution.state == "interrupted" and "world.py changed" in execution.reason
    assert not Group.objects.exists()
    (job,) = Job.objects.filter(attempt__gt=0)
    assert (job.state, job.max_attempts - job.attempt) == ("queued", 3)
    plan = {**recovery_template(execution), "termination_evidence": "the file was put back"}
    recover_execution(execution, recovery_plan=plan, by=lab.actor, at=timezone.now())
    lab.drive(execution)
    assert execution.state == "closed"


@pytest.mark.django_db
def test_another_fault_of_the_engine_does_not_interrupt(lab: Lab, monkeypatch: Any) -> None:
    execution = lab.start(**ALONE)
    fault = RunnerFailed("adapter: got x", boundary="EngineFault", class_name="EngineFault", trace="")
    with monkeypatch.context() as patch:
        patch.setattr("worker.lifecycle._call", lambda *a, **k: (_ for _ in ()).throw(fault))
        lab.step(execution)
    assert Job.objects.get(attempt__gt=0).state == "errored" and execution.state != "interrupted"
