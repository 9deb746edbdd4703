"""Step 6, updates: trace frames, old log-probabilities and the digest of what was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from evidence.checks.edit_credit import Terms, check_edit_credit
from evidence.checks.traces import check_trace_values
from evidence.report import StepLog
from runs.actions.record_update import UPDATE, parse_update
from runs.models import Document, Turn
from workbench.blobs import BlobError, BlobStore
from workbench.contracts.canonical import digest
from workbench.contracts.errors import ContractError
from workbench.contracts.records import TraceRef, UpdateRecord
from workbench.tracefile import Trace, read_frame

CHUNK = 20
FLOAT32 = 4  # bytes


def check_updates(log: StepLog, store: BlobStore) -> None:
    """Every update document against the captures and blobs that it names."""
    for document in Document.objects.filter(kind=UPDATE).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_updatebatch", document.subject_uid):
            record = parse_update(bytes(document.bytes))
            _digest(log, record)
            _old_logprobs(log, record, store)
            decisions = _decisions(record)
            _traces(log, record, store, decisions, check_edit_credit(log, record, decisions))


def _digest(log: StepLog, record: UpdateRecord) -> None:
    """The hashes of the trained trajectories' captures, in order."""
    log.count()
    hashes: list[str] = []
    if record.skipped is None:
        found: dict[str, list[str]] = {item.trajectory_uid: [] for item in record.credits}
        turns = Turn.objects.filter(trajectory__uid__in=found).order_by("decision")
        for uid, sha256 in turns.values_list("trajectory__uid", "capture_sha256"):
            found[str(uid)].append(str(sha256))
        hashes = [sha256 for item in record.credits for sha256 in found[item.trajectory_uid]]
    if digest(hashes) != record.capture_digest:
        log.problem(
            "runs_updatebatch", record.uid, "capture_digest", expected=digest(hashes), got=record.capture_digest
        )


def _old_logprobs(log: StepLog, record: UpdateRecord, store: BlobStore) -> None:
    """float32, one a policy token of every trained trajectory."""
    if record.old_logprobs_sha256 is None:
        return
    try:
        size = store.size(record.old_logprobs_sha256)
    except BlobError:
        return  # step 5 names it
    log.count()
    expected = FLOAT32 * sum(item.policy_tokens for item in record.credits)
    if size != expected:
        log.problem(
            "runs_updatebatch", record.uid, "old_logprobs_sha256", expected=f"{expected} bytes", got=f"{size} bytes"
        )


def _traces(
    log: StepLog, record: UpdateRecord, store: BlobStore, decisions: dict[str, list[int]], terms: Terms | None
) -> None:
    if record.trace_blob_sha256 is None:
        if record.traces:
            log.problem("runs_updatebatch", record.uid, "trace_blob_sha256", expected="a trace file", got=None)
        return
    tokens = {item.trajectory_uid: item.policy_tokens for item in record.credits}
    frames: dict[tuple[int, str], Trace] = {}
    try:
        blob = store.get(record.trace_blob_sha256)
    except BlobError:
        return  # step 5 names it
    for ref in record.traces:
        log.count()
        name = f"{record.uid} ({ref.step}, {ref.trajectory_uid})"
        try:
            trace = read_frame(blob[ref.offset : ref.offset + ref.length], ref.frame_sha256)
        except ContractError as error:
            log.problem("runs_traceframe", name, "frame_sha256", expected=ref.frame_sha256, got=str(error))
            continue
        frames[ref.step, ref.trajectory_uid] = trace
        _frame(log, name, ref, trace, tokens.get(ref.trajectory_uid))
    check_trace_values(log, record, frames, _old_values(record, store), decisions, terms)


def _old_values(record: UpdateRecord, store: BlobStore) -> Any:
    """The old log-probabilities of the batch as an array; None where their blob is absent or of another length."""
    try:
        data = store.get(record.old_logprobs_sha256 or "")
    except (BlobError, ValueError):
        return None
    expected = FLOAT32 * sum(item.policy_tokens for item in record.credits)
    return np.frombuffer(data, "<f4") if len(data) == expected else None


def _decisions(record: UpdateRecord) -> dict[str, list[int]]:
    """Decision of every policy token, by trajectory, from the turns."""
    found: dict[str, list[int]] = {item.trajectory_uid: [] for item in record.credits}
    turns = Turn.objects.filter(trajectory__uid__in=found).order_by("decision")
    for uid, decision, tokens in turns.values_list("trajectory__uid", "decision", "policy_tokens"):
        found[str(uid)] += [decision] * tokens
    return found


def _frame(log: StepLog, name: str, ref: TraceRef, trace: Trace, tokens: int | None) -> None:
    if (trace.step, trace.trajectory_uid) != (ref.step, ref.trajectory_uid):
        got = (trace.step, trace.trajectory_uid)
        log.problem("runs_traceframe", name, "step", expected=(ref.step, ref.trajectory_uid), got=got)
    if len(trace.decisions) != tokens:
        log.problem(
            "runs_traceframe", name, "length", expected=f"{tokens} tokens", got=f"{len(trace.decisions)} tokens"
        )
