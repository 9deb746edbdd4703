"""Verification of everything stored, as a numbered list.

 (1) receipt chains: hashes, order, links, heads; an anchor for each closing; names of actors
 (2) plan versions: canonical bytes, hash, arms and pairs that the bytes resolve to; task sets; names, texts and
     states of plans against receipts and frozen bytes; what was run, against the frozen plan
 (3) documents: canonical bytes, hash, and what receipts say was recorded
 (4) rows: every projected row equals its document; none missing, none extra; heads equal their history
 (5) blobs: present and hashed again, or tombstoned
 (6) captures: hash and lengths against turns; traces and old log-probabilities against updates
 (7) numbers: rewards, statistics, advantages, eligibility, facts, credits computed again
 (8) metric points: equal to their records, and to what groups, items, updates, traces and probes give
     and logged points: chunks hashed again, batches counted, newest points and heads built again
 (9) closures: manifests and counts built again
(10) replay: what only the environment can compute again, where a callback is given
(11) evidence records: every row says what its receipt says, none missing, none extra; heads equal their history
(12) sources: held bytes hashed again (drifted, missing); claimed bytes stay claimed; summaries of trials made again
(13) excerpts: found exactly once in the bytes that they were taken from; where they stand now
(14) figures: recomputed from what they are bound to, named by key
(15) claims: every number of their words bound; status derived again and no higher than evidence allows; reviewers
(16) notes: documents by hash, everything that they name and say bound; journals against receipts
(17) signed heads: signatures over anchors

What it does not do: it trusts no row, but it cannot see a history that was replaced as a whole,
receipts and anchors included. That takes a copy of an anchor kept elsewhere. No bytes speak of what
docs/operations.md lists under "Verification" as not covered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from evidence.checks.blobs import check_blobs, judged_tombstones
from evidence.checks.branches import check_branch_rows
from evidence.checks.captures import check_captures
from evidence.checks.chains import check_chains
from evidence.checks.closures import check_closures
from evidence.checks.controls import check_control_rows
from evidence.checks.documents import check_documents
from evidence.checks.evidence_bytes import check_excerpts, check_sources
from evidence.checks.evidence_claims import check_claims
from evidence.checks.evidence_figures import check_figures
from evidence.checks.evidence_notes import check_journal, check_notes, check_signed_heads
from evidence.checks.evidence_own import check_own
from evidence.checks.evidence_queue import check_waiting
from evidence.checks.evidence_records import check_records
from evidence.checks.heads import check_heads
from evidence.checks.imported import check_imports
from evidence.checks.logged import check_logged
from evidence.checks.metrics import check_metrics
from evidence.checks.numbers import check_numbers
from evidence.checks.plans import check_plans
from evidence.checks.probes import check_probes
from evidence.checks.replay import Recompute, check_replay
from evidence.checks.rows import check_rows
from evidence.checks.trials import check_trial_numbers, check_trial_rows
from evidence.checks.updates import check_updates
from evidence.hashing import Held
from evidence.report import TOMBSTONED, Problem, StepLog, VerifyReport
from evidence.snapshot import reading
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
    11: "evidence records",
    12: "sources",
    13: "excerpts",
    14: "figures",
    15: "claims",
    16: "notes",
    17: "signed heads",
}
REPLAY = 10


def verify(
    *,
    store: BlobStore,
    recompute: Recompute | None = None,
    steps: Collection[int] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:
    """Check everything and name every disagreement. Changes nothing; reads one moment, in chunks.

    ``recompute`` None leaves step 10 out; ``steps`` None means all. ``on_progress`` receives
    (step, things checked). Raises ``ValueError`` for an unknown step, or step 10 without a callback.
    """
    possible = {number for number in STEPS if number != REPLAY or recompute is not None}
    chosen = possible if steps is None else set(steps)
    if not chosen <= possible:
        raise ValueError(f"steps: got {sorted(chosen - possible)}, expected some of {sorted(possible)}")
    report = VerifyReport({number: STEPS[number] for number in sorted(chosen)})
    hashed: dict[str, Held] = {}
    with reading():
        for number in sorted(chosen):
            log = StepLog(report, number, on_progress)
            if number > REPLAY:
                _run_evidence(log, store, hashed)
            else:
                _run(log, store, recompute, hashed)
    allowed, _ = judged_tombstones(store)
    report.problems[:] = [_late_tombstone(item, allowed) for item in report.problems]
    return report


def _run(log: StepLog, store: BlobStore, recompute: Recompute | None, hashed: dict[str, Held]) -> None:
    match log.step:
        case 1:  # (1)
            check_chains(log)
        case 2:  # (2)
            check_plans(log, store)
        case 3:  # (3)
            check_documents(log)
        case 4:  # (4)
            check_rows(log)
            check_trial_rows(log)
            check_control_rows(log)
            check_branch_rows(log)
            check_heads(log)
        case 5:  # (5)
            check_blobs(log, store, hashed)
        case 6:  # (6)
            check_captures(log, store)
            check_updates(log, store)
        case 7:  # (7)
            check_numbers(log)
            check_trial_numbers(log, store)
        case 8:  # (8)
            check_metrics(log, store)
            check_probes(log)
            check_logged(log)
            check_imports(log)
        case 9:  # (9)
            check_closures(log)
        case 10 if recompute is not None:  # (10)
            check_replay(log, store, recompute)


def _run_evidence(log: StepLog, store: BlobStore, hashed: dict[str, Held]) -> None:
    match log.step:
        case 11:  # (11)
            check_records(log)
        case 12:  # (12)
            check_sources(log, store, hashed)
            check_own(log)
        case 13:  # (13)
            check_excerpts(log)
        case 14:  # (14)
            check_figures(log)
        case 15:  # (15)
            check_claims(log)
            check_waiting(log)
        case 16:  # (16)
            check_notes(log, store)
            check_journal(log)
        case 17:  # (17)
            check_signed_heads(log)


def _late_tombstone(item: Problem, allowed: set[str]) -> Problem:
    """A blob that retention removed while its row was being read has its tombstone by now."""
    if item.step == 5 and item.got == "None" and item.row in allowed:
        return replace(item, severity=TOMBSTONED)
    return item
