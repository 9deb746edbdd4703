"""The capture file of one group: a canonical index and one compressed frame per trajectory.

Layout::

    b"WBG1" | u32-LE index length | RFC 8785 index | frames, in index order

A frame is one zstd frame with a content checksum. Inside it the captures of a trajectory stand in
order, each as u32-LE head length, u32-LE shared length, u32-LE tail length, head bytes, tail bytes.
``head`` is the capture up to the end of its header. The arrays begin with prompt ids and generated
ids; the longest prefix of this prompt that repeats the previous capture's prompt and generated ids
is stored once, as ``shared``, its length in bytes. Equal input gives equal file bytes.

Neither Django nor torch; used by the engine, by ``verify`` and by pages.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import Any

import zstandard

from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.capture import split_capture
from workbench.contracts.errors import CaptureError
from workbench.contracts.records import CaptureRef

MAGIC = b"WBG1"
SCHEMA = "workbench.capture_file/1"
LEVEL = 3
MAX_FRAME_BYTES = 1 << 30  # a damaged frame header must not make a reader allocate without limit

_LENGTHS = struct.Struct("<III")
_local = threading.local()  # a compressor that two threads share corrupts memory


def _compressor() -> zstandard.ZstdCompressor:
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)
    return _local.compressor


def _decompressor() -> zstandard.ZstdDecompressor:
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    return _local.decompressor


def _shared_prefix(first: bytes, second: bytes) -> int:
    """Length in bytes of the common prefix, rounded down to whole int32 ids."""
    limit = min(len(first), len(second))
    if first[:limit] == second[:limit]:
        return limit - limit % 4
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low - low % 4


def _split(capture: bytes, *, bound: bool = False) -> tuple[bytes, bytes, int, int, dict[str, Any]]:
    """Head, body, bytes of the prompt ids, bytes of prompt and generated ids, header."""
    header, _ = split_capture(capture, bound=bound)
    names = [item["name"] for item in header["arrays"][:2]]
    if names != ["prompt_ids", "generated_ids"]:
        raise CaptureError(f"arrays: got {names}, expected prompt_ids and generated_ids first")
    (length,) = struct.unpack("<I", capture[4:8])
    head, body = capture[: 8 + length], capture[8 + length :]
    prompt = 4 * header["arrays"][0]["length"]
    return head, body, prompt, prompt + 4 * header["arrays"][1]["length"], header


def _encode(captures: Sequence[bytes], trajectory_uid: str) -> tuple[bytes, list[dict[str, Any]]]:
    parts: list[bytes] = []
    entries: list[dict[str, Any]] = []
    previous = b""
    for capture in captures:
        head, body, prompt, context, header = _split(capture)
        if header["trajectory_uid"] != trajectory_uid:
            raise CaptureError(f"trajectory_uid: got {header['trajectory_uid']}, expected {trajectory_uid}")
        shared = _shared_prefix(previous, body[:prompt])
        tail = body[shared:]
        parts += [_LENGTHS.pack(len(head), shared, len(tail)), head, tail]
        entries.append({"sha256": sha256_hex(capture), "decision": header["decision"], "bytes": len(capture)})
        previous = body[:context]
    return b"".join(parts), entries


def write_group_file(trajectories: Sequence[tuple[str, Sequence[bytes]]]) -> tuple[bytes, tuple[CaptureRef, ...]]:
    """File bytes of a group and the place of every capture in it, in order.

    ``trajectories``: (uid, capture bytes by decision). A trajectory without captures has an empty
    frame. Raises ``CaptureError`` for bytes that are no capture or belong to another trajectory.
    """
    frames: list[bytes] = []
    index: list[dict[str, Any]] = []
    for uid, captures in trajectories:
        raw, entries = _encode(captures, uid)
        frame = _compressor().compress(raw)
        frames.append(frame)
        index.append({"trajectory_uid": uid, "frame_bytes": len(frame), "captures": entries})
    encoded = canonical_bytes({"schema": SCHEMA, "trajectories": index})
    offset = 8 + len(encoded)
    refs: list[CaptureRef] = []
    for item, frame in zip(index, frames, strict=True):
        for entry in item["captures"]:
            refs.append(CaptureRef(entry["sha256"], item["trajectory_uid"], entry["decision"], offset, len(frame)))
        offset += len(frame)
    return MAGIC + struct.pack("<I", len(encoded)) + encoded + b"".join(frames), tuple(refs)


def _decode(frame: bytes) -> list[bytes]:
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= MAX_FRAME_BYTES:
            raise CaptureError(f"frame: got content size {size}, expected 0 to {MAX_FRAME_BYTES}")
        raw = _decompressor().decompress(frame, max_output_size=MAX_FRAME_BYTES) if size else b""
    except zstandard.ZstdError as error:
        raise CaptureError(f"frame: {error}, expected an intact zstd frame") from error
    captures: list[bytes] = []
    offset, previous = 0, b""
    while offset < len(raw):
        if offset + _LENGTHS.size > len(raw):
            raise CaptureError(f"frame: got {len(raw) - offset} bytes at the end, expected {_LENGTHS.size}")
        head_length, shared, tail_length = _LENGTHS.unpack_from(raw, offset)
        offset += _LENGTHS.size
        end = offset + head_length + tail_length
        if end > len(raw) or shared > len(previous):
            raise CaptureError(f"frame: got an entry of {head_length}+{tail_length} bytes that does not fit")
        capture = raw[offset : offset + head_length] + previous[:shared] + raw[offset + head_length : end]
        offset = end
        _, body, _, context, _ = _split(capture, bound=True)  # ``read_trajectory`` compares the hashes
        previous = body[:context]
        captures.append(capture)
    return captures


def read_trajectory(blob: bytes, refs: Sequence[CaptureRef]) -> list[bytes]:
    """Exact bytes of several captures that lie in one frame, each checked against its hash."""
    if not refs:
        return []
    places = {(ref.offset, ref.length, ref.trajectory_uid) for ref in refs}
    if len(places) != 1:
        raise CaptureError(f"refs: got {len(places)} frames, expected captures of one trajectory")
    (offset, length, _) = next(iter(places))
    frame = blob[offset : offset + length]
    if blob[:4] != MAGIC or offset < 8 or len(frame) != length:
        raise CaptureError(f"frame: got offset {offset}, length {length} in {len(blob)} bytes, expected a frame inside")
    by_hash = {sha256_hex(capture): capture for capture in _decode(frame)}
    for ref in refs:
        if ref.capture_sha256 not in by_hash:
            raise CaptureError(f"capture_sha256: got none in the frame, expected {ref.capture_sha256}")
    return [by_hash[ref.capture_sha256] for ref in refs]


def read_capture(blob: bytes, ref: CaptureRef) -> bytes:
    """Exact original bytes of one capture; raises ``CaptureError`` where the hash disagrees."""
    return read_trajectory(blob, [ref])[0]


def read_index(blob: bytes) -> tuple[CaptureRef, ...]:
    """Every ref of a group file, from its own index."""
    if blob[:4] != MAGIC or len(blob) < 8:
        raise CaptureError(f"magic: got {blob[:4]!r}, expected {MAGIC!r}")
    (length,) = struct.unpack("<I", blob[4:8])
    index = parse_canonical(blob[8 : 8 + length])
    if not isinstance(index, dict) or index.get("schema") != SCHEMA:
        raise CaptureError(f"schema: got {index!r:.60}, expected {SCHEMA!r}")
    offset, refs = 8 + length, []
    for item in index["trajectories"]:
        for entry in item["captures"]:
            refs.append(
                CaptureRef(entry["sha256"], item["trajectory_uid"], entry["decision"], offset, item["frame_bytes"])
            )
        offset += item["frame_bytes"]
    if offset != len(blob):
        raise CaptureError(f"end: got {len(blob)} bytes, expected {offset}")
    return tuple(refs)
