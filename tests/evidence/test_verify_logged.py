"""Logged runs under verification: a sound one passes; each forged row is named with its column."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from evidence.verify import verify
from runs.actions.actors import service_actor
from runs.actions.tracked_files import put_artifact
from runs.actions.tracking import create_logged_run, set_deleted, set_status
from runs.metrics.store import LoggedPoint, log_points
from runs.models import MetricBatch, MetricChunk, MetricLanding, Study, TrackedRun
from tests.metrics.conftest import AT
from workbench.blobs import BlobStore
from workbench.db import drop_triggers, install_triggers

pytestmark = pytest.mark.django_db


@pytest.fixture
def head(db: None, settings: object, tmp_path: Path) -> TrackedRun:
    """Two attempts: the first sealed, with one point that was sent twice, the second in landing rows; one file."""
    settings.BLOB_ROOT = tmp_path / "blobs"  # type: ignore[attr-defined]
    actor = service_actor("tests")
    study = Study.objects.create(uid=uuid.uuid4(), slug="logs", title_en="Logs", created_at=AT, created_by=actor)
    head = create_logged_run(study, "one", by=actor, at=AT)

    def write(*points: LoggedPoint) -> None:
        log_points(head.run, points, source="api", actor=actor, at=AT)

    write(LoggedPoint("b", 1.0, 2, 2), LoggedPoint("a", 2.0, 0, 1))
    write(LoggedPoint("a", 2.0, 0, 1), LoggedPoint("a", float("nan"), 1, 3))
    set_status(head.run, "finished", by=actor, at=AT + timedelta(seconds=1))
    set_status(head.run, "running", by=actor, at=AT + timedelta(seconds=2))
    write(LoggedPoint("c", 5.0, 3, 9), LoggedPoint("a", 4.0, 3, 9))
    set_deleted(head.run, True, by=actor, at=AT + timedelta(seconds=3))
    put_artifact_of(head)
    head.refresh_from_db()
    return head


def put_artifact_of(head: TrackedRun) -> None:
    set_deleted(head.run, False, by=service_actor("tests"), at=AT + timedelta(seconds=4))
    put_artifact(head.run, "a.txt", [b"some", b"bytes"], limit=100, at=AT)


def faults(tmp_path: Path) -> list[str]:
    report = verify(store=BlobStore(tmp_path / "blobs"), steps=[1, 4, 5, 8])
    return [f"{item.table}.{item.column}" for item in report.faults]


def test_a_sound_run_has_no_fault(head: TrackedRun, tmp_path: Path) -> None:
    """Four points arrived in two batches and were sealed as three; two wait in a landing row."""
    assert faults(tmp_path) == []
    assert sum(MetricChunk.objects.values_list("points", flat=True)) == 3
    assert (head.segment, head.landed, MetricBatch.objects.count()) == (1, 2, 3)


def forge(statement: str) -> Callable[[], None]:
    def change() -> None:
        drop_triggers(connection)
        with connection.cursor() as cursor:
            cursor.execute(statement)
        install_triggers(connection)

    return change


_CHUNK = "(SELECT MIN(id) FROM runs_metricchunk)"


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (f"UPDATE runs_metricchunk SET sha256 = '{'0' * 64}' WHERE id = {_CHUNK}", "runs_metricchunk.sha256"),
        (f"UPDATE runs_metricchunk SET points = points + 1 WHERE id = {_CHUNK}", "runs_metricchunk.points"),
        (f"UPDATE runs_metricchunk SET last_step = 99 WHERE id = {_CHUNK}", "runs_metricchunk.last_step"),
        (f"UPDATE runs_metricchunk SET payload = x'00' WHERE id = {_CHUNK}", "runs_metricchunk.payload"),
        (f"UPDATE runs_metricchunk SET ordinal = 7 WHERE id = {_CHUNK}", "runs_metricchunk.ordinal"),
        (f"DELETE FROM runs_metricchunk WHERE id = {_CHUNK}", "runs_metricchunk.points"),
        ("UPDATE runs_metricbatch SET points = 7 WHERE id = (SELECT MIN(id) FROM runs_metricbatch)",
         "runs_metricbatch.points"),
        ("DELETE FROM runs_metricbatch WHERE id = (SELECT MIN(id) FROM runs_metricbatch)", "runs_metricbatch.batches"),
        ("UPDATE runs_metricseries SET name = 'z' WHERE name = 'b'", "runs_metricseries.uid"),
        ("UPDATE runs_metriclanding SET points = 9", "runs_metriclanding.points"),
        ("UPDATE runs_metriclatest SET value = 9 WHERE name = 'c'", "runs_metriclatest.value"),
        ("DELETE FROM runs_metriclatest WHERE name = 'b'", "runs_metriclatest.series"),
        ("UPDATE runs_trackedrun SET landed = 0", "runs_trackedrun.landed"),
        ("UPDATE runs_trackedrun SET status = 'failed'", "runs_trackedrun.status"),
        ("UPDATE runs_trackedrun SET segment = 4", "runs_trackedrun.segment"),
        ("UPDATE runs_trackedrun SET deleted = TRUE", "runs_trackedrun.deleted"),
        ("UPDATE runs_runartifact SET bytes = 3", "runs_runartifact.bytes"),
    ],
)  # fmt: skip
def test_a_forged_row_is_named(head: TrackedRun, tmp_path: Path, statement: str, named: str) -> None:
    forge(statement)()
    assert named in faults(tmp_path)


def test_a_changed_value_in_a_landing_row_is_named(head: TrackedRun, tmp_path: Path) -> None:
    row = MetricLanding.objects.get()
    payload = bytearray(bytes(row.payload))
    payload[24] ^= 1  # a bit of the first value
    MetricLanding.objects.filter(pk=row.pk).update(payload=bytes(payload))
    assert "runs_metriclanding.payload" in faults(tmp_path)


def test_a_chunk_sealed_anew_over_other_values_is_named(head: TrackedRun, tmp_path: Path) -> None:
    """Payload and hash agree, and the receipt of the sealing does not."""
    from runs.metrics import codec

    row = MetricChunk.objects.select_related("series").order_by("pk").first()
    assert row is not None
    uid, points = codec.read_chunk(row.payload)
    payload, sha256 = codec.write_chunk(uid, codec.Points(points.step, points.time_ms, points.value + 1, points.flag))
    drop_triggers(connection)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_metricchunk SET payload = %s, sha256 = %s WHERE id = %s", [payload, sha256, row.pk])
    install_triggers(connection)
    assert "runs_metricchunk.sha256" in faults(tmp_path)
