"""Imports under verification: a sound one passes; each forged row is named with its column."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from django.db import connection

from evidence.verify import verify
from runs.actions.import_batch import rollout_body
from runs.actions.imports import begin_import, run_import
from runs.models import Actor, ImportedRollout, LogImport, Study
from tests.importers import samples
from tests.importers.conftest import AT
from workbench.blobs import BlobStore
from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.db import drop_triggers, install_triggers


@pytest.fixture
def done(study: Study, by: Actor, tmp_path: Path) -> LogImport:
    """Three rollouts of grade A, one of B; a rollout with nan beside them in an import of its own."""
    (tmp_path / "nan").mkdir()
    row = samples.tinker_row(0, reward=float("nan"))
    other = begin_import(study, samples.write_lines(tmp_path / "nan" / "rows.jsonl", [row]), by=by, at=AT)
    run_import(other.pk, clock=lambda: AT)
    begun = begin_import(study, samples.tinker(tmp_path), by=by, at=AT)
    return run_import(begun.pk, clock=lambda: AT)


def faults(tmp_path: Path) -> set[str]:
    report = verify(store=BlobStore(tmp_path / "blobs"), steps=[1, 4, 5, 8])
    return {f"{item.table}.{item.column}" for item in report.faults}


def forge(statement: str, *values: object) -> None:
    """Change rows behind the guards' back."""
    drop_triggers(connection)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
    install_triggers(connection)


def test_a_sound_import_has_no_fault(done: LogImport, tmp_path: Path) -> None:
    assert faults(tmp_path) == set() and ImportedRollout.objects.count() == 5


def test_an_import_on_its_way_has_no_fault(study: Study, by: Actor, tmp_path: Path) -> None:
    begun = begin_import(study, samples.verl(tmp_path), by=by, at=AT)
    run_import(begun.pk, clock=lambda: AT, enough=lambda: True)
    assert faults(tmp_path) == set()


ONE = "(SELECT MAX(id) FROM runs_importedrollout)"


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (f"UPDATE runs_importedrollout SET reward = 7 WHERE id = {ONE}", "runs_importedrollout.reward"),
        (f"UPDATE runs_importedrollout SET reward = NULL WHERE id = {ONE}", "runs_importedrollout.reward"),
        (f"UPDATE runs_importedrollout SET step = 1 WHERE id = {ONE}", "runs_importedrollout.step"),
        (f"UPDATE runs_importedrollout SET tokens = 9 WHERE id = {ONE}", "runs_importedrollout.tokens"),
        (f"UPDATE runs_importedrollout SET group_key = 'x' WHERE id = {ONE}", "runs_importedrollout.group_key"),
        (f"UPDATE runs_importedrollout SET grade = 'A' WHERE id = {ONE}", "runs_importedrollout.grade"),
        (f"UPDATE runs_importedrollout SET position = 9 WHERE id = {ONE}", "runs_importedrollout.position"),
        (f"UPDATE runs_importedrollout SET body = x'00' WHERE id = {ONE}", "runs_importedrollout.bytes"),
        (f"UPDATE runs_importedrollout SET sha256 = '{'0' * 64}' WHERE id = {ONE}", "runs_importedrollout.bytes"),
        (f"DELETE FROM runs_importedrollout WHERE id = {ONE}", "runs_logimport.counts.rollouts"),
        ("UPDATE runs_logimport SET state = 'partial'", "runs_logimport.state"),
        ("UPDATE runs_logimport SET format = 'inspect'", "runs_logimport.format"),
        ("UPDATE runs_logimport SET source_sha256 = 'a'", "runs_logimport.source"),
        ("""UPDATE runs_logimport SET problems = '[{"kind": "refused"}]'""", "runs_logimport.problems"),
    ],
)  # fmt: skip
def test_a_forged_row_is_named(done: LogImport, tmp_path: Path, statement: str, named: str) -> None:
    forge(statement)
    assert named in faults(tmp_path)


def test_a_rollout_written_anew_with_its_hash_is_named(done: LogImport, tmp_path: Path) -> None:
    """Body, hash and columns agree, and the receipt of the import's end does not."""
    row = done.rollouts.order_by("position").last()
    assert row is not None
    data = canonical_bytes(rollout_body(row) | {"reward": 99.0})
    forge(
        "UPDATE runs_importedrollout SET body = %s, sha256 = %s, reward = 99 WHERE id = %s",
        zstandard.compress(data), sha256_hex(data), row.pk,
    )  # fmt: skip
    assert faults(tmp_path) == {"runs_logimport.rollouts"}
