"""verify: a row of a tried group that says something else is named by table and column; so is a forged document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from pytest_django import DjangoDbBlocker

from evidence.checks.trials import check_trial_numbers, check_trial_rows
from evidence.report import StepLog, VerifyReport
from runs.actions.record_trials import parse_trials
from runs.models import Document, Execution, Intervention, Trial, TrialSet
from runs.storage import blob_store
from tests.runs import trials_double
from tests.runs.engine_double import Engine
from tests.runs.scripted import Lab
from tests.worker.test_trial_jobs import TRIED
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.trials import GroupTrials, TestObservation, pack_snapshots
from workbench.contracts.wire import record_bytes
from workbench.db import drop_triggers, install_triggers
from worker import lifecycle

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def driven(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The store of a whole execution of two tried groups, in a transaction that each test nests in."""
    store, lab = tmp_path_factory.mktemp("trials"), Lab()
    lab.script.components = trials_double.components
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock(), transaction.atomic():
        patch.setattr(settings, "BLOB_ROOT", store)
        patch.setattr(lifecycle, "engine_client", lambda threads: Engine(blob_store(), lab.script))
        patch.setattr("runs.dispatch.app.send_task", lambda *_, **__: None)
        lab.drive(lab.start(**TRIED))
        yield store
        transaction.set_rollback(True)


@pytest.fixture
def execution(driven: Path, db: None, monkeypatch: pytest.MonkeyPatch) -> Execution:
    monkeypatch.setattr(settings, "BLOB_ROOT", driven)
    return Execution.objects.get()


def drift() -> set[tuple[str, str]]:
    """(table without its app, column) of everything that steps 4 and 7 name about trials."""
    report = VerifyReport({4: "rows", 7: "numbers"})
    check_trial_rows(StepLog(report, 4))
    check_trial_numbers(StepLog(report, 7), blob_store())
    return {(item.table.removeprefix("runs_"), item.column) for item in report.problems}


def change(statement: str, *values: Any) -> None:
    """What somebody with the database file can do."""
    tables = [TrialSet, Intervention, Trial, Document]
    drop_triggers(connection, tables)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
    install_triggers(connection, tables)


def test_an_honest_group_has_no_drift(execution: Execution) -> None:
    assert drift() == set()


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE runs_intervention SET difference = 1.0 WHERE slot = 0", ("intervention", "difference")),
        ("UPDATE runs_intervention SET selected = 1 WHERE slot = 1", ("intervention", "selected")),
        ("UPDATE runs_intervention SET without_utility = 0.25 WHERE slot = 0", ("intervention", "without_utility")),
        ("UPDATE runs_intervention SET status = 'no_eligible_block', difference = NULL", ("intervention", "status")),
        ("UPDATE runs_intervention SET blocks = '[]' WHERE slot = 0", ("intervention", "blocks")),
        ("UPDATE runs_intervention SET touched_share = 0.5 WHERE slot = 0", ("intervention", "touched_share")),
        ("UPDATE runs_intervention SET replays_agree = 3", ("intervention", "replays_agree")),
        ("UPDATE runs_trial SET utility = 1.0 WHERE kind = 'intervention'", ("trial", "utility")),
        ("UPDATE runs_trial SET observed = '[]' WHERE kind = 'original'", ("trial", "observed")),
        ("UPDATE runs_trial SET level = '{}' WHERE kind = 'intervention'", ("trial", "level")),
        ("UPDATE runs_trial SET service_s = 0.001 WHERE kind = 'intervention'", ("trial", "service_s")),
        ("UPDATE runs_trial SET queue_s = 1 WHERE kind = 'original'", ("trial", "queue_s")),
        ("UPDATE runs_trialset SET mode = 'select'", ("trialset", "mode")),
        ("UPDATE runs_trialset SET seed = '1'", ("trialset", "seed")),
        ("UPDATE runs_trialset SET unavailable = 'job errored'", ("trialset", "unavailable")),
        ("UPDATE runs_trialset SET record_sha256 = '0'", ("trialset", "record_sha256")),
        ("DELETE FROM runs_trial WHERE kind = 'original'", ("trial", "id")),
    ],
)
def test_a_changed_row_is_named_by_its_column(execution: Execution, statement: str, named: tuple[str, str]) -> None:
    change(statement)
    assert named in drift()


