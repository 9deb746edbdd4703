"""Recording: one document, rows and a receipt; a later record replaces none; what is changed afterwards is named."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction

from evidence.verify import verify
from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study
from runs.actions.record_controls import CONTROLS_RECORDED, record_controls, request_controls
from runs.errors import DomainError
from runs.models import ControlSet, ControlSlot, Document, Job, Receipt, Study, TaskSet
from runs.storage import blob_store
from tests.controls.world import TASKS, result
from tests.evidence.test_verify import found, sql
from tests.worker.test_inspection import run_with
from workbench.contracts.canonical import parse_canonical, sha256_hex
from workbench.contracts.controls import CONTROLS, ControlsResult, ControlsSpec
from workbench.contracts.errors import RecordError
from workbench.contracts.wire import to_wire
from workbench.db import AppendOnlyViolation
from worker import lifecycle
from worker.runner_client import RunnerFailed

AT = datetime(2026, 11, 30, tzinfo=UTC)
SPEC = ControlsSpec("own", {}, ())
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def store(settings: Any, tmp_path: Any) -> None:
    settings.BLOB_ROOT = tmp_path / "blobs"


def study() -> Study:
    return ensure_study("own", title={"en": "Own"}, summary={"en": "Own."}, by=service_actor("test"), at=AT)


def record(given: ControlsResult, of: Study | None = None) -> ControlSet:
    with transaction.atomic():
        return record_controls(given, study=of, by=service_actor("test"), at=AT)


def faults() -> set[tuple[int, str, str]]:
    return found(verify(store=blob_store(), steps=(1, 2, 3, 4, 5)))


def test_a_record_is_bound_to_bytes_and_verifies() -> None:
    made = record(result(gold="PF", empty=""))
    document = Document.objects.get(kind=CONTROLS, subject_uid=made.uid)
    assert made.record_sha256 == document.sha256 == sha256_hex(bytes(document.bytes))
    assert ControlSlot.objects.filter(control_set=made).count() == 12 and TaskSet.objects.get().count == 2
    receipt = Receipt.objects.get(kind=CONTROLS_RECORDED)
    body = parse_canonical(bytes(receipt.bytes))["body"]
    assert receipt.stream == "controls" and body["record_sha256"] == made.record_sha256
    # of 12: the gold of the first mismatches, its empty was seen by nobody and counts as raw pass
    assert body["counts"] == {
        "raw_pass": [11, 12], "strict_pass": [10, 12], "report_binary": [11, 12], "unresolved": [1, 12],
        "partial_zero": [0, 12], "expectation_mismatch": [1, 12],
    }  # fmt: skip
    assert faults() == set()


def test_a_later_record_is_the_next_and_replaces_none() -> None:
    first, again = record(result(gold="PF")), record(result())
    assert (first.ordinal, again.ordinal) == (1, 2) and first.uid != again.uid
    assert ControlSlot.objects.get(control_set=first, kind="gold", task__key="one").as_expected is False
    assert ControlSlot.objects.get(control_set=again, kind="gold", task__key="one").as_expected is True
    assert faults() == set()
    with pytest.raises(AppendOnlyViolation):
        ControlSlot.objects.filter(control_set=first).update(as_expected=True)
    with pytest.raises(AppendOnlyViolation):
        first.delete()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE runs_controlslot SET as_expected = 1 WHERE as_expected = 0", (4, "runs_controlslot", "as_expected")),
        ("UPDATE runs_controlslot SET run_s = 9 WHERE position = 3", (4, "runs_controlslot", "run_s")),
        ("UPDATE runs_controlset SET verifier = 'other'", (4, "runs_controlset", "verifier")),
        ("DELETE FROM runs_controlslot WHERE position = 11", (4, "runs_controlslot", "id")),
        ("UPDATE runs_document SET kind = 'gone' WHERE kind = 'controls'", (4, "runs_controlset", "uid")),
        ("DELETE FROM runs_receipt WHERE kind = 'controls.recorded'", (4, "runs_receipt", "kind")),
    ],
)
def test_what_is_changed_afterwards_is_named(change: str, fault: tuple[int, str, str]) -> None:
    record(result(gold="PF"))
    sql(change)
    assert fault in faults()


def test_a_study_that_is_exchanged_is_named() -> None:
    made = record(result())
    sql(f"UPDATE runs_controlset SET study_id = {study().pk}")
    assert (4, "runs_controlset", "study") in faults() and made.study is None


def test_a_slot_of_a_foreign_task_and_a_missing_time_are_refused() -> None:
    from dataclasses import replace

    given = result()
    foreign = replace(given.slots[0], task_uid="7b1f6f6c-6f0e-5a57-9d6b-0f5f7a4a2d11")
    with pytest.raises(RecordError, match="expected one of the set"):
        record(replace(given, slots=(foreign, *given.slots[1:])))
    with pytest.raises(RecordError, match="timings: got 11"):
        record(replace(given, timings=given.timings[1:]))
    assert not ControlSet.objects.exists() and not Document.objects.filter(kind=CONTROLS).exists()


def test_a_job_records_what_the_engine_found(monkeypatch: pytest.MonkeyPatch) -> None:
    of = study()
    job = request_controls(of, SPEC, by=service_actor("test"), at=AT)
    assert (job.kind, job.queue, job.state, job.study) == ("run_controls", "trial", "queued", of)
    assert request_controls(of, SPEC, by=service_actor("test"), at=AT).pk == job.pk  # one at a time
    client = run_with(monkeypatch, job, to_wire(result()))
    made = ControlSet.objects.get()
    assert client.asked == [("controls", to_wire(SPEC))]
    assert job.state == "succeeded" and job.result == {"controls": str(made.uid)} and made.study == of
    assert Receipt.objects.get(kind=CONTROLS_RECORDED).stream == f"study:{of.uid}"
    assert faults() == set()
    assert request_controls(of, SPEC, by=service_actor("test"), at=AT).pk != job.pk


def test_a_job_that_cannot_be_done_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    job = request_controls(study(), SPEC, by=service_actor("test"), at=AT)
    run_with(monkeypatch, job, RunnerFailed("no artefacts", boundary="EnvironmentFault", class_name="X", trace=""))
    assert job.state == "failed" and "no artefacts" in job.error and not ControlSet.objects.exists()
    job = request_controls(study(), SPEC, by=service_actor("test"), at=AT)
    run_with(monkeypatch, job, RunnerFailed("bug", boundary=None, class_name="KeyError", trace=""))
    assert job.state == "errored"
    job = request_controls(study(), SPEC, by=service_actor("test"), at=AT)
    wrong = to_wire(result())
    wrong["slots"][0]["passed"] = False
    run_with(monkeypatch, job, wrong)
    assert job.state == "failed" and "passed: got False" in job.error and not ControlSet.objects.exists()


def test_a_lost_lease_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    job = request_controls(study(), SPEC, by=service_actor("test"), at=AT)

    class Slow:
        def call(self, op: str, spec: dict[str, Any], **_: Any) -> Any:
            Job.objects.filter(pk=job.pk).update(attempt=7)  # another worker holds it now
            return to_wire(result())

    monkeypatch.setattr(lifecycle, "engine_client", lambda threads: Slow())
    lifecycle.execute(job.pk)
    assert not ControlSet.objects.exists() and not Document.objects.filter(kind=CONTROLS).exists()


def test_nothing_is_no_environment() -> None:
    with pytest.raises(DomainError, match="environment: got nothing"):
        request_controls(study(), ControlsSpec("", {}, ()), by=service_actor("test"), at=AT)


def test_tasks_that_share_a_set_are_ordered_as_in_it() -> None:
    made = record(result())
    keys = list(made.slots.order_by("position").values_list("task__key", flat=True))
    assert keys == [TASKS[0].key] * 6 + [TASKS[1].key] * 6
