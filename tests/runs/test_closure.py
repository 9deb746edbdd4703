"""The closure manifest: equal for equal executions, another one for one changed capture, and closed once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import DjangoDbBlocker

from runs.actions.closure import build_closure, close_execution, closure_of
from runs.errors import StaleTransition
from runs.models import Anchor, Document, EvaluationItem, Execution, Job, Turn
from runs.storage import blob_store
from tests.runs import databases, engine_double
from tests.runs.engine_double import Script
from tests.runs.scripted import AT, Lab
from tests.runs.test_advance import ALONE
from workbench.contracts.canonical import parse_canonical
from workbench.contracts.capture import Capture
from workbench.contracts.jobs import CollectSpec


@contextmanager
def fresh(template: Path, folder: Path, blocker: DjangoDbBlocker, settings: Any) -> Iterator[None]:
    """A database and a store that nobody has used."""
    folder.mkdir()
    settings.BLOB_ROOT = folder / "blobs"
    with blocker.unblock(), databases.copied_sqlite(template, folder):
        yield


def closed(lab: Lab) -> tuple[str, dict[str, Any]]:
    execution = lab.start(**ALONE)
    lab.drive(execution)
    document = closure_of(execution)
    assert document is not None
    return document.sha256, parse_canonical(bytes(document.bytes))


_capture = engine_double._capture


def _other_capture(spec: CollectSpec, uid: str, slot: int, seed: str) -> bytes:
    data = _capture(spec, uid, slot, seed)
    if spec.purpose != "evaluate" or spec.policy.policy_version != 2:
        return data
    capture = Capture.from_bytes(data)
    capture.generated_ids[0] += 1
    return capture.to_bytes()


def test_two_fresh_databases_close_alike_and_one_changed_capture_shows(
    lab: Lab, sqlite_template: Path, tmp_path: Path, django_db_blocker: DjangoDbBlocker, settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The last run differs in one generated id of one turn of the final policy's evaluation; no outcome changes."""
    found = []
    monkeypatch.setattr("worker.lifecycle.engine_client", lambda threads: engine_double.Engine(blob_store(), Script()))
    for name in ("first", "second", "changed"):
        if name == "changed":
            monkeypatch.setattr(engine_double, "_capture", _other_capture)
        with fresh(sqlite_template, tmp_path / name, django_db_blocker, settings):
            found.append(closed(lab))
    (one, first), (two, second), (three, third) = found
    assert one == two and first == second
    assert one != three and first["aggregate_sha256"] == third["aggregate_sha256"]
    assert first["runs"] == third["runs"]  # training is untouched
    parent, final = first["evaluations"], third["evaluations"]
    assert sum(a != b for a, b in zip(parent, final, strict=True)) == 1


@pytest.mark.django_db
def test_counts_and_hashes_agree_with_what_is_stored(lab: Lab) -> None:
    """2 collections, 2 updates, 2 evaluation shards: 6 jobs beside the closing one; 1 item a policy; 6 turns."""
    execution = lab.start(**ALONE)
    lab.drive(execution)
    document = closure_of(execution)
    assert document is not None
    body = parse_canonical(bytes(document.bytes))
    assert body["counts"] == {"jobs": 6, "items": 2, "captures": 6}
    assert body["counts"]["jobs"] == Job.objects.count() - 1
    assert body["counts"]["items"] == EvaluationItem.objects.count()
    assert body["counts"]["captures"] == Turn.objects.count()
    hashes = set(Document.objects.values_list("sha256", flat=True))
    assert {item["manifest_sha256"] for item in body["runs"] + body["evaluations"]} | {
        body["aggregate_sha256"]
    } <= hashes
    assert Anchor.objects.count() == 1
    text = bytes(document.bytes).decode()
    assert not [word for word in ("host", "pid", "2020-", "created", "/tmp") if word in text]


@pytest.mark.django_db
def test_an_execution_closes_once_and_only_while_it_runs(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    lab.drive(execution)
    documents = Document.objects.count()
    for state in ("closed", "paused", "interrupted", "cancelled"):
        Execution.objects.update(state=state)
        with pytest.raises(Exception) as caught, transaction.atomic():
            close_execution(execution, actor=lab.actor, at=AT)
        assert isinstance(caught.value, StaleTransition) or "second one" in str(caught.value)
    assert Document.objects.count() == documents and Anchor.objects.count() == 1
    with pytest.raises(Exception, match="second one"), transaction.atomic():
        build_closure(execution)
    assert connection.in_atomic_block
