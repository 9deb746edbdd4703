"""The capture of one turn: the immutable bytes that training reads.

Layout (``capture_sha256`` covers exactly these bytes, uncompressed)::

    b"WBC1" | u32-LE header length | RFC 8785 header | arrays, raw little-endian, in header order

The header names every array with its type and length; ids are int32, indicators uint8,
log-probabilities float32. Prompt ids are complete: a capture is readable with nothing beside it.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .canonical import canonical_bytes, parse_bound, parse_canonical, sha256_hex
from .errors import CaptureError

MAGIC = b"WBC1"
SCHEMA = "workbench.capture/1"

# Segment of a generated token. THINK, ACTION and ANSWER are all policy text.
SEGMENT_OTHER, SEGMENT_THINK, SEGMENT_ACTION, SEGMENT_ANSWER = 0, 1, 2, 3
SEGMENT_NAMES = ("other", "think", "action", "answer")

_TYPECODES = {"i4": ("i", 4), "u1": ("B", 1), "f4": ("f", 4), "f8": ("d", 8)}


_HEADER_TYPES: dict[str, tuple[type, ...]] = {
    "trajectory_uid": (str,),
    "decision": (int,),
    "branch": (str,),
    "parent_decision": (int, type(None)),
    "policy_version": (int,),
    "seed": (str,),
    "sampling": (dict,),
    "identities": (dict,),
    "state_sha256": (str,),
    "attention": (str,),
    "processor_inputs": (dict,),
}


def pack_array(values: Any, kind: str) -> bytes:
    """Raw little-endian bytes of a flat sequence; ``kind`` is i4, u1, f4 or f8."""
    typecode, _ = _TYPECODES[kind]
    try:
        packed = values if isinstance(values, array) and values.typecode == typecode else array(typecode, values)
    except (TypeError, OverflowError) as error:
        raise CaptureError(f"array: {error}, expected values of type {kind}") from error
    if sys.byteorder == "big" and kind != "u1":  # pragma: no cover - no big-endian machine is tested
        packed = array(typecode, packed)
        packed.byteswap()
    return packed.tobytes()


def unpack_array(data: bytes, kind: str) -> array[Any]:
    """The inverse of ``pack_array``."""
    typecode, size = _TYPECODES[kind]
    if len(data) % size:
        raise CaptureError(f"array: got {len(data)} bytes, expected a multiple of {size}")
    values = array(typecode)
    values.frombytes(data)
    if sys.byteorder == "big" and kind != "u1":  # pragma: no cover
        values.byteswap()
    return values


@dataclass(frozen=True)
class Capture:
    """One turn at the model boundary. Producer: the engine's sampler. Consumers: update, verify, pages.

    ``prompt_ids``       every id that the model attended to before the first generated token.
    ``generated_ids``    the sampled ids, special tokens included.
    ``is_policy_token``  parallel to ``generated_ids``; 1 = sampled by the policy and owned by it,
                         0 = appended by the harness (a forced closing token, say). Never a credit
                         indicator: which policy tokens an objective trains is decided later.
    ``segments``         parallel to ``generated_ids``: other, think, action or answer.
    ``sampler_logprobs`` parallel to ``generated_ids``; log-probability that the sampling engine saw,
                         natural log, before temperature or truncation; None where the engine has
                         none. For drift checks only, never used as old log-probabilities.
    ``decision``         index of this policy decision in its trajectory, from 0.
    ``seed``             decimal string; with ``decision`` it fixes the sampling noise.
    ``sampling``         temperature, top_p, top_k, max_new_tokens.
    ``identities``       base_model, adapter, tokenizer, formatter, environment, harness, runtime.
    ``attention``        "all": every prompt id is attended to. No other value is produced yet.
    """

    trajectory_uid: str
    decision: int
    branch: str
    parent_decision: int | None
    policy_version: int
    seed: str
    sampling: dict[str, Any]
    identities: dict[str, str]
    state_sha256: str
    prompt_ids: array[Any]
    generated_ids: array[Any]
    is_policy_token: array[Any]
    segments: array[Any]
    sampler_logprobs: array[Any] | None
    attention: str = "all"
    processor_inputs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expected = len(self.generated_ids)
        for name in ("is_policy_token", "segments", "sampler_logprobs"):
            values = getattr(self, name)
            if values is not None and len(values) != expected:
                raise CaptureError(f"{name}: got {len(values)} values, expected {expected} (one a generated token)")
        if not self.prompt_ids:
            raise CaptureError("prompt_ids: got none, expected at least one id")

    def to_bytes(self) -> bytes:
        """The exact bytes that ``capture_sha256`` covers."""
        arrays: list[tuple[str, str, Any]] = [
            ("prompt_ids", "i4", self.prompt_ids),
            ("generated_ids", "i4", self.generated_ids),
            ("is_policy_token", "u1", self.is_policy_token),
            ("segments", "u1", self.segments),
        ]
        if self.sampler_logprobs is not None:
            arrays.append(("sampler_logprobs", "f4", self.sampler_logprobs))
        header = {
            "schema": SCHEMA,
            "trajectory_uid": self.trajectory_uid,
            "decision": self.decision,
            "branch": self.branch,
            "parent_decision": self.parent_decision,
            "policy_version": self.policy_version,
            "seed": self.seed,
            "sampling": self.sampling,
            "identities": self.identities,
            "state_sha256": self.state_sha256,
            "attention": self.attention,
            "processor_inputs": self.processor_inputs,
            "arrays": [{"name": name, "type": kind, "length": len(values)} for name, kind, values in arrays],
        }
        encoded = canonical_bytes(header)
        body = b"".join(pack_array(values, kind) for _, kind, values in arrays)
        return MAGIC + struct.pack("<I", len(encoded)) + encoded + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Capture:
        """Parse and check capture bytes. Raises ``CaptureError`` or ``CanonicalError``."""
        header, arrays = _split(data, parse_bound)  # the comparison with ``to_bytes`` below is the canonical check
        header.pop("arrays")
        header.pop("schema")
        for name, kinds in _HEADER_TYPES.items():
            if name in header and type(header[name]) not in kinds:
                raise CaptureError(f"{name}: got {header[name]!r:.80}, expected {kinds[0].__name__}")
        try:
            fields: dict[str, Any] = {"sampler_logprobs": None, **header, **arrays}
            capture = cls(**fields)
        except TypeError as error:
            raise CaptureError(f"header: {error}, expected the fields of {SCHEMA}") from error
        if capture.to_bytes() != data:
            raise CaptureError(f"arrays: got another order or other types, expected those of {SCHEMA}")
        return capture

    def sha256(self) -> str:
        """``capture_sha256``."""
        return sha256_hex(self.to_bytes())


def _array_entries(header: dict[str, Any]) -> list[dict[str, Any]]:
    """The header's list of arrays, each with a name, a known type and a length. Raises ``CaptureError``."""
    entries, names = header.get("arrays"), set()
    if not isinstance(entries, list):
        raise CaptureError(f"arrays: got {entries!r:.80}, expected a list")
    for item in entries:
        if not (
            isinstance(item, dict)
            and item.keys() == {"name", "type", "length"}
            and isinstance(item["name"], str)
            and isinstance(item["type"], str)
            and item["type"] in _TYPECODES
            and type(item["length"]) is int
            and item["length"] >= 0
            and item["name"] not in names
        ):
            raise CaptureError(f"arrays: got {item!r:.80}, expected one name, a known type and a length")
        names.add(item["name"])
    return entries


