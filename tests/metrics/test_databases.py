"""The store on SQLite and PostgreSQL with real commits: writers at once, repeats, sealing while others write."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from evidence.verify import verify
from runs.actions.actors import service_actor
from runs.actions.tracking import create_logged_run, locked, log_parameters, set_status, set_tags, tags_of
from runs.errors import DomainError
from runs.metrics import sealing
from runs.metrics.read import data_sha256, history, load, series_of
from runs.metrics.store import LoggedPoint, log_points, seal
from runs.mlflow.filters import parse_order
from runs.mlflow.search import VIEWS, search_runs
from runs.models import MetricBatch, MetricLanding, MetricLatest, RunParameter, Study, TrackedRun
from tests.metrics.conftest import AT
from tests.runs.conftest import database as database
from tests.runs.conftest import postgres_template as postgres_template
from tests.runs.conftest import sqlite_template as sqlite_template
from workbench.blobs import BlobStore


@pytest.fixture
def head(database: BaseDatabaseWrapper) -> TrackedRun:
    actor = service_actor("tests")
    study = Study.objects.create(uid=uuid.uuid4(), slug="logs", title_en="Logs", created_at=AT, created_by=actor)
    return create_logged_run(study, "one", by=actor, at=AT)


def write(head: TrackedRun, points: list[LoggedPoint]) -> int:
    return log_points(head.run, points, source="api", actor=service_actor("tests"), at=AT).stored


def at_once(*calls: Callable[[], object]) -> list[BaseException]:
    """Run each call in a thread of its own, all begun together; their errors."""
    faults: list[BaseException] = []
    ready = threading.Barrier(len(calls))

    def one(call: Callable[[], object]) -> None:
        try:
            ready.wait(20)
            call()
        except BaseException as error:
            faults.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return faults


def test_writers_at_once_lose_and_double_nothing(head: TrackedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four writers send the same twenty batches, each also some of its own, while the run is sealed again and again."""
    monkeypatch.setattr(sealing, "SEAL_LEAST", 60)
    monkeypatch.setattr(sealing, "SEAL_POINTS", 10)

    def writer(number: int) -> Callable[[], None]:
        def work() -> None:
            for step in range(20):
                write(head, [LoggedPoint("shared", float(step), step, step), LoggedPoint("b", 1.0, step, 0)])
                write(head, [LoggedPoint(f"own{number}", float(step), step, step)])

        return work

    assert not at_once(*(writer(number) for number in range(4)))
    assert MetricBatch.objects.count() == 20 + 4 * 20
    for name in ("shared", "own0", "own3"):
        points = history(head.run, name)
        assert points.step.tolist() == list(range(20)) and points.value.tolist() == [float(s) for s in range(20)]
    assert MetricLatest.objects.get(name="shared").step == 19
    head.refresh_from_db()
    assert head.landed == sum(MetricLanding.objects.values_list("points", flat=True)) < 60 + 2


def test_two_openings_of_an_ended_run_make_one_attempt_each(head: TrackedRun) -> None:
    actor = service_actor("tests")
    set_status(head.run, "finished", by=actor, at=AT)
    again = AT + timedelta(seconds=1)
    assert not at_once(*[lambda: set_status(head.run, "running", by=actor, at=again)] * 3)
    head.refresh_from_db()
    assert (head.segment, head.status) == (1, "running")  # the first opens it, the others find it open


def test_two_values_of_one_parameter_at_once(head: TrackedRun) -> None:
    from django.db import transaction

    def log(value: str) -> Callable[[], None]:
        def work() -> None:
            with transaction.atomic():
                log_parameters(locked(head.run), {"lr": value}, at=AT)

        return work

    (fault,) = at_once(log("1"), log("2"))
    assert isinstance(fault, DomainError) and RunParameter.objects.count() == 1


def test_what_the_store_keeps_is_the_same_on_both(head: TrackedRun, tmp_path: object) -> None:
    """Non-finite values, ties, windows, tags, search and verification."""
    from django.db import transaction

    odd = [float("nan"), float("inf"), -float("inf"), 1.5, -0.0]
    write(head, [LoggedPoint("x", value, step, 7) for step, value in enumerate(odd)])
    write(head, [LoggedPoint("x", 2.0, 4, 7)])
    before = data_sha256(head.run, series_of(head.run))
    seal(head.run, at=AT)
    assert data_sha256(head.run, series_of(head.run)) != before
    (info,) = series_of(head.run)
    points = load(head.run, [info], start=1, stop=4)[info.pk]
    assert points.step.tolist() == [1, 2, 3, 4, 4] and points.flag.tolist() == [2, 3, 0, 0, 0]
    assert points.value.tolist()[2:] == [1.5, 0.0, 2.0] and MetricLatest.objects.get().value == 2.0
    with transaction.atomic():
        set_tags(locked(head.run), {"a": "1", "b": None}, at=AT)
        set_tags(locked(head.run), {"a": "2"}, at=AT)
    assert tags_of(head.run) == {"a": "2"}
    for text in ("metrics.x >= 2 and tags.a = '2'", "tags.a LIKE '_'", "metrics.x != 3", "tags.b IS NULL"):
        found = search_runs(
            [head.study_id], text, parse_order(["metrics.x DESC"]), VIEWS["ALL"], start=0, most=10, upto=0
        )
        assert found == ([head.run_id], head.run_id, False), text
    report = verify(store=BlobStore(tmp_path / "blobs"), steps=[1, 8])  # type: ignore[operator]
    assert report.ok, report.faults


def test_a_window_reads_only_the_chunks_that_reach_in(head: TrackedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    from runs.metrics import codec

    monkeypatch.setattr(sealing, "CHUNK_POINTS", 10)
    write(head, [LoggedPoint("x", float(step), step, step) for step in range(100)])
    seal(head.run, at=AT)
    read = []
    whole = codec.read_chunks
    monkeypatch.setattr(codec, "read_chunks", lambda found, count: read.extend(found) or whole(found, count))
    (info,) = series_of(head.run)
    points = load(head.run, [info], start=25, stop=39)[info.pk]
    assert points.step.tolist() == list(range(25, 40)) and len(read) == 2
    assert np.array_equal(points.value, np.arange(25.0, 40.0))
