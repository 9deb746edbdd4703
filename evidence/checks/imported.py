"""Step 8, imports: each rollout's bytes hashed again and its columns built from them; counts against receipts."""

from __future__ import annotations

from typing import Any

from evidence.report import StepLog
from runs.actions.import_batch import is_partial, rollout_body, rollout_uid, rollouts_sha256
from runs.actions.imports import ENDED
from runs.models import ImportedRollout, LogImport, Receipt
from workbench.contracts.canonical import digest, parse_canonical
from workbench.importers.body import columns_of, grade_of

CHUNK = 50
ROLLOUTS, IMPORTS = "runs_importedrollout", "runs_logimport"


def check_imports(log: StepLog) -> None:
    """Every import with its rollouts, in the order of positions."""
    for row in LogImport.objects.select_related("study").order_by("pk").iterator(chunk_size=CHUNK):
        with log.reading(IMPORTS, row.uid):
            _import(log, row)


def _import(log: StepLog, row: LogImport) -> None:
    log.count()
    grades: dict[str, int] = {}
    expected = 0
    for rollout in row.rollouts.order_by("position").iterator(chunk_size=CHUNK):
        log.count()
        if rollout.position != expected:
            log.problem(ROLLOUTS, rollout.uid, "position", expected=expected, got=rollout.position)
        expected = rollout.position + 1
        grades[rollout.grade] = grades.get(rollout.grade, 0) + 1
        with log.reading(ROLLOUTS, rollout.uid):
            _rollout(log, row, rollout)
    for name, found in (("rollouts", expected), ("grades", grades)):
        if (row.counts.get(name) or type(found)()) != found:
            log.problem(IMPORTS, row.uid, f"counts.{name}", expected=found, got=row.counts.get(name))
    if row.state in ENDED:
        _ended(log, row)


def _rollout(log: StepLog, row: LogImport, rollout: ImportedRollout) -> None:
    body = rollout_body(rollout)  # hashed again; the error names the row
    wanted: dict[str, Any] = {
        **columns_of(body), "uid": rollout_uid(row, rollout.position), "run_id": row.run_id, "grade": grade_of(body),
    }  # fmt: skip
    for name, value in wanted.items():
        if getattr(rollout, name) != value:
            log.problem(ROLLOUTS, rollout.uid, name.removesuffix("_id"), expected=value, got=getattr(rollout, name))


def _ended(log: StepLog, row: LogImport) -> None:
    """An ended import says what its receipt says."""
    partial = LogImport.PARTIAL if is_partial(row) else LogImport.DONE
    if row.state != partial:
        log.problem(IMPORTS, row.uid, "state", expected=partial, got=row.state)
    receipt = Receipt.objects.filter(kind="import.ended", subject_uid=row.uid).order_by("-pk").first()
    if receipt is None:
        log.problem(IMPORTS, row.uid, "state", expected="a receipt of its end", got=None)
        return
    said = parse_canonical(bytes(receipt.bytes))["body"]
    stored = {
        "state": row.state, "format": row.format, "source_sha256": row.source_sha256, "counts": row.counts,
        "problems_sha256": digest(row.problems), "rollouts_sha256": rollouts_sha256(row),
    }  # fmt: skip
    for name, value in stored.items():
        if said.get(name) != value:
            log.problem(IMPORTS, row.uid, name.removesuffix("_sha256"), expected=said.get(name), got=value)
