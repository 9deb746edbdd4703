"""Bounds that keep a reader's memory, time and disk small whatever the file says."""

from __future__ import annotations

from dataclasses import dataclass


class ImportRefused(ValueError):
    """A source that cannot be opened at all: names field, value and expectation."""


@dataclass(frozen=True)
class Limits:
    """All sizes in bytes. Beyond one of them the piece is refused by name and reading goes on behind it.

    ``values`` bounds the numbers, texts and containers of one JSON document, counted from its bytes
    before it is parsed. ``ratio`` is decompressed over stored size, looked at above ``ratio_floor``.
    """

    line: int = 32 << 20
    values: int = 4_000_000
    nesting: int = 64
    record: int = 16 << 20
    text: int = 8 << 20
    files: int = 50_000
    members: int = 20_000
    member: int = 256 << 20
    archive: int = 4 << 30
    ratio: int = 200
    ratio_floor: int = 16 << 20
    column_chunk: int = 256 << 20
    column_values: int = 8_000_000
    columns: int = 2_000
    configuration: int = 1 << 20
    footer: int = 64 << 20


LIMITS = Limits()
