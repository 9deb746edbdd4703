"""Frames between a worker and its runner: four bytes of length (big-endian), then JSON in UTF-8.

Producer and consumer: ``worker.runner`` and ``worker.runner_client``. Neither torch nor Django.
"""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

LENGTH = struct.Struct(">I")
LIMIT = 256 * 1024 * 1024


class FrameError(ValueError):
    """A frame that is torn, too long, or no JSON object."""


def pack(value: dict[str, Any]) -> bytes:
    """One frame. Raises ``FrameError`` for what JSON cannot carry; non-finite floats must be encoded before."""
    try:
        body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise FrameError(f"frame: {error}, expected finite JSON values") from error
    if len(body) > LIMIT:
        raise FrameError(f"frame: got {len(body)} bytes, expected at most {LIMIT}")
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    """The object in a frame's body."""
    try:
        value = json.loads(body)
    except ValueError as error:
        raise FrameError(f"frame: {error}, expected JSON") from error
    if not isinstance(value, dict):
        raise FrameError(f"frame: got {type(value).__name__}, expected an object")
    return value


def body_length(head: bytes) -> int:
    """Length that a frame's first four bytes announce. Raises ``FrameError`` beyond the limit."""
    (length,) = LENGTH.unpack(head)
    if length > LIMIT:
        raise FrameError(f"frame: got a length of {length}, expected at most {LIMIT}")
    return int(length)


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """Next frame of a blocking stream; None at its end. Raises ``FrameError`` where it ends inside a frame."""
    head = stream.read(LENGTH.size)
    if not head:
        return None
    if len(head) < LENGTH.size:
        raise FrameError(f"frame: got {len(head)} bytes of a length, expected {LENGTH.size}")
    length = body_length(head)
    body = stream.read(length)
    if len(body) < length:
        raise FrameError(f"frame: got {len(body)} bytes, expected {length}")
    return unpack(body)
