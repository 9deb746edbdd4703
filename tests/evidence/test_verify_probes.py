"""verify on reasoning probes: wrong values, missing points and documents without a receipt are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from evidence.verify import verify
from runs.actions import jobs
from runs.models import Checkpoint, Document, Job
from runs.storage import blob_store
from tests.evidence.test_verify import found, sql
from tests.runs.probe_double import made_record, probe
from tests.runs.scripted import Lab
from tests.runs.scripted import lab as lab
from tests.worker.test_probe_jobs import PROBED
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.probe import ProbeCost, ProbeRecord, ProbeResult
from workbench.contracts.wire import record_bytes
from worker import handoff, recorder
from worker.engine.probe_metrics import probe_metrics

pytestmark = pytest.mark.django_db


def claimed(lab: Lab) -> tuple[Job, Checkpoint, ProbeRecord, ProbeResult]:
    execution = lab.start(**PROBED)
    job = jobs.claim(Job.objects.get(key=f"{execution.uid}:probe:0").pk, owner="w", at=timezone.now())
    assert job is not None
    spec, checkpoint = handoff.probe_spec(job)
    return job, checkpoint, made_record(spec), probe(spec)


def faults(lab: Lab) -> set[tuple[int, str, str]]:
    return found(verify(store=blob_store(), steps=(1, 3, 8)))


def test_a_probe_as_it_was_recorded_has_no_fault(lab: Lab) -> None:
    job, checkpoint, _, result = claimed(lab)
    recorder.commit_probe(job, checkpoint, result)
    assert faults(lab) == set()


@pytest.mark.parametrize("position", range(0, 31, 6))
def test_a_value_that_the_document_does_not_give_is_named(lab: Lab, position: int) -> None:
    """Whichever it is: a value, or a denominator where there is none."""
    job, checkpoint, _, result = claimed(lab)
    metrics = list(result.metrics)
    item = metrics[position % len(metrics)]
    metrics[position % len(metrics)] = replace(item, value=0.123, count=7)
    recorder.commit_probe(job, checkpoint, replace(result, metrics=tuple(metrics)))
    assert faults(lab) == {(8, "runs_metricpoint", "value")}


def test_a_value_that_was_left_out_is_named(lab: Lab) -> None:
    job, checkpoint, _, result = claimed(lab)
    recorder.commit_probe(job, checkpoint, replace(result, metrics=result.metrics[1:]))
    assert faults(lab) == {(8, "runs_metricpoint", "count")}


def test_a_definition_that_no_probe_has_is_named(lab: Lab) -> None:
    job, checkpoint, _, result = claimed(lab)
    stranger = replace(result.metrics[0], definition="l6.luck/1")
    recorder.commit_probe(job, checkpoint, replace(result, metrics=(stranger, *result.metrics[1:])))
    assert (8, "runs_metricpoint", "value") in faults(lab)


@pytest.mark.parametrize("cost", [ProbeCost(9, 5, 29, 0), ProbeCost(2, 4, 29, 0), ProbeCost(2, 5, 30, 0)])
def test_a_cost_that_the_samples_do_not_have_is_named(lab: Lab, cost: ProbeCost) -> None:
    """Two rollouts, five trials, 29 sampled tokens; the record says one thing more or less."""
    job, checkpoint, record, _ = claimed(lab)
    changed = replace(record, cost=cost)
    data = record_bytes(changed)
    result = ProbeResult(data.decode(), sha256_hex(data), probe_metrics(changed), {"seconds": 1.0})
    recorder.commit_probe(job, checkpoint, result)
    (fault,) = verify(store=blob_store(), steps=(8,)).faults
    assert fault.table == "runs_document" and fault.column.startswith("cost.")


def test_a_document_that_was_changed_is_named(lab: Lab) -> None:
    job, checkpoint, _, result = claimed(lab)
    recorder.commit_probe(job, checkpoint, result)
    changed: Any = bytes(Document.objects.get(kind="probe").bytes).replace(b'"seen"', b'"lost"')
    sql("UPDATE runs_document SET bytes = %s WHERE kind = 'probe'", changed)
    assert (3, "runs_document", "sha256") in faults(lab)


def test_a_document_without_its_receipt_is_named(lab: Lab) -> None:
    job, checkpoint, _, result = claimed(lab)
    recorder.commit_probe(job, checkpoint, result)
    sql("DELETE FROM runs_receipt WHERE kind = 'probe.recorded'")
    assert (8, "runs_document", "receipt") in faults(lab)
