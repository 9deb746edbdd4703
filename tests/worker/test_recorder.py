"""Results become rows in one transaction, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from runs.actions import jobs
from runs.actions.documents import AlreadyRecorded
from runs.errors import StaleLease
from runs.models import Document, Group, Job, MetricPoint, MetricSeries, Receipt, RunHead, Trajectory, UpdateBatch
from runs.storage import blob_store
from tests.runs import engine_double
from tests.runs.engine_double import Script
from tests.runs.scripted import Lab, head_of
from tests.runs.test_advance import ALONE, told
from workbench.contracts.errors import RecordError
from workbench.contracts.jobs import CollectResult, CollectSpec
from worker import handoff, recorder

pytestmark = pytest.mark.django_db


def claimed(lab: Lab, kind: str = "collect", **changes: Any) -> Job:
    execution = lab.start(**{**ALONE, **changes})
    if kind == "update":
        lab.step(execution, only="collect:0")
    job = jobs.claim(Job.objects.get(key__endswith=f":{kind}:0").pk, owner="w", at=timezone.now())
    assert job is not None
    return job


def collected(job: Job) -> tuple[CollectSpec, Any, CollectResult]:
    spec, checkpoint = handoff.collect_spec(job)
    return spec, checkpoint, engine_double.collect(spec, Script(), blob_store())


def everything() -> list[int]:
    found = [m.objects.count() for m in (Group, Trajectory, Document, MetricPoint, Receipt, UpdateBatch)]
    return [*found, sum(Job.objects.values_list("attempt", flat=True)), Job.objects.filter(state="succeeded").count()]


def test_a_shard_is_stored_with_its_receipt_and_what_comes_next(lab: Lab) -> None:
    job = claimed(lab)
    spec, checkpoint, result = collected(job)
    recorder.commit_collect(job, spec, checkpoint, result)
    group = Group.objects.get()
    assert str(group.uid) == spec.groups[0].group_uid and Job.objects.get(pk=job.pk).state == "succeeded"
    (body,) = told("shard.collected")
    assert body["groups"] == [[str(group.uid), group.record_sha256, group.capture_blob_sha256]]
    assert (body["attempt"], body["owner"], body["machine"]["timing"]) == (1, "w", {"seconds": 1})
    assert Job.objects.filter(key=f"{spec.run_uid}:update:0", state="queued").exists()
    point = MetricPoint.objects.get(series__run=job.run)
    assert (point.trajectories, point.generated_tokens, point.policy_version) == (2, 6, 0)
    assert MetricSeries.objects.get(pk=point.series_id).segment == ""


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda r: replace(r, groups=()), ValueError),
        (lambda r: replace(r, groups=r.groups * 2), AlreadyRecorded),
        (lambda r: replace(r, groups=(replace(r.groups[0], record_sha256="0" * 64),)), RecordError),
        (lambda r: replace(r, groups=(replace(r.groups[0], capture_blob_sha256="0" * 64),)), OSError),
        (lambda r: replace(r, groups=(replace(r.groups[0], captures=r.groups[0].captures[1:]),)), RecordError),
        (lambda r: replace(r, metrics=(*r.metrics, replace(r.metrics[0], subject_uid="x"))), ValueError),
    ],
)
def test_a_result_that_does_not_fit_leaves_nothing(lab: Lab, change: Any, error: type[Exception]) -> None:
    job = claimed(lab)
    spec, checkpoint, result = collected(job)
    before = everything()
    with pytest.raises(error):
        recorder.commit_collect(job, spec, checkpoint, change(result))
    assert everything() == before and Job.objects.get(pk=job.pk).state == "leased"
    recorder.commit_collect(job, spec, checkpoint, result)
    assert Group.objects.count() == 1


def test_another_group_than_the_plan_asks_for_is_refused(lab: Lab) -> None:
    """The engine answers with the groups of the next batch."""
    job = claimed(lab)
    spec, checkpoint, _ = collected(job)
    job.spec["batch"] = 1
    _, _, other = collected(job)
    before = everything()
    with pytest.raises(ValueError, match="groups: got"):
        recorder.commit_collect(job, spec, checkpoint, other)
    assert everything() == before


def test_a_second_commit_of_one_attempt_is_stale(lab: Lab) -> None:
    job = claimed(lab)
    spec, checkpoint, result = collected(job)
    recorder.commit_collect(job, spec, checkpoint, result)
    before = everything()
    for again in (
        lambda: recorder.commit_collect(job, spec, checkpoint, result),
        lambda: recorder.commit_lost(job, spec, checkpoint, "late"),
    ):
        with pytest.raises(StaleLease):
            again()
    assert everything() == before


def test_an_update_moves_the_head_once(lab: Lab) -> None:
    job = claimed(lab, "update")
    spec = handoff.update_spec(job)
    result = engine_double.update(spec, Script(), blob_store())
    recorder.commit_update(job, result)
    head = RunHead.objects.get()
    update = UpdateBatch.objects.get()
    assert (head.batch, head.steps, head.policy_version) == (1, 1, 1)
    assert (head.checkpoint, head.optimizer_sha256) == (update.checkpoint_after, update.optimizer_after)
    (body,) = told("update.applied")
    assert (body["adapter_before"], body["adapter_after"]) == (
        update.checkpoint_before.sha256, update.checkpoint_after.sha256,
    )  # fmt: skip
    with pytest.raises(StaleLease):
        recorder.commit_update(job, result)
    assert RunHead.objects.get().batch == 1


def test_an_update_under_another_adapter_is_refused(lab: Lab) -> None:
    job = claimed(lab, "update")
    spec = handoff.update_spec(job)
    other = blob_store().put(b"another adapter")
    result = engine_double.update(
        replace(spec, policy=replace(spec.policy, adapter_sha256=other)), Script(), blob_store()
    )
    before = everything()
    with pytest.raises(RecordError, match="adapter_before"):
        recorder.commit_update(job, result)
    assert everything() == before and RunHead.objects.get().batch == 0


def test_a_lost_shard_has_no_reward_anywhere(lab: Lab) -> None:
    job = claimed(lab)
    spec, checkpoint = handoff.collect_spec(job)
    recorder.commit_lost(job, spec, checkpoint, "lease ran out")
    for row in Trajectory.objects.all():
        assert (row.status, row.reward_total, row.finished, row.success) == ("infrastructure_invalid", None, None, None)
        assert row.turns.count() == 0 and row.generated_tokens == 0
    assert Group.objects.get().ineligible_reason == "worker_lost in every slot"
    assert told("shard.lost")[0]["groups"][0][0] == str(Group.objects.get().uid)
    assert head_of(job.execution, "V").trajectories == 2  # type: ignore[arg-type]
