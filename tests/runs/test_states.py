"""State tables, every pair, and transitions: compare-and-set with their log row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from runs.actions.transitions import move_execution, move_plan, move_run
from runs.errors import StaleTransition
from runs.models import Execution, ExecutionTransition, Plan, PlanTransition, RunHead, RunTransition
from runs.states import TABLES, allowed, is_terminal
from tests.runs.scripted import AT, Lab, head_of, run_of

pytestmark = pytest.mark.django_db

ENDS = {
    "plan": {"superseded"},
    "execution": {"stopped", "cancelled", "closed"},
    "run": {"refused", "stopped", "partial_invalid", "cancelled", "completed"},
    "job": {"succeeded", "failed", "errored", "cancelled"},
}
STARTS = [(table, state) for table, states in TABLES.items() if table != "job" for state in states]


@pytest.mark.parametrize("table", TABLES)
def test_ends_have_no_exit_and_every_state_reaches_an_end(table: str) -> None:
    states = TABLES[table]
    assert {name for name in states if is_terminal(table, name)} == ENDS[table]
    for start in states:
        seen, todo = {start}, [start]
        while todo:
            for following in states[todo.pop()] - seen:
                seen.add(following)
                todo.append(following)
        assert seen & ENDS[table], start
        assert start not in states[start]


@pytest.mark.parametrize("table", TABLES)
def test_an_unknown_state_is_an_error_and_no_refusal(table: str) -> None:
    known = next(iter(TABLES[table]))
    for pair in ((known, "gone"), ("gone", known)):
        with pytest.raises(KeyError, match="gone"):
            allowed(table, *pair)


@pytest.mark.parametrize(
    ("table", "first"), [(t, state) for t, states in TABLES.items() if t != "job" for state in states]
)
def test_every_pair_is_walked(lab: Lab, table: str, first: str) -> None:
    """A listed pair moves the head and logs it; any other raises and leaves head and log alone."""
    move, read, log = _mover(lab, table, first)
    before = log.count()
    for second in TABLES[table]:
        with transaction.atomic():
            if allowed(table, first, second):
                move(second)
                assert read() == second
                assert list(log.values_list("from_state", "to_state", "reason"))[before:] == [(first, second, "why")]
            else:
                with pytest.raises(StaleTransition):
                    move(second)
                assert read() == first and log.count() == before
            transaction.set_rollback(True)


def _mover(lab: Lab, table: str, first: str) -> tuple[Any, Any, Any]:
    common = {"reason": "why", "actor": lab.actor, "at": AT}
    if table == "plan":
        plan = lab.draft()
        Plan.objects.filter(pk=plan.pk).update(state=first)
        plan.refresh_from_db()
        log = PlanTransition.objects.order_by("pk")
        return (
            lambda to: move_plan(Plan.objects.get(pk=plan.pk), to, version=None, **common),
            lambda: Plan.objects.get(pk=plan.pk).state, log,
        )  # fmt: skip
    execution = lab.start()
    if table == "execution":
        Execution.objects.filter(pk=execution.pk).update(state=first)
        execution.refresh_from_db()
        return (
            lambda to: move_execution(Execution.objects.get(pk=execution.pk), to, **common),
            lambda: Execution.objects.get(pk=execution.pk).state, ExecutionTransition.objects.order_by("pk"),
        )  # fmt: skip
    run = run_of(execution, "V")
    RunHead.objects.filter(run=run).update(state=first)
    return (
        lambda to: move_run(run, to, **common), lambda: head_of(execution, "V").state,
        RunTransition.objects.order_by("pk"),
    )  # fmt: skip


def test_a_stale_reader_loses(lab: Lab) -> None:
    first = lab.start()
    second = Execution.objects.get(pk=first.pk)
    move_execution(first, "paused", reason="", actor=lab.actor, at=AT)
    with pytest.raises(StaleTransition, match="no longer running"):
        move_execution(second, "interrupted", reason="", actor=lab.actor, at=AT)
    assert Execution.objects.get(pk=first.pk).state == "paused"
    plan = first.plan_version.plan
    stale = Plan.objects.get(pk=plan.pk)
    move_plan(plan, "superseded", version=None, reason="", actor=lab.actor, at=AT)
    with pytest.raises(StaleTransition):
        move_plan(stale, "superseded", version=None, reason="", actor=lab.actor, at=AT)


def test_the_log_row_commits_with_the_head_or_not_at_all(lab: Lab) -> None:
    execution = lab.start()
    rows = ExecutionTransition.objects.count()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        move_execution(execution, "paused", reason="", actor=lab.actor, at=AT + timedelta(1))
        raise ZeroDivisionError
    assert ExecutionTransition.objects.count() == rows
    assert Execution.objects.get(pk=execution.pk).state == "running"
