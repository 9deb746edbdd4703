"""Probe jobs: when they are made, what they store, and that a probe that fails never ends a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from evidence.verify import verify
from runs.actions import jobs
from runs.actions.advance import progress_of
from runs.actions.documents import AlreadyRecorded
from runs.actions.record_probe import parse_probe, probe_points
from runs.models import Document, Job, MetricPoint, Receipt
from runs.storage import blob_store
from tests.runs.probe_double import probe
from tests.runs.scripted import Lab, head_of, run_of
from tests.runs.test_advance import ALONE, told
from workbench.contracts import layout
from workbench.contracts.errors import PlanInvalid, RecordError
from workbench.contracts.probe import ProbeResult
from worker import handoff, recorder
from worker.runner_client import RunnerDied, RunnerFailed

pytestmark = pytest.mark.django_db

STEPS = (1, 3, 5, 8, 9)  # the scripted engine's updates are no real arithmetic, which the other steps know
PROBED: dict[str, Any] = {**ALONE, "probe": {"split": "test", "tasks": 1, "repeats": 2, "every": 1}}


def probe_states(execution: Any) -> dict[str, str]:
    rows = Job.objects.filter(execution=execution, kind="probe_shard").values_list("key", "state")
    return {key.rsplit(":", 1)[1]: state for key, state in rows}


def test_parent_cadence_and_end_are_probed_and_each_has_its_document(lab: Lab) -> None:
    """Two batches, every one: 0 (the parent, no run), 1 and 2 (the end). The execution closes and verifies."""
    execution = lab.start(**PROBED)
    expected = progress_of(execution)["expected"]
    done = lab.drive(execution)
    assert execution.state == "closed" and len(done) == expected
    run = run_of(execution, "V")
    assert probe_states(execution) == dict.fromkeys("012", "succeeded")
    assert Job.objects.get(key=f"{execution.uid}:probe:0").run is None
    documents = {parse_probe(bytes(item.bytes)).batch: item for item in Document.objects.filter(kind="probe")}
    assert sorted(documents) == [0, 1, 2]
    bodies = sorted(told("probe.recorded"), key=lambda body: body["batch"])
    assert [(body["batch"], body["tasks"], body["decisions"], body["trials"]) for body in bodies] == [
        (batch, 1, 1, {"measured": 5}) for batch in (0, 1, 2)
    ]
    assert bodies[0]["cost"] == {"factual": 2, "regenerated": 5, "policy_tokens": 29, "ingested_tokens": 0}
    assert bodies[1]["machine"]["timing"] == {"seconds": 2.5, "cpu_seconds": 2}
    points = probe_points(execution, run)
    assert points is not None and [(item.batch, item.state) for item in points] == [(1, "measured"), (2, "measured")]
    assert verify(store=blob_store(), steps=STEPS).faults == []


def test_points_stand_where_the_probed_checkpoint_stood(lab: Lab) -> None:
    """A batch is one group of two trajectories of three tokens, whatever the run has done since."""
    execution = lab.start(**PROBED)
    lab.drive(execution)
    run = run_of(execution, "V")
    found = MetricPoint.objects.filter(series__run=run, series__definition="l6.action_unchanged/1")
    axes = found.filter(series__labels={"intervention": "delete"}).order_by("update")
    columns = ("update", "policy_version", "trajectories", "generated_tokens", "value", "count")
    assert list(axes.values_list(*columns)) == [(1, 1, 2, 6, 0.0, 1), (2, 2, 4, 12, 0.0, 1)]
    assert set(found.values_list("series__phase", "series__split")) == {("probe", "test")}
    parent = MetricPoint.objects.get(series__definition="l6.single_correct/1", series__run=None)
    assert (parent.value, parent.count, parent.series.segment) == (0.5, 1, str(execution.uid))


def test_a_cadence_beyond_the_budget_still_probes_the_end(lab: Lab) -> None:
    execution = lab.start(**{**PROBED, "probe": {**PROBED["probe"], "every": 50}})
    lab.drive(execution)
    assert sorted(probe_states(execution)) == ["0", "2"]


def test_without_a_probe_section_nothing_is_probed_and_that_is_not_measured(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    lab.drive(execution)
    assert not Job.objects.filter(kind="probe_shard").exists()
    assert probe_points(execution) is None and probe_points(execution, run_of(execution, "V")) is None


@pytest.mark.parametrize(
    "error",
    [RunnerFailed("no room", boundary="EngineFault", class_name="EngineFault", trace=""), ValueError("no room")],
)
def test_a_probe_that_breaks_is_unavailable_and_the_run_completes(lab: Lab, error: Exception) -> None:
    """The first probe of the run breaks: the point has no value and says why; everything else is as without it."""

    def before(op: str, spec: dict[str, Any]) -> None:
        if op == "probe" and spec["batch"] == 1:
            raise error

    lab.script.before = before
    execution = lab.start(**PROBED)
    lab.drive(execution)
    assert execution.state == "closed" and head_of(execution, "V").state == "completed"
    assert probe_states(execution) == {"0": "succeeded", "1": "errored", "2": "succeeded"}
    (body,) = told("probe.unavailable")
    assert (body["batch"], body["state"]) == (1, "errored") and "no room" in body["reason"]
    points = probe_points(execution, run_of(execution, "V"))
    assert points is not None and [item.state for item in points] == ["unavailable", "measured"]
    assert "no room" in points[0].reason and points[0].probe_uid is None
    assert not MetricPoint.objects.filter(series__definition__startswith="l6.", update=1).exists()
    assert verify(store=blob_store(), steps=STEPS).faults == []


def test_a_probe_whose_worker_dies_is_tried_again_and_then_unavailable(lab: Lab) -> None:
    def before(op: str, spec: dict[str, Any]) -> None:
        if op == "probe" and spec["batch"] == 2:
            raise RunnerDied("killed", -9)

    lab.script.before = before
    execution = lab.start(**PROBED)
    lab.drive(execution)
    assert execution.state == "closed" and head_of(execution, "V").state == "completed"
    job = Job.objects.get(key__endswith=":probe:2")
    assert (job.state, job.attempt) == ("errored", 3)
    assert Receipt.objects.filter(kind="attempt.lost").count() == 3
    (body,) = told("probe.unavailable")
    assert "3 of 3 attempts lost" in body["reason"]


def test_a_run_waits_for_its_probe_and_training_does_not(lab: Lab) -> None:
    """Everything but the probes is done: the run is not completed, and says which points are pending."""
    execution = lab.start(**PROBED)
    for word in ("collect", "update", "evaluate"):
        while (
            lab.step(execution, only=word) or lab.step(execution, only="collect") or lab.step(execution, only="update")
        ):
            pass
    head = head_of(execution, "V")
    assert (head.state, head.phase, head.batch) == ("running", "evaluate", 2)
    points = probe_points(execution, head.run)
    assert points is not None and {(item.state, item.reason) for item in points} == {("pending", "waits for a worker")}
    lab.drive(execution)
    assert execution.state == "closed"


def test_points_that_a_stopped_run_never_reached_say_so(lab: Lab) -> None:
    """Every trajectory is invalid: the error gate stops the run before its first probe."""
    lab.script.invalid = lambda spec, group, slot: spec.purpose == "train"
    execution = lab.start(**{**PROBED, "error_gate": {"max_invalid_share": 0.1, "minimum_trajectories": 2}})
    lab.drive(execution)
    points = probe_points(execution, run_of(execution, "V"))
    assert points is not None and {item.state for item in points} == {"not_reached"}
    assert all("stopped after" in item.reason for item in points)
    parent = probe_points(execution)
    assert parent is not None and [(item.batch, item.state) for item in parent] == [(0, "measured")]


def test_a_checkpoint_is_probed_with_the_same_seeds_whatever_its_arm(lab: Lab) -> None:
    execution = lab.start(probe=PROBED["probe"])
    lab.drive(execution)
    specs = [handoff.probe_spec(job)[0] for job in Job.objects.filter(kind="probe_shard")]
    assert len({spec.collect.policy.adapter_sha256 for spec in specs}) == 5  # the parent, two of V, two of F
    assert len({tuple(slot.seed for group in spec.collect.groups for slot in group.slots) for spec in specs}) == 1
    assert all(spec.collect.groups[0].injected_ordinals == () for spec in specs)
    assert len({spec.uid for spec in specs}) == len(specs)


def taken(lab: Lab) -> tuple[Job, Any, ProbeResult]:
    execution = lab.start(**PROBED)
    job = jobs.claim(Job.objects.get(key=f"{execution.uid}:probe:0").pk, owner="w", at=timezone.now())
    assert job is not None
    spec, checkpoint = handoff.probe_spec(job)
    return job, checkpoint, probe(spec)


@pytest.mark.parametrize(
    ("field", "new"),
    [
        ("uid", "00000000-0000-5000-8000-00000000000f"),
        ("plan_sha256", "f" * 64),
        ("run_uid", "00000000-0000-5000-8000-00000000000f"),
    ],
)
def test_a_record_of_another_probe_is_refused_and_nothing_stored(lab: Lab, field: str, new: str) -> None:
    job, checkpoint, _ = taken(lab)
    spec, _ = handoff.probe_spec(job)
    change = {field: new} if field == "uid" else {"collect": replace(spec.collect, **{field: new})}
    with pytest.raises(RecordError, match=f"{field}: got {new}"):
        recorder.commit_probe(job, checkpoint, probe(replace(spec, **change)))
    assert not Document.objects.filter(kind="probe").exists() and not told("probe.recorded")
    assert Job.objects.get(pk=job.pk).state == "leased"


def test_a_hash_that_is_not_the_records_is_refused(lab: Lab) -> None:
    job, checkpoint, result = taken(lab)
    with pytest.raises(RecordError, match="record_sha256: got"):
        recorder.commit_probe(job, checkpoint, replace(result, record_sha256="0" * 64))


def test_a_second_record_of_one_probe_is_refused(lab: Lab) -> None:
    job, checkpoint, result = taken(lab)
    recorder.commit_probe(job, checkpoint, result)
    Job.objects.filter(pk=job.pk).update(state="leased")
    with pytest.raises(AlreadyRecorded):
        recorder.commit_probe(job, checkpoint, result)


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ({"repeats": 3}, "probe.repeats"),  # more than the two rows of a shard
        ({"max_decisions": 7}, "probe.max_decisions"),  # a rollout has six
        ({"tasks": 64}, "probe.tasks"),  # more than the split holds: known at freeze
        ({"tasks": 0}, "probe.tasks"),
        ({"every": 0}, "probe.every"),
        ({"split": "dev"}, "probe.split"),
        ({"temperature": 0}, "probe.temperature"),
        ({"turns": 3}, "probe.turns"),
    ],
)
def test_bad_probe_settings_are_named(lab: Lab, section: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanInvalid) as caught:
        lab.freeze(**{**PROBED, "probe": {**PROBED["probe"], **section}})
    assert [item.field for item in caught.value.problems] == [field]


def test_cadence_of_a_run() -> None:
    """Every 4 of 10 batches: after 4 and 8, and at the end; the parent is not the run's."""
    body: dict[str, Any] = {"plan": {"probe": {"every": 4}}}
    assert layout.probe_batches(body, {"budget": {"batches": 10}}) == [4, 8, 10]
    assert layout.probe_batches(body, {"budget": {"batches": 8}}) == [4, 8]
    assert layout.probe_batches({"plan": {"probe": None}}, {"budget": {"batches": 8}}) == []
