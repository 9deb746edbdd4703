"""Step 1: receipt chains, their heads, the anchors over them, and the actors that they name."""

from __future__ import annotations

from typing import Any

from evidence.checks.ownership import check_actors, check_anchored
from evidence.report import StepLog
from runs.actions.receipts import ANCHOR_GENESIS, ANCHOR_SCHEMA
from runs.models import Anchor, Receipt, StreamHead
from workbench.contracts.canonical import parse_canonical, sha256_hex
from workbench.contracts.chain import RECEIPT_SCHEMA, genesis, time_text

CHUNK = 500


def check_chains(log: StepLog) -> None:
    """Hashes, order, links, columns, heads and anchors. A removed tail shows in a head or an anchor."""
    last = _receipts(log)
    for head in StreamHead.objects.iterator(chunk_size=CHUNK):
        log.count()
        seq, sha256 = last.pop(head.stream, (0, genesis(head.stream)))
        log.compare("runs_streamhead", head.stream, {"seq": seq, "sha256": sha256}, head)
    for stream, (seq, _) in last.items():
        log.problem("runs_streamhead", stream, "seq", expected=seq, got=None)
    _anchors(log)
    check_anchored(log)
    check_actors(log)


def _receipts(log: StepLog) -> dict[str, tuple[int, str]]:
    """Check every receipt in order; the last (seq, sha256) of each stream."""
    last: dict[str, tuple[int, str]] = {}
    rows = Receipt.objects.select_related("actor").order_by("stream", "seq", "id").iterator(chunk_size=CHUNK)
    for receipt in rows:
        log.count()
        seq, prev = last.get(receipt.stream, (0, genesis(receipt.stream)))
        name = f"{receipt.stream}#{receipt.seq}"
        log.compare("runs_receipt", name, {"seq": seq + 1, "prev": prev}, receipt)
        data = bytes(receipt.bytes)
        log.compare("runs_receipt", name, {"sha256": sha256_hex(data)}, receipt)
        with log.reading("runs_receipt", name):
            _content(log, name, receipt, parse_canonical(data))
        last[receipt.stream] = (receipt.seq, receipt.sha256)
    return last


def _content(log: StepLog, name: str, receipt: Receipt, value: Any) -> None:
    subject = None if receipt.subject_uid is None else str(receipt.subject_uid)
    columns = {
        "stream": receipt.stream,
        "seq": receipt.seq,
        "prev": receipt.prev,
        "kind": receipt.kind,
        "subject": subject,
        "actor": str(receipt.actor.uid),
        "at": time_text(receipt.at),
    }
    if value["schema"] != RECEIPT_SCHEMA:
        log.problem("runs_receipt", name, "bytes", expected=RECEIPT_SCHEMA, got=value["schema"])
    for key, got in columns.items():
        if value[key] != got:
            log.problem("runs_receipt", name, key, expected=value[key], got=got)


def _anchors(log: StepLog) -> None:
    seq, prev = 0, ANCHOR_GENESIS
    for anchor in Anchor.objects.order_by("seq").iterator(chunk_size=CHUNK):
        log.count()
        data = bytes(anchor.bytes)
        log.compare("runs_anchor", anchor.seq, {"seq": seq + 1, "prev": prev, "sha256": sha256_hex(data)}, anchor)
        seq, prev = anchor.seq, anchor.sha256
        with log.reading("runs_anchor", anchor.seq):
            value = parse_canonical(data)
            for key, expected in (("schema", ANCHOR_SCHEMA), ("seq", anchor.seq), ("prev", anchor.prev)):
                if value[key] != expected:
                    log.problem("runs_anchor", anchor.seq, "bytes", expected=expected, got=value[key])
            for stream, number, sha256 in value["heads"]:
                found = Receipt.objects.filter(stream=stream, seq=number).values_list("sha256", flat=True).first()
                if found != sha256:
                    log.problem("runs_receipt", f"{stream}#{number}", "sha256", expected=sha256, got=found)