def test_a_set_without_its_document_and_a_group_without_its_set_are_named(execution: Execution) -> None:
    """Row and document gone: the group that was trained on lacks its trials. Document alone: the row is extra."""
    first, second = TrialSet.objects.order_by("pk")
    change("DELETE FROM runs_document WHERE kind = 'trials' AND sha256 = %s", first.record_sha256)
    assert drift() == {("trialset", "uid")}
    for table in ("trial", "intervention"):
        change(f"DELETE FROM runs_{table} WHERE trial_set_id IN (%s, %s)", first.pk, second.pk)
    change("DELETE FROM runs_trialset")
    change("DELETE FROM runs_document WHERE kind = 'trials'")
    assert drift() == {("trialset", "group")}


def forge(edit: Callable[[GroupTrials], GroupTrials]) -> set[tuple[str, str]]:
    """Write a document of other content with the right hash, and its rows with it; what step 7 names."""
    document = Document.objects.filter(kind="trials").order_by("pk")[0]
    data = record_bytes(edit(parse_trials(bytes(document.bytes))))
    change("UPDATE runs_document SET bytes = %s, sha256 = %s WHERE id = %s", data, sha256_hex(data), document.pk)
    report = VerifyReport({7: "numbers"})
    check_trial_numbers(StepLog(report, 7), blob_store())
    return {(item.table.removeprefix("runs_"), item.column) for item in report.problems}


def first_slot(**values: Any) -> Callable[[GroupTrials], GroupTrials]:
    return lambda record: replace(
        record, interventions=(replace(record.interventions[0], **values), *record.interventions[1:])
    )


def trial_of(kind: str, **values: Any) -> Callable[[GroupTrials], GroupTrials]:
    return lambda record: replace(
        record, trials=tuple(replace(item, **values) if item.kind == kind else item for item in record.trials)
    )


MENDED = tuple(TestObservation(name, "PASSED", None, "") for name in ("f1", "f2", "p"))


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (first_slot(difference=1.0), ("intervention", "difference")),
        (first_slot(original_utility=1.0), ("intervention", "original_utility")),
        (first_slot(selected_tokens=9), ("intervention", "selected_tokens")),
        (first_slot(without_tree_sha256="0" * 64), ("intervention", "without_tree_sha256")),
        (first_slot(final_tree_sha256="0" * 64), ("intervention", "final_tree_sha256")),
        (first_slot(is_empty_patch=False), ("intervention", "is_empty_patch")),
        (first_slot(final_paths=7), ("intervention", "final_paths")),
        (first_slot(status="trial_incomplete", difference=None), ("intervention", "status")),
        (first_slot(status="no_eligible_block", difference=None, selected=None, selected_tokens=None),
         ("intervention", "status")),
        (trial_of("intervention", utility=1.0, success=True), ("trial", "utility")),
        (trial_of("original", observed=MENDED, utility=1.0, success=True), ("intervention", "original observed")),
        (trial_of("intervention", tree_sha256="0" * 64), ("intervention", "intervention tree_sha256")),
        (lambda record: replace(record, seed="12"), ("trialset", "seed")),
        (lambda record: replace(record, settings={**record.settings, "mode": "select"}), ("trialset", "settings")),
        (lambda record: replace(record, fail_to_pass=("f1",)), ("trial", "utility")),
        (lambda record: replace(record, ordinal=9), ("trialset", "ordinal")),
    ],
)  # fmt: skip
def test_a_forged_document_is_computed_again_and_named(
    execution: Execution, edit: Callable[[GroupTrials], GroupTrials], named: tuple[str, str]
) -> None:
    """The hash is right and the record well formed: only computing it again shows it."""
    assert named in forge(edit)


def test_another_draw_is_named(execution: Execution) -> None:
    """One eligible block only: a drawn block that the record denies changes what was selected."""
    gone = first_slot(
        selected=None, selected_tokens=None, without_tree_sha256=None, status="no_original_utility", difference=None
    )
    assert ("intervention", "selected") in forge(gone)


def test_a_changed_snapshot_is_named(execution: Execution) -> None:
    """Other trees under another name: final tree, blocks and the tree without the block no longer follow."""
    row = Intervention.objects.order_by("pk")[0]
    others = Intervention.objects.filter(trial_set=row.trial_set)
    trees = {str(item.trajectory.uid): [{"a.py": sha256_hex(b"x")}, {"a.py": sha256_hex(b"y")}] for item in others}
    name = blob_store().put(pack_snapshots(trees, {sha256_hex(data): data for data in (b"x", b"y")}))
    found = forge(lambda record: replace(record, snapshots_sha256=name))
    assert {("intervention", "final_tree_sha256"), ("intervention", "blocks[0].before")} <= found


def test_history_of_trials_refuses_every_change(execution: Execution) -> None:
    for table in (TrialSet, Intervention, Trial):
        name = table._meta.db_table
        for statement in (f"UPDATE {name} SET id = id", f"DELETE FROM {name}"):
            with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(statement)
