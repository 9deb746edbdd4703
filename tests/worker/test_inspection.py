"""Inspection jobs: what a worker answers, and what a freeze does with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.actions import inspection
from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study, save_draft
from runs.errors import AlreadyFrozen, DomainError
from runs.models import Job, Plan, TaskSet
from runs.storage import blob_store
from workbench.contracts.errors import PlanInvalid
from worker import lifecycle
from worker.runner_client import RunnerFailed
from worker.study import load_study

AT = datetime(2026, 11, 30, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def draft(change: dict[str, Any] | None = None) -> Plan:
    actor = service_actor("test")
    study = ensure_study("own", title={"en": "Own"}, summary={"en": "Own."}, by=actor, at=AT)
    document = {**load_study("fatal-mask-pair", "tiny")[1], **(change or {})}
    return save_draft(study, "first", json.dumps(document), by=actor, at=AT)


class Client:
    """Answers as an engine that says ``answer``, or raises it."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self.answer, self.asked = answer, []

    def call(self, op: str, spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.asked.append((op, spec))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def run_with(monkeypatch: pytest.MonkeyPatch, job: Job, answer: dict[str, Any] | Exception) -> Client:
    client = Client(answer)
    monkeypatch.setattr(lifecycle, "engine_client", lambda threads: client)
    lifecycle.execute(job.pk)
    job.refresh_from_db()
    return client


def found(settings: Any, tmp_path: Any) -> dict[str, Any]:
    """An engine's answer: two tasks in each split that the tiny plan draws from."""
    settings.BLOB_ROOT = tmp_path / "blobs"
    store = blob_store()
    counts = {"train": 40, "validation": 20, "test": 40, "ood": 40, "anchor": 8}
    tasks = [
        {"key": f"{split}-{n}", "split": split, "family": "f", "prompt": f"{split} {n}?", "initial_state": {},
         "hidden": {}, "tools": ["search"]} for split, count in counts.items() for n in range(count)
    ]  # fmt: skip
    shas = {name: store.put(name.encode()) for name in ("adapter", "vocabulary")}
    return {
        "base_model_sha256": "a" * 64, "tokenizer_sha256": "b" * 64, "parent_adapter_sha256": shas["adapter"],
        "parent_adapter_bytes": 7, "vocabulary_sha256": shas["vocabulary"], "parameters": 1, "trainable_parameters": 1,
        "runtime": "r", "runtime_facts": {}, "formatter": "f", "environment": "evidence_search",
        "environment_version": "1", "success_definition": "s", "environment_code_sha256": "e",
        "reward_code_sha256": "w", "harness_code_sha256": "h",
        "task_set_sha256": store.put(json.dumps(tasks, sort_keys=True, separators=(",", ":")).encode()),
        "warm_start": {"recipe_sha256": "c"},
    }  # fmt: skip


def test_what_the_worker_found_is_bound(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any) -> None:
    plan = draft()
    job = inspection.request_inspection(plan, by=service_actor("test"), at=AT)
    assert job.state == "queued" and job.study == plan.study and job.execution is None
    assert inspection.request_inspection(plan, by=service_actor("test"), at=AT).pk == job.pk  # one at a time
    client = run_with(monkeypatch, job, found(settings, tmp_path))
    assert job.state == "succeeded" and client.asked[0][0] == "describe"
    bindings = inspection.inspected_bindings(job)
    preview = inspection.freeze_preview(plan, bindings)
    assert Plan.objects.get(pk=plan.pk).state == "draft"
    version = inspection.freeze_inspected(plan, by=service_actor("test"), at=AT)
    assert json.loads(bytes(version.bytes)) == json.loads(json.dumps(preview))
    with pytest.raises(AlreadyFrozen):
        inspection.request_inspection(plan, by=service_actor("test"), at=AT)


def test_what_cannot_be_loaded_is_named_and_not_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = draft()
    job = inspection.request_inspection(plan, by=service_actor("test"), at=AT)
    run_with(monkeypatch, job, RunnerFailed("no such class", boundary="EnvironmentFault", class_name="X", trace=""))
    assert (job.state, job.result) == ("failed", None) and "no such class" in job.error
    with pytest.raises(DomainError, match="no such class"):
        inspection.freeze_inspected(plan, by=service_actor("test"), at=AT)
    again = inspection.request_inspection(plan, by=service_actor("test"), at=AT)
    assert again.pk != job.pk
    run_with(monkeypatch, again, RunnerFailed("bug", boundary=None, class_name="KeyError", trace=""))
    assert again.state == "errored"


def test_the_task_set_is_stored_with_the_answer_and_by_nothing_later(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any
) -> None:
    """Looking at what a freeze would bind, in whichever way, is a read."""
    job = inspection.request_inspection(draft(), by=service_actor("test"), at=AT)
    run_with(monkeypatch, job, found(settings, tmp_path))
    assert TaskSet.objects.get().sha256 == job.result["task_set_sha256"]
    with CaptureQueriesContext(connection) as seen:
        inspection.inspected_bindings(job)
    assert seen.captured_queries and not [
        item["sql"] for item in seen.captured_queries if not item["sql"].startswith("SELECT")
    ]


def test_tasks_that_cannot_be_stored_fail_the_inspection(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any
) -> None:
    """Named by the job, and nothing of them is kept."""
    plan = draft()
    job = inspection.request_inspection(plan, by=service_actor("test"), at=AT)
    answer = found(settings, tmp_path)
    run_with(monkeypatch, job, {**answer, "task_set_sha256": blob_store().put(b'[{"key":"x"}]')})
    assert (job.state, job.result) == ("failed", None) and "tasks[0]: got fields ['key']" in job.error
    assert not TaskSet.objects.exists()


def test_an_answer_whose_task_set_is_not_stored_asks_for_another_look(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any
) -> None:
    job = inspection.request_inspection(draft(), by=service_actor("test"), at=AT)
    Job.objects.filter(pk=job.pk).update(state="succeeded", result=found(settings, tmp_path))
    job.refresh_from_db()
    with pytest.raises(DomainError, match=r"task set: got none stored .* look again"):
        inspection.inspected_bindings(job)


def test_a_later_revision_needs_another_inspection(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any
) -> None:
    job = inspection.request_inspection(draft(), by=service_actor("test"), at=AT)
    run_with(monkeypatch, job, found(settings, tmp_path))
    later = draft({"scale": "tiny"})
    assert later.draft_revision == 2 and inspection.inspection_of(later) is None
    with pytest.raises(DomainError, match="expected one"):
        inspection.freeze_inspected(later, by=service_actor("test"), at=AT)
    with pytest.raises(DomainError, match="expected 2, the newest"):
        inspection.inspected_bindings(job)


def test_a_wrong_draft_is_refused_before_a_worker_is_asked() -> None:
    with pytest.raises(PlanInvalid):
        inspection.request_inspection(draft({"arms": []}), by=service_actor("test"), at=AT)
    assert not Job.objects.exists()


def test_a_lost_worker_costs_an_attempt_and_the_last_one_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    job = inspection.request_inspection(draft(), by=service_actor("test"), at=AT)
    for attempt in (1, 2, 3):
        Job.objects.filter(pk=job.pk).update(
            state="leased", attempt=attempt, owner="dead/1", lease_until=datetime.now(UTC) - timedelta(seconds=5)
        )
        lifecycle.reap()
        job.refresh_from_db()
        assert job.state == ("queued" if attempt < 3 else "errored")
    assert "3 of 3 attempts lost" in job.error
