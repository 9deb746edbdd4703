"""A probe job with the real engine and the embedded policy: it thinks before it acts, and the probe shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from django.utils import timezone

from evidence.verify import verify
from runs.actions.execution import start_execution
from runs.actions.inspection import freeze_inspected, request_inspection
from runs.actions.record_probe import parse_probe, probe_points
from runs.models import Document, Job, MetricPoint
from runs.storage import blob_store
from tests.runs.scripted import AT, Lab
from tests.warm import warm_base_model as warm_base_model
from tests.warm import warm_cache
from tests.worker.test_probe_jobs import PROBED
from worker import lifecycle
from worker.engine import service
from worker.engine.warmstart import BaseModel

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


class RealEngine:
    """The engine's own entry point, in this process."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache

    def call(self, op: str, spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        return service.handle(op, spec, store=blob_store(), cache_dir=self.cache, progress=lambda value: None)


def test_a_probe_of_the_embedded_policy(lab: Lab, monkeypatch: pytest.MonkeyPatch, warm_base_model: BaseModel) -> None:
    """Two tasks, two repeats, at most two decisions, five trials each: whole, verified, equal when asked again."""
    torch.set_num_threads(1)
    monkeypatch.setattr(lifecycle, "engine_client", lambda threads: RealEngine(warm_cache()))
    probe = {"tasks": 2, "repeats": 2, "every": 1, "decisions": 2}
    draft = lab.draft(**{**PROBED, "probe": probe})
    lifecycle.execute(request_inspection(draft, by=lab.actor, at=AT).pk)
    version = freeze_inspected(draft, by=lab.actor, at=timezone.now())
    execution = start_execution(version, by=lab.actor, at=AT, provenance={"commit": None})
    assert lab.step(execution, only=":probe:0") is not None
    job = Job.objects.get(key=f"{execution.uid}:probe:0")
    assert job.state == "succeeded", job.error
    record = parse_probe(bytes(Document.objects.get(kind="probe").bytes))
    assert record.unavailable == () and len(record.tasks) == 2
    decisions = [item for task in record.tasks for item in task.decisions]
    assert 2 <= len(decisions) <= 4
    assert all(trial.state == "measured" for item in decisions for trial in item.trials)
    values = {
        (point.series.definition, point.series.labels.get("intervention", "")): point.value
        for point in MetricPoint.objects.select_related("series")
    }
    assert values["l6.think_share/1", ""] == 1.0  # it thinks before every action
    assert values["l6.reproduced/1", ""] == 1.0  # same segment, same noise: the same continuation
    assert values["l6.action_unchanged/1", "corrupt"] < 0.5  # the action follows the segment, so it is no decoration
    assert values["l6.corruption_followed/1", ""] >= 0.5
    assert verify(store=blob_store()).faults == []
    points = probe_points(execution)
    assert points is not None and points[0].state == "measured"
