"""Receipt chains: what a receipt's hash covers, and where a chain begins; one rule for server and client."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from workbench.contracts.canonical import sha256_hex

RECEIPT_SCHEMA = "workbench.receipt/1"


def genesis(stream: str) -> str:
    """``prev`` of the first receipt of a stream: two streams never share a chain."""
    return sha256_hex(b"workbench.receipt.genesis/1\x00" + stream.encode())


def time_text(at: datetime) -> str:
    """UTC with microseconds. Raises ``ValueError`` for a time without a zone."""
    if at.tzinfo is None:
        raise ValueError(f"at: got {at.isoformat()} without a time zone, expected an aware time")
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def receipt_body(
    *, stream: str, seq: int, prev: str, kind: str, subject: str | None, body: dict[str, Any], actor: str, at: str
) -> dict[str, Any]:
    """What a receipt's bytes say."""
    return {
        "schema": RECEIPT_SCHEMA, "stream": stream, "seq": seq, "prev": prev, "kind": kind,
        "subject": subject, "body": body, "actor": actor, "at": at,
    }  # fmt: skip
