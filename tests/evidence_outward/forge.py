"""Somebody who rewrites a bundle: every part can be replaced and the manifest made to fit; the key is not theirs."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from evidence.outward.archive import open_bundle, write_zip
from evidence.outward.contents import Bytes
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex

Parts = dict[str, bytes]


def parts_of(file: Path) -> Parts:
    """Every part, in the file's order."""
    with open_bundle(file) as reader:
        return {path: reader.read(path) for path in reader.sizes}


def rewrite(file: Path, target: Path, change: Callable[[Parts], None], *, fit: bool = True) -> Path:
    """The bundle with ``change`` done to its parts; ``fit``: hashes, sizes and heads of the manifest say the same."""
    parts = parts_of(file)
    change(parts)
    if fit:
        manifest = parse_canonical(parts["manifest.json"])
        names = sorted(set(parts) - {"manifest.json", "manifest.sig"})
        manifest["files"] = [[path, sha256_hex(parts[path]), len(parts[path])] for path in names]
        heads = []
        for stream, _seq, _sha256 in manifest["heads"]:
            lines = parts.get(f"receipts/{stream.replace(':', '-')}.jsonl", b"").splitlines()
            heads.append([stream, len(lines), sha256_hex(lines[-1]) if lines else "0" * 64])
        manifest["heads"] = heads
        parts["manifest.json"] = canonical_bytes(manifest)
    order = ["manifest.json", "manifest.sig", *sorted(set(parts) - {"manifest.json", "manifest.sig"})]
    sink = io.BytesIO()
    write_zip(sink, [Bytes(path, parts[path]) for path in order if path in parts])
    target.write_bytes(sink.getvalue())
    return target
