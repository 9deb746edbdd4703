"""Verification of everything stored, as a numbered list.

 (1) receipt chains: hashes, order, links, heads, anchors
 (2) plan versions: canonical bytes, hash, arms and pairs that the bytes resolve to; task sets
 (3) documents: canonical bytes, hash, and what receipts say was recorded
 (4) rows: every projected row equals its document; none missing, none extra
 (5) blobs: present and hashed again, or tombstoned
 (6) captures: hash and lengths against turns
 (7) numbers: rewards, statistics, advantages, eligibility, facts, credits computed again
 (8) metric points: equal to the records that they are projected from
 (9) closures: manifests and counts built again
(10) replay: what only the environment can compute again, where a callback is given

What it does not do: it trusts no row, but it cannot see a history that was replaced as a whole,
receipts and anchors included. That takes a copy of an anchor kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

from evidence.checks.blobs import check_blobs
from evidence.checks.captures import check_captures
from evidence.checks.chains import check_chains
from evidence.checks.closures import check_closures
from evidence.checks.documents import check_documents
from evidence.checks.metrics import check_metrics
from evidence.checks.numbers import check_numbers
from evidence.checks.plans import check_plans
from evidence.checks.replay import Recompute, check_replay
from evidence.checks.rows import check_rows
from evidence.report import StepLog, VerifyReport
from workbench.blobs import BlobStore

STEPS = {
    1: "receipt chains",
    2: "plans and task sets",
    3: "documents",
    4: "rows",
    5: "blobs",
    6: "captures",
    7: "numbers",
    8: "metric points",
    9: "closures",
    10: "replay",
}


def verify(
    *,
    store: BlobStore,
    recompute: Recompute | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:
    """Check everything and name every disagreement. Changes nothing; reads in chunks.

    ``recompute`` None leaves step 10 out of the report. ``on_progress`` receives (step, things checked).
    """
    report = VerifyReport({number: name for number, name in STEPS.items() if number < 10 or recompute is not None})

    def log(step: int) -> StepLog:
        return StepLog(report, step, on_progress)

    check_chains(log(1))  # (1)
    check_plans(log(2), store)  # (2)
    check_documents(log(3))  # (3)
    check_rows(log(4))  # (4)
    check_blobs(log(5), store)  # (5)
    check_captures(log(6), store)  # (6)
    check_numbers(log(7))  # (7)
    check_metrics(log(8))  # (8)
    check_closures(log(9))  # (9)
    if recompute is not None:
        check_replay(log(10), store, recompute)  # (10)
    return report
