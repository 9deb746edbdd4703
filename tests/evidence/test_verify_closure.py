"""Step 9 on a study that ran to its end."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction

from evidence.report import VerifyReport
from evidence.verify import verify
from runs.models import Document, Execution, Receipt
from runs.storage import blob_store
from tests.runs.scripted import Lab, lab
from workbench.contracts.canonical import canonical_bytes, parse_json, sha256_hex
from workbench.db import drop_triggers

__all__ = ["lab"]


def faults(report: VerifyReport) -> set[tuple[int, str, str]]:
    return {(item.step, item.table, item.column) for item in report.faults}


def drop(statement: str, *values: Any) -> None:
    drop_triggers(connection)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        assert cursor.rowcount >= 1


@pytest.mark.django_db
def test_closed_study_verifies_and_damage_is_named(lab: Lab) -> None:
    """Closure, run manifests, evaluation manifests and aggregate are built again and equal what is stored.

    Then, each taken back afterwards: a count, a run manifest, the aggregate, a removed closure, a
    job that disappeared, and an evaluation item under another condition.
    """
    execution: Execution = lab.start()
    lab.drive(execution)
    execution.refresh_from_db()
    assert execution.state == "closed"
    report = verify(store=blob_store(), steps=[1, 2, 3, 4, 5, 8, 9])
    assert report.problems == []
    assert report.checked[9] > 10

    def forge(kind: str, field: str) -> None:
        document = Document.objects.filter(kind=kind).first()
        assert document is not None
        value = parse_json(bytes(document.bytes))
        value[field] = {"jobs": 1} if field == "counts" else "changed"
        data = canonical_bytes(value)
        drop("UPDATE runs_document SET bytes = %s, sha256 = %s WHERE id = %s", data, sha256_hex(data), document.pk)

    cases: list[tuple[Any, tuple[int, str, str]]] = [
        (lambda: forge("closure", "counts"), (9, "runs_document", "counts")),
        (lambda: forge("closure", "aggregate_sha256"), (9, "runs_document", "sha256")),
        (lambda: forge("run_manifest", "arm"), (9, "runs_document", "sha256")),
        (lambda: forge("aggregate", "schema"), (9, "runs_document", "sha256")),
        (lambda: drop("DELETE FROM runs_document WHERE kind = 'closure'"), (9, "runs_execution", "state")),
        (lambda: drop("UPDATE runs_runhead SET batch = batch + 1"), (9, "runs_document", "sha256")),
        (lambda: drop("UPDATE runs_job SET kind = 'close_execution'"), (9, "runs_document", "counts")),
        (lambda: drop("UPDATE runs_evaluationitem SET repeat = repeat + 7"), (9, "runs_document", "sha256")),
    ]
    for damage, expected in cases:
        with transaction.atomic():
            damage()
            assert expected in faults(verify(store=blob_store(), steps=[9])), expected
            transaction.set_rollback(True)
    assert verify(store=blob_store(), steps=[9]).ok
    assert Receipt.objects.filter(kind="execution.closed").count() == 1