def split_capture(data: bytes, *, bound: bool = False) -> tuple[dict[str, Any], dict[str, array[Any]]]:
    """Header and arrays of capture bytes; every length is checked, nothing is guessed.

    ``bound``: the caller compares the hash of these bytes, so that their canonical form need not be checked here.
    """
    return _split(data, parse_bound if bound else parse_canonical)


def _split(data: bytes, parse: Callable[[bytes], Any]) -> tuple[dict[str, Any], dict[str, array[Any]]]:
    if data[:4] != MAGIC or len(data) < 8:
        raise CaptureError(f"magic: got {data[:4]!r}, expected {MAGIC!r}")
    (length,) = struct.unpack("<I", data[4:8])
    header = parse(data[8 : 8 + length])
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise CaptureError(
            f"schema: got {header if not isinstance(header, dict) else header.get('schema')!r}, expected {SCHEMA!r}"
        )
    offset, arrays = 8 + length, {}
    for item in _array_entries(header):
        size = item["length"] * _TYPECODES[item["type"]][1]
        chunk = data[offset : offset + size]
        if len(chunk) != size:
            raise CaptureError(f"{item['name']}: got {len(chunk)} bytes, expected {size}")
        arrays[item["name"]] = unpack_array(chunk, item["type"])
        offset += size
    if offset != len(data):
        raise CaptureError(f"end: got {len(data) - offset} bytes after the arrays, expected 0")
    return header, arrays
