"""A logged run with everything that its page shows, and what two native runs share, for tests of pages and rights."""

from __future__ import annotations

import math
import uuid
from datetime import datetime
from typing import Any

import zstandard

from runs.actions.actors import service_actor
from runs.actions.record_metrics import write_points
from runs.actions.tracked_files import put_artifact
from runs.actions.tracking import create_logged_run, log_parameters, set_status
from runs.metrics.store import LoggedPoint, log_points
from runs.models import ImportedRollout, LogImport, Run, Study, TrackedRun
from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.contracts.records import MetricRecord
from workbench.importers.body import rollout_value
from workbench.importers.items import Cursor, RolloutItem

PROBLEM = {
    "kind": "malformed", "file": "part/1.jsonl", "unit": "line", "number": 10, "offset": 1143, "what": "JSON",
    "got": "Expecting value", "expected": "one JSON document", "count": 1,
}  # fmt: skip


def write(run: Run, name: str, values: list[float | None], **labels: str) -> None:
    """Native points of definition ``name``, one a step: 16 trajectories and 400 tokens each."""
    records = [
        MetricRecord(f"{name}/1", "train", "train", labels, value, 16, step, step, 16 * step, 400 * step, None)
        for step, value in enumerate(values)
    ]
    write_points(run, records, segment="", at=run.created_at, wall_seconds=1.0, source=name + str(labels))


def logged(study: Study, name: str, series: dict[str, list[float]], at: datetime, *, framework: str = "") -> TrackedRun:
    """A finished run that a trainer logged, one value a step."""
    by = service_actor("tests")
    head = create_logged_run(study, name, by=by, at=at, framework=framework, tags={"mlflow.user": "mara"})
    points = [
        LoggedPoint(key, value, step, round(at.timestamp() * 1000) + 1000 * step)
        for key, values in series.items()
        for step, value in enumerate(values)
    ]
    log_points(head.run, points, source="api", actor=by, at=at)
    return set_status(head.run, TrackedRun.FINISHED, by=by, at=at)


def item(number: int, **changes: Any) -> RolloutItem:
    """A foreign rollout with tokens under one version: grade A."""
    facts: dict[str, Any] = {
        "grade": "A", "step": 3, "group_key": "q7", "prompt": "What is 2+2?", "completion": "It is 4 <b>.",
        "token_ids": [5, 6, 7], "is_policy_token": [False, True, True], "logprobs": [None, -0.25, -0.5],
        "version_start": 3, "version_end": 3, "reward": 1.0, "rewards": {"exact": 1.0, "style": None},
        "advantage": 0.5, "stop_reason": "stop", "extra": {"env": {"seed": 4}},
    }  # fmt: skip
    return RolloutItem(Cursor("part/1.jsonl", number, 40 * number), **(facts | changes))


def imported(study: Study, at: datetime, items: list[RolloutItem]) -> TrackedRun:
    """A run whose file was read in part: one line was malformed."""
    by = service_actor("tests")
    head = create_logged_run(study, "from a file", by=by, at=at, origin=Run.IMPORTED, framework="verl")
    log = LogImport.objects.create(
        uid=uuid.uuid4(), study=study, run=head.run, format="verl-rollouts", source_name="rollouts",
        source_sha256="a" * 64, state=LogImport.PARTIAL, problems=[PROBLEM], actor=by, created_at=at, updated_at=at,
        counts={"rollouts": len(items), "grades": {}, "problems": {"malformed": 1, "not_imported": 4}},
    )  # fmt: skip
    for place, one in enumerate(items):
        data = canonical_bytes(rollout_value(one))
        ImportedRollout.objects.create(
            uid=uuid.uuid4(), run=head.run, log_import=log, position=place, step=one.step, group_key=one.group_key,
            grade=one.grade, reward=one.reward, advantage=one.advantage, tokens=2, stop_reason=one.stop_reason,
            sha256=sha256_hex(data), body=zstandard.ZstdCompressor(write_content_size=True).compress(data),
        )  # fmt: skip
    TrackedRun.objects.filter(pk=head.pk).update(partial=True)
    head.refresh_from_db()
    return head


def full(study: Study, at: datetime) -> TrackedRun:
    """A logged run with parameters, a file, an infinite value and two attempts."""
    by = service_actor("tests")
    head = logged(study, "grpo on trl", {"reward": [0.1, 0.4, math.inf], "kl": [0.0, 0.1, 0.2]}, at, framework="trl")
    set_status(head.run, TrackedRun.RUNNING, by=by, at=at, reason="the node came back")
    log_points(head.run, [LoggedPoint("reward", 0.6, 2, 5), LoggedPoint("reward", 0.7, 3, 6)], source="api", actor=by,
               at=at)  # fmt: skip
    head = TrackedRun.objects.get(pk=head.pk)
    log_parameters(head, {"learning_rate": "1e-5", "config": "long " * 80}, at=at)
    put_artifact(head.run, "out/a.txt", [b"bytes"], limit=100, at=at)
    return head
