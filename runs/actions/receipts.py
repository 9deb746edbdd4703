"""Receipts: append to a stream under its head's lock, and anchor all heads."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection, transaction

from runs.models import Actor, Anchor, Receipt, StreamHead
from runs.streams import study_of_stream
from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.contracts.chain import genesis, receipt_body, time_text

ANCHOR_SCHEMA = "workbench.anchor/1"
ANCHORS = "workbench.anchors"
ANCHOR_GENESIS = sha256_hex(b"workbench.anchor.genesis/1\x00")


def _locked_head(stream: str) -> StreamHead:
    """The stream's head, locked until the transaction ends; made on the stream's first use."""
    heads = StreamHead.objects.select_for_update()  # SQLite: the transaction is IMMEDIATE and holds the only write lock
    head = heads.filter(stream=stream).first()
    if head is None:
        try:
            with transaction.atomic():
                StreamHead.objects.create(stream=stream, study=study_of_stream(stream), seq=0, sha256=genesis(stream))
        except IntegrityError:
            pass  # another writer made it first; the lock below waits for that writer
        head = heads.get(stream=stream)
    return head


def lock_stream(stream: str) -> None:
    """Hold a stream until the transaction ends: nobody else appends to it meanwhile."""
    _locked_head(stream)


def append_receipt(
    stream: str, kind: str, subject_uid: uuid.UUID | str | None, body: dict[str, Any], *, actor: Actor, at: datetime
) -> Receipt:
    """Append one receipt. Call inside ``transaction.atomic()``, so that it commits with what it tells.

    ``body`` must have a canonical form (floats finite, integers within 2**53 - 1). Raises
    ``CanonicalError`` otherwise, ``TransactionManagementError`` outside a transaction.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "append_receipt: got no transaction, expected transaction.atomic()"
        )
    head = _locked_head(stream)
    subject = None if subject_uid is None else uuid.UUID(str(subject_uid))
    data = canonical_bytes(
        receipt_body(
            stream=stream,
            seq=head.seq + 1,
            prev=head.sha256,
            kind=kind,
            subject=None if subject is None else str(subject),
            body=body,
            actor=str(actor.uid),
            at=time_text(at),
        )
    )
    receipt = Receipt.objects.create(
        stream=stream, seq=head.seq + 1, prev=head.sha256, sha256=sha256_hex(data), bytes=data,
        kind=kind, subject_uid=subject, actor=actor, at=at,
    )  # fmt: skip
    head.seq, head.sha256 = receipt.seq, receipt.sha256
    head.save(update_fields=["seq", "sha256"])
    return receipt


def anchor_body(seq: int, prev: str, heads: Iterable[tuple[str, int, str]]) -> dict[str, Any]:
    """What an anchor's bytes say: ``heads`` are [stream, seq, sha256], by stream."""
    return {"schema": ANCHOR_SCHEMA, "seq": seq, "prev": prev, "heads": [list(item) for item in heads]}


def anchor_heads() -> Anchor:
    """Bind all stream heads in one chained record. Call inside ``transaction.atomic()``, last: anchors queue here."""
    _locked_head(ANCHORS)  # its row is only a lock: two executions that close at once must not share a ``prev``
    last = Anchor.objects.order_by("-seq").first()
    seq, prev = (last.seq + 1, last.sha256) if last else (1, ANCHOR_GENESIS)
    heads = StreamHead.objects.filter(seq__gt=0).values_list("stream", "seq", "sha256")
    data = canonical_bytes(anchor_body(seq, prev, sorted(heads)))
    return Anchor.objects.create(seq=seq, prev=prev, sha256=sha256_hex(data), bytes=data)
