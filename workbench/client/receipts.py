"""Checks a receipt chain here, from what the API says, without trusting the server's own verdict.

A receipt's hash covers its canonical bytes: schema, stream, position, hash before, kind, subject, body,
actor and time. They are built again from the members and hashed; the first broken link is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.contracts.chain import genesis, receipt_body, time_text

from .records import Receipt


@dataclass(frozen=True)
class ChainReport:
    """``checked`` receipts from the first; ``head`` is the hash of the last; ``fault`` names the first broken link."""

    stream: str
    checked: int
    head: str
    fault: str | None

    @property
    def ok(self) -> bool:
        """Whether every link holds."""
        return self.fault is None


def receipt_bytes(item: Receipt) -> bytes:
    """The canonical bytes of a receipt, from its members."""
    return canonical_bytes(
        receipt_body(
            stream=item.stream,
            seq=item.seq,
            prev=item.prev,
            kind=item.kind,
            subject=item.subject,
            body=item.body,
            actor=item.actor.uid,
            at=time_text(item.at),
        )
    )


def verify_chain(stream: str, receipts: Iterable[Receipt], head: str | None = None) -> ChainReport:
    """Every link of a stream, from its first receipt. ``head``: the hash that the last one must have."""
    last, count = genesis(stream), 0
    for item in receipts:
        expected = (stream, count + 1, last)
        if (item.stream, item.seq, item.prev) != expected:
            got = f"{item.stream}#{item.seq} after {item.prev}"
            return ChainReport(stream, count, last, f"#{count + 1}: got {got}, expected to follow {last}")
        found = sha256_hex(receipt_bytes(item))
        if found != item.sha256:
            return ChainReport(
                stream, count, last, f"#{item.seq}: got {item.sha256}, expected {found} from its content"
            )
        last, count = item.sha256, count + 1
    if head is not None and head != last:
        return ChainReport(stream, count, last, f"head: got {last}, expected {head}")
    return ChainReport(stream, count, last, None)
