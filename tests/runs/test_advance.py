"""What comes next: from the first probe to the closure, gates, and that deciding twice adds nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from runs.actions.advance import advance, progress_of
from runs.actions.closure import closure_of
from runs.models import (
    Checkpoint,
    ConsumedGroup,
    EvaluationItem,
    Execution,
    ExecutionTransition,
    Group,
    Job,
    Receipt,
    RunHead,
    RunTransition,
    Trajectory,
    UpdateBatch,
)
from tests.runs.scripted import AT, Lab, head_of, run_of
from tests.runs.scripted_plan import document
from workbench.contracts.canonical import parse_canonical

pytestmark = pytest.mark.django_db

QUICK = {"evaluation": {"splits": [{"split": "test", "tasks": 1}], "repeats": 1, "conditions": ["standard"]}}
ALONE: dict[str, Any] = {
    **QUICK, "arms": [{"key": "V", "role": "main", "title": {"en": "V"}}], "strict_pairs": [], "preflight": None,
}  # fmt: skip


def told(kind: str) -> list[dict[str, Any]]:
    """Bodies of the receipts of a kind, in order."""
    rows = Receipt.objects.filter(kind=kind).order_by("pk")
    return [parse_canonical(bytes(row.bytes))["body"] for row in rows]


def decide(lab: Lab, execution: Execution) -> None:
    with transaction.atomic():
        advance(execution, actor=lab.actor, at=AT)


def counts() -> list[int]:
    return [m.objects.count() for m in (Job, Receipt, RunTransition, ExecutionTransition, Group, UpdateBatch)]


def test_a_study_walks_from_probe_to_closure_and_deciding_twice_adds_nothing(lab: Lab) -> None:
    """2 probes; V and F: 2 batches each; K refused; parent, V and F: 2 conditions x 2 shards; the closure."""
    execution = lab.start()
    phases, keys = [execution.phase], []
    while (key := lab.step(execution)) is not None:
        keys.append(key.split(":", 1)[1])
        before = counts()
        decide(lab, execution)
        assert counts() == before, key
        execution.refresh_from_db()
        if execution.phase != phases[-1]:
            phases.append(execution.phase)
    assert phases == ["preflight", "train", "close", "done"] and execution.state == "closed"
    assert keys[:2] == ["preflight:0", "preflight:1"] and keys[-1] == "close"
    assert keys.count("collect:0") == keys.count("update:0") == keys.count("collect:1") == keys.count("update:1") == 2
    assert sum("evaluate" in key for key in keys) == 3 * 2 * 2 and len(keys) == 2 + 8 + 12 + 1
    for arm in ("V", "F"):
        head = head_of(execution, arm)
        assert (head.state, head.phase, head.batch, head.steps, head.policy_version) == ("completed", "done", 2, 2, 2)
        assert (head.trajectories, head.generated_tokens) == (4, 12)
    assert ConsumedGroup.objects.count() == Group.objects.filter(purpose="train").count() == 4
    assert EvaluationItem.objects.count() == 3 * 2 * 2 * 2
    assert not Job.objects.exclude(state="succeeded").exists()
    progress = progress_of(execution)
    assert progress["done"] == progress["expected"] == len(keys)
    assert closure_of(execution) is not None


def test_equal_metrics_of_two_shards_are_both_kept(lab: Lab) -> None:
    """The two probe shards measure the same value, and so do the parent's evaluation shards."""
    from runs.models import MetricPoint, MetricSeries

    execution = lab.start()
    lab.drive(execution, only="preflight")
    (series,) = MetricSeries.objects.filter(run=None, phase="preflight")
    assert MetricPoint.objects.filter(series=series).count() == 2 and series.segment == str(execution.uid)


