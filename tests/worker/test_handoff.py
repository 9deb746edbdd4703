"""Frozen bytes become specifications: the same for every attempt, from the plan and the stored records alone."""

from __future__ import annotations

import pytest

from runs.models import Job, RunHead
from runs.storage import blob_store
from tests.runs.scripted import Lab, run_of
from tests.runs.scripted_plan import document
from tests.runs.test_advance import ALONE, QUICK
from workbench.capturefile import read_capture
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.jobs import CollectSpec, UpdateSpec
from workbench.contracts.records import GroupRecord
from workbench.contracts.wire import from_wire, parse_record, to_wire
from worker import handoff

pytestmark = pytest.mark.django_db


def job_of(key: str) -> Job:
    return Job.objects.select_related("execution__plan_version", "run").get(key__endswith=key)


def test_a_training_shard_follows_the_arm_and_the_run(lab: Lab) -> None:
    arms = document()["arms"][:2]
    arms[1]["overrides"]["rollout"] = {"max_decisions": 3}
    execution = lab.start(**{**QUICK, "preflight": None, "arms": arms, "strict_pairs": []})
    run = run_of(execution, "F")
    spec, checkpoint = handoff.collect_spec(job_of(f"{run.uid}:collect:0"))
    assert (spec.run_uid, spec.purpose, spec.condition, spec.split) == (str(run.uid), "train", "train", "train")
    assert spec.max_decisions == 3 and spec.advantage == {"kind": "grpo", "eps": 1e-06}
    assert spec.policy.adapter_sha256 == checkpoint.sha256 == run.parent_checkpoint.sha256  # type: ignore[union-attr]
    assert (spec.policy.policy_version, spec.runtime) == (0, "runtime-test")
    assert [len(group.slots) for group in spec.groups] == [2]
    assert from_wire(CollectSpec, to_wire(spec)) == spec
    again, _ = handoff.collect_spec(job_of(f"{run.uid}:collect:0"))
    assert again == spec
    other, _ = handoff.collect_spec(job_of(f"{run_of(execution, 'V').uid}:collect:0"))
    assert other.max_decisions == 6
    assert [s.seed for g in other.groups for s in g.slots] == [s.seed for g in spec.groups for s in g.slots]


def test_a_probe_samples_from_the_parent_under_the_plan(lab: Lab) -> None:
    execution = lab.start(**QUICK)
    spec, checkpoint = handoff.collect_spec(job_of(":preflight:1"))
    assert (spec.purpose, spec.run_uid, checkpoint.kind) == ("preflight", str(execution.uid), "parent")
    assert [group.ordinal for group in spec.groups] == [1]


def test_evaluation_has_its_own_temperature_no_advantage_and_no_arm(lab: Lab) -> None:
    """The arm's overrides do not reach its evaluation: the checkpoint is the only variable."""
    evaluation = {**QUICK["evaluation"], "temperature": 0.5, "conditions": ["standard", "stress"]}
    arms = document()["arms"][:1]
    arms[0]["overrides"] = {"rollout": {"max_decisions": 3}}
    execution = lab.start(**{**ALONE, "arms": arms, "evaluation": evaluation})
    for only in ("collect:0", "update:0", "collect:1", "update:1"):
        lab.drive(execution, only=only)
    run = run_of(execution, "V")
    final = RunHead.objects.get(run=run).checkpoint
    assert final is not None and final.policy_version == 2
    own, used = handoff.collect_spec(job_of(f"{final.uid}:evaluate:stress:test:0"))
    parent, _ = handoff.collect_spec(job_of(f"{run.parent_checkpoint.uid}:evaluate:stress:test:0"))  # type: ignore[union-attr]
    assert used == final and own.policy.adapter_sha256 == final.sha256
    assert (own.sampling["temperature"], own.max_decisions, own.advantage) == (0.5, 6, None)
    assert (own.purpose, own.condition, own.split) == ("evaluate", "stress", "test")
    assert own.groups[0].injected_ordinals == (0,) and own.sampling == parent.sampling
    assert [s.seed for g in own.groups for s in g.slots] == [s.seed for g in parent.groups for s in g.slots]
    standard, _ = handoff.collect_spec(job_of(f"{final.uid}:evaluate:standard:test:0"))
    assert standard.groups[0].injected_ordinals == () and standard.groups[0].failure_profile == "control"


def test_an_update_gets_the_recorded_bytes_and_the_places_of_all_captures(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    for only in ("collect:0", "update:0", "collect:1"):
        lab.drive(execution, only=only)
    spec = handoff.update_spec(job_of(":update:1"))
    head = RunHead.objects.get()
    assert (spec.batch, spec.first_step, spec.optimizer_sha256) == (1, 1, head.optimizer_sha256)
    assert spec.policy.policy_version == 1 and spec.policy.adapter_sha256 == head.checkpoint.sha256  # type: ignore[union-attr]
    (group,) = spec.groups
    assert sha256_hex(group.record_json.encode()) == group.record_sha256
    record = parse_record(GroupRecord, group.record_json.encode())
    turns = [turn.capture_sha256 for item in record.trajectories for turn in item.turns]
    assert [ref.capture_sha256 for ref in group.captures] == turns
    blob = blob_store().get(group.capture_blob_sha256)
    assert [sha256_hex(read_capture(blob, ref)) for ref in group.captures] == turns
    assert from_wire(UpdateSpec, to_wire(spec)) == spec
