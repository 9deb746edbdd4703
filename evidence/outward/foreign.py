"""Streams that came in with bundles: their receipts are here, their runs, records and anchors stay in the bundle."""

from __future__ import annotations

from runs.models import Receipt
from workbench.contracts.canonical import parse_canonical

STREAM, IMPORTED = "bundles", "bundle.imported"  # receipts of this home about bundles that it took in


def foreign_streams() -> dict[str, int]:
    """Stream -> how many of its receipts came in with a bundle, whose own check is ``verify-bundle``."""
    lengths: dict[str, int] = {}
    for data in Receipt.objects.filter(stream=STREAM, kind=IMPORTED).values_list("bytes", flat=True):
        for stream, seq, _sha256 in parse_canonical(bytes(data))["body"]["streams"]:
            lengths[stream] = max(lengths.get(stream, 0), seq)
    return lengths