def test_without_preflight_training_begins_at_once(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    assert execution.phase == "train" and head_of(execution, "V").state == "running"
    keys = {key.split(":", 1)[1] for key in Job.objects.values_list("key", flat=True)}
    assert keys == {"collect:0", "evaluate:standard:test:0"}


def test_the_preflight_gate_stops_every_run_with_a_receipt(lab: Lab) -> None:
    """Both probe groups have equal rewards: share 1 above the limit 0.5."""
    lab.script.reward = lambda spec, group, slot: 0.5
    execution = lab.start(**QUICK)
    lab.drive(execution)
    assert (execution.state, execution.phase) == ("stopped", "done")
    assert execution.reason == "preflight: 2 of 2 probe groups carry no signal, limit 0.5"
    assert {(h.state, h.phase) for h in RunHead.objects.all()} == {("stopped", "done")}
    (body,) = told("preflight.stopped")
    assert body["probe_groups"] == body["eligible_groups"] == body["zero_variance_groups"] == 2
    assert body["zero_variance_share"] == 1 and Job.objects.count() == 2


def test_a_share_at_the_limit_passes(lab: Lab) -> None:
    """One of two probe groups has signal: share 0.5, limit 0.5."""
    lab.script.reward = lambda spec, group, slot: (0.9, 0.1)[slot % 2] if group.ordinal else 0.5
    execution = lab.start(**QUICK)
    lab.drive(execution, only="preflight")
    assert execution.phase == "train" and told("preflight.passed")[0]["zero_variance_share"] == 0.5


def test_probes_without_any_outcome_stop_too_and_a_paused_run_is_not_left_behind(lab: Lab) -> None:
    from runs.actions.runs_control import pause_run

    lab.script.invalid = lambda spec, group, slot: True
    execution = lab.start(**QUICK)
    pause_run(run_of(execution, "V"), by=lab.actor, at=AT)
    lab.drive(execution)
    assert execution.reason == "preflight: no eligible probe group"
    assert {h.state for h in RunHead.objects.all()} == {"stopped"}


@pytest.mark.parametrize(("cases", "met"), [(2, False), (3, True)])
def test_a_gate_counts_the_other_arms_cases_over_all_seeds(lab: Lab, cases: int, met: bool) -> None:
    """Minimum 3. Seeds 1 and 2 of F, one batch each: 2 actionable cases of seed 1 and ``cases`` - 2 of seed 2."""
    arms = document()["arms"][1:]
    lab.script.actionable = lambda spec: 2 if spec.run_uid == str(run_of(execution, "F", "1").uid) else cases - 2
    execution = lab.start(
        **{**QUICK, "preflight": None, "seeds": ["1", "2"], "arms": arms, "strict_pairs": [],
           "budget": {"batches": 1, "max_steps": 4}}
    )  # fmt: skip
    lab.drive(execution)
    assert execution.state == "closed"
    kind = "gate.met" if met else "gate.refused"
    assert (
        told(kind)
        == [{"rule": "clamp_actionable_cases", "counted_over": "F", "cases": cases, "minimum": 3, "met": met}] * 2
    )  # one receipt for each seed of the gated arm
    for seed in ("1", "2"):
        head = head_of(execution, "K", seed)
        assert head.state == ("completed" if met else "refused") and head.batch == (1 if met else 0)
        assert Group.objects.filter(run=head.run).exists() is met
    if not met:
        assert head_of(execution, "K").reason == "gate: 2 actionable cases, minimum 3"


def test_a_gated_arm_that_stands_first_is_decided_when_its_counted_arm_stops(lab: Lab) -> None:
    """F stops at its error gate in the last job of all: K must be decided then, since no later job would look."""
    arms = document()["arms"]
    lab.script.invalid = lambda spec, group, slot: spec.purpose == "train"
    execution = lab.start(**{**QUICK, "preflight": None, "arms": [arms[2], arms[1]], "strict_pairs": []})
    lab.drive(execution, only="evaluate")
    lab.drive(execution)
    assert [head_of(execution, arm).state for arm in ("F", "K")] == ["stopped", "refused"]
    assert execution.state == "closed"


def test_the_error_gate_stops_a_run_and_says_why(lab: Lab) -> None:
    """Limit 0.5 from 4 trajectories on: 2 invalid ones are too few to say, 4 of 4 are too many."""
    lab.script.invalid = lambda spec, group, slot: spec.purpose == "train"
    execution = lab.start(**ALONE)
    lab.drive(execution, only="collect:0")
    lab.drive(execution, only="update:0")
    assert head_of(execution, "V").state == "running" and UpdateBatch.objects.get().skipped == "no_eligible_group"
    lab.drive(execution)
    head = head_of(execution, "V")
    assert (head.state, head.phase, head.batch) == ("stopped", "done", 1)
    assert head.reason == "error-rate gate: 4 of 4 trajectories are infrastructure-invalid, limit 0.5"
    assert told("run.stopped")[0]["invalid"] == 4 and execution.state == "closed"
    assert not Trajectory.objects.filter(status="infrastructure_invalid", reward_total__isnull=False).exists()


def test_invalid_trajectories_within_the_limit_do_not_stop_a_run(lab: Lab) -> None:
    """2 of 4 is exactly the limit; the group with the bad slots is rejected whole, the other one trains."""
    lab.script.invalid = lambda spec, group, slot: spec.purpose == "train" and group.ordinal == 0
    execution = lab.start(**ALONE)
    lab.drive(execution)
    head = head_of(execution, "V")
    assert (head.state, head.batch, head.steps) == ("completed", 2, 1)


def test_the_step_budget_ends_training_too(lab: Lab) -> None:
    execution = lab.start(**{**ALONE, "budget": {"batches": 5, "max_steps": 1}})
    lab.drive(execution)
    assert (head_of(execution, "V").batch, head_of(execution, "V").steps) == (1, 1)


def test_a_run_without_any_signal_completes_with_its_parents_policy(lab: Lab) -> None:
    """Every batch is skipped: no checkpoint, no second evaluation of the same policy, and the execution closes."""
    lab.script.reward = lambda spec, group, slot: 0.5
    execution = lab.start(**ALONE)
    lab.drive(execution)
    head = head_of(execution, "V")
    assert (head.state, head.batch, head.steps, execution.state) == ("completed", 2, 0, "closed")
    assert head.checkpoint == Checkpoint.objects.get() and EvaluationItem.objects.count() == 1
