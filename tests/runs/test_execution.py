"""Start, interruption and recovery of an execution; a run that broke keeps what it committed."""

from __future__ import annotations

from typing import Any

import pytest

from runs.actions.execution import (
    fail_run,
    interrupt_execution,
    recover_execution,
    recovery_template,
    start_execution,
)
from runs.errors import DomainError, StaleTransition
from runs.models import Checkpoint, Execution, Group, Job, Receipt, Run, RunHead
from tests.runs.scripted import AT, Lab, head_of, run_of
from tests.runs.test_advance import ALONE, QUICK, told
from workbench.contracts import layout

pytestmark = pytest.mark.django_db
EVIDENCE = "exit code 137, out of memory"
FIELDS = ("checkpoint", "runtime", "termination_evidence")


def recovery(execution: Execution) -> dict[str, Any]:
    """What a person would record: the template with the evidence filled in."""
    return {**recovery_template(execution), "termination_evidence": EVIDENCE}


def test_a_start_makes_every_run_from_one_parent_and_happens_once(lab: Lab) -> None:
    version = lab.freeze(seeds=["1", "2"])
    execution = start_execution(version, by=lab.actor, at=AT, provenance={"commit": "c" * 40})
    parent = Checkpoint.objects.get()
    assert (parent.kind, parent.policy_version, parent.run) == ("parent", 0, None)
    runs = list(Run.objects.order_by("pk"))
    assert [run.name for run in runs] == ["V-s1", "V-s2", "F-s1", "F-s2", "K-s1", "K-s2"]
    for run in runs:
        assert run.arm is not None and run.parent_checkpoint == parent and run.head.checkpoint == parent
        assert str(run.uid) == layout.run_uid(str(version.uid), run.arm.key, run.seed)
        assert (run.head.optimizer_sha256, run.head.batch, run.head.steps) == (None, 0, 0)
    assert told("execution.started") == [{"plan_sha256": version.sha256, "provenance": {"commit": "c" * 40}}]
    again = start_execution(version, by=lab.actor, at=AT, provenance={})
    assert again == execution and Run.objects.count() == 6 and len(told("execution.started")) == 1


def test_an_interrupted_execution_does_nothing_until_a_plan_is_recorded(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    interrupt_execution(execution, reason="runtime: got b, expected a", by=lab.actor, at=AT)
    assert lab.drive(execution) == [] and execution.state == "interrupted"
    plan = recovery(execution)
    parent = Checkpoint.objects.get(kind="parent").sha256
    assert plan == {"checkpoint": {"V-s1": parent}, "runtime": "runtime-test", "termination_evidence": EVIDENCE}
    recover_execution(execution, recovery_plan=plan, by=lab.actor, at=AT)
    assert told("execution.recovery_plan") == [plan]
    lab.drive(execution)
    assert execution.state == "closed" and head_of(execution, "V").state == "completed"


@pytest.mark.parametrize("missing", FIELDS)
@pytest.mark.parametrize("value", ["", None, ...])
def test_a_recovery_plan_needs_its_three_fields(lab: Lab, missing: str, value: Any) -> None:
    execution = lab.start(**ALONE)
    interrupt_execution(execution, reason="lost", by=lab.actor, at=AT)
    plan = {**recovery(execution), missing: value}
    if value is ...:
        del plan[missing]
    with pytest.raises(DomainError, match=f"got nothing for {missing}"):
        recover_execution(execution, recovery_plan=plan, by=lab.actor, at=AT)
    assert Execution.objects.get().state == "interrupted" and not told("execution.recovery_plan")


@pytest.mark.parametrize("wrong", [{}, {"V-s1": "0" * 64}, {"V-s2": "x"}, "abc", ["abc"]])
def test_a_recovery_plan_binds_the_checkpoints_that_stand(lab: Lab, wrong: Any) -> None:
    execution = lab.start(**ALONE)
    interrupt_execution(execution, reason="lost", by=lab.actor, at=AT)
    with pytest.raises(DomainError, match="checkpoint"):
        recover_execution(execution, recovery_plan={**recovery(execution), "checkpoint": wrong}, by=lab.actor, at=AT)
    with pytest.raises(DomainError, match="runtime: got int, expected text"):
        recover_execution(execution, recovery_plan={**recovery(execution), "runtime": 3}, by=lab.actor, at=AT)
    assert Execution.objects.get().state == "interrupted" and not told("execution.recovery_plan")


@pytest.mark.parametrize("state", ["running", "paused", "cancelled", "closed"])
def test_only_an_interrupted_execution_is_recovered(lab: Lab, state: str) -> None:
    execution = lab.start(**ALONE)
    Execution.objects.update(state=state)
    execution.refresh_from_db()
    with pytest.raises(StaleTransition, match="not interrupted"):
        recover_execution(execution, recovery_plan=recovery(execution), by=lab.actor, at=AT)
    assert not told("execution.recovery_plan")


def test_an_execution_that_does_not_run_is_not_interrupted(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    Execution.objects.update(state="closed")
    execution.refresh_from_db()
    with pytest.raises(StaleTransition):
        interrupt_execution(execution, reason="late", by=lab.actor, at=AT)
    assert not Receipt.objects.filter(kind="execution.interrupted").exists()


@pytest.mark.parametrize("state", ["running", "paused"])
def test_a_broken_run_keeps_what_it_committed_and_the_execution_closes(lab: Lab, state: str) -> None:
    execution = lab.start(**{**QUICK, "preflight": None})
    lab.drive(execution, only=f"{run_of(execution, 'V').uid}:collect:0")
    lab.drive(execution, only=f"{run_of(execution, 'V').uid}:update:0")
    RunHead.objects.filter(run=run_of(execution, "V")).update(state=state)
    fail_run(run_of(execution, "V"), reason="a bug of ours", by=lab.actor, at=AT)
    head = head_of(execution, "V")
    assert (head.state, head.phase, head.batch, head.reason) == ("partial_invalid", "done", 1, "a bug of ours")
    assert Group.objects.filter(run=head.run).count() == 1 and told("run.partial_invalid")
    lab.drive(execution)
    assert execution.state == "closed" and head_of(execution, "F").state == "completed"
    assert not Job.objects.filter(run=head.run, kind="evaluate_shard").exists()
    with pytest.raises(StaleTransition):
        fail_run(head.run, reason="again", by=lab.actor, at=AT)
