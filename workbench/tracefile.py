"""The trace of one (optimizer step, trajectory): what the update saw at each policy token.

Frame, before compression (``frame_sha256`` covers exactly these bytes)::

    b"WBT1" | u32-LE header length | RFC 8785 header | arrays, raw little-endian, in header order

In the batch's trace file each frame stands as one zstd frame; ``TraceRef`` gives its place. Neither
Django nor torch: written by the engine, read by ``verify`` and by pages.
"""

from __future__ import annotations

import struct
import threading
from array import array
from dataclasses import dataclass
from typing import Any

import zstandard

from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.capture import pack_array, unpack_array
from workbench.contracts.errors import CaptureError

MAGIC = b"WBT1"
SCHEMA = "workbench.trace/1"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MAX_FRAME_BYTES = 1 << 28
CLIP_NONE, CLIP_LOW, CLIP_HIGH = 0, 1, 2

_SIZES = {"i4": 4, "u1": 1, "f4": 4, "f8": 8}
ARRAYS = (
    ("decisions", "i4"),
    ("old_logprobs", "f4"),
    ("new_logprobs", "f4"),
    ("ratios", "f4"),
    ("clipped", "u1"),
    ("entropies", "f4"),
    ("is_credited", "u1"),
    ("advantages", "f4"),
)
_local = threading.local()  # a compressor that two threads share corrupts memory


@dataclass(frozen=True)
class Trace:
    """One trajectory at one step. All arrays are parallel to its policy tokens, across turns, in order.

    ``decisions``     index of the decision that a token belongs to.
    ``old_logprobs``  teacher-forced under the frozen adapter, before any step of the batch; nats.
    ``new_logprobs``  at this step, before it is applied. ``ratios`` = exp(new - old).
    ``clipped``       0 the objective uses the ratio, 1 the low bound, 2 the high bound.
    ``entropies``     exact, over the vocabulary; nats.
    ``is_credited``   1 = the credit rule trains this token; 0 = it was cut.
    ``advantages``    credit per token as applied; 0 where the token is cut.
    ``loss``, ``grad_norm``  of this trajectory alone; None where they were not measured.
    """

    trajectory_uid: str
    step: int
    loss: float | None
    grad_norm: float | None
    decisions: array[Any]
    old_logprobs: array[Any]
    new_logprobs: array[Any]
    ratios: array[Any]
    clipped: array[Any]
    entropies: array[Any]
    is_credited: array[Any]
    advantages: array[Any]

    def __post_init__(self) -> None:
        expected = len(self.decisions)
        for name, _ in ARRAYS:
            if len(getattr(self, name)) != expected:
                raise CaptureError(
                    f"{name}: got {len(getattr(self, name))} values, expected {expected} (one a policy token)"
                )

    def to_bytes(self) -> bytes:
        """The exact bytes that ``frame_sha256`` covers."""
        header = {
            "schema": SCHEMA,
            "trajectory_uid": self.trajectory_uid,
            "step": self.step,
            "loss": self.loss,
            "grad_norm": self.grad_norm,
            "arrays": [{"name": name, "type": kind, "length": len(getattr(self, name))} for name, kind in ARRAYS],
        }
        encoded = canonical_bytes(header)
        body = b"".join(pack_array(getattr(self, name), kind) for name, kind in ARRAYS)
        return MAGIC + struct.pack("<I", len(encoded)) + encoded + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Trace:
        """Parse frame bytes; every length is checked. Raises ``CaptureError``."""
        if data[:4] != MAGIC or len(data) < 8:
            raise CaptureError(f"magic: got {data[:4]!r}, expected {MAGIC!r}")
        (length,) = struct.unpack("<I", data[4:8])
        header = parse_canonical(data[8 : 8 + length])
        if not isinstance(header, dict) or header.get("schema") != SCHEMA:
            raise CaptureError(f"schema: got {header!r:.60}, expected {SCHEMA!r}")
        offset, arrays = 8 + length, {}
        for item in header["arrays"]:
            size = item["length"] * _SIZES[item["type"]]
            if len(data) < offset + size:
                raise CaptureError(f"{item['name']}: got {len(data) - offset} bytes, expected {size}")
            arrays[item["name"]] = unpack_array(data[offset : offset + size], item["type"])
            offset += size
        if offset != len(data):
            raise CaptureError(f"end: got {len(data) - offset} bytes after the arrays, expected 0")
        return cls(header["trajectory_uid"], header["step"], header["loss"], header["grad_norm"], **arrays)


def write_frame(trace: Trace) -> tuple[bytes, str]:
    """Compressed frame for the trace file, and its ``frame_sha256``."""
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=True)
    raw = trace.to_bytes()
    return _local.compressor.compress(raw), sha256_hex(raw)


def read_frame(frame: bytes, frame_sha256: str) -> Trace:
    """One frame of a trace file. Raises ``CaptureError`` where bytes and hash disagree."""
    if frame[:4] == ZSTD_MAGIC:
        if not hasattr(_local, "decompressor"):
            _local.decompressor = zstandard.ZstdDecompressor()
        try:
            if not 0 < zstandard.frame_content_size(frame) <= MAX_FRAME_BYTES:
                raise CaptureError(f"frame: got content size {zstandard.frame_content_size(frame)}")
            frame = _local.decompressor.decompress(frame, max_output_size=MAX_FRAME_BYTES)
        except zstandard.ZstdError as error:
            raise CaptureError(f"frame: {error}, expected an intact zstd frame") from error
    found = sha256_hex(frame)
    if found != frame_sha256:
        raise CaptureError(f"frame_sha256: got bytes that hash to {found}, expected {frame_sha256}")
    return Trace.from_bytes(frame)
