"""Update trace frames: exact round trip; a changed byte, a wrong hash and a wrong length are refused."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
import zstandard

from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import CaptureError
from workbench.tracefile import CLIP_HIGH, CLIP_NONE, Trace, read_frame, write_frame


def _trace(**changed: Any) -> Trace:
    """Three policy tokens, two of decision 0 and one of decision 1, which the rule cut."""
    values: dict[str, Any] = {
        "trajectory_uid": "t",
        "step": 5,
        "loss": -0.25,
        "grad_norm": None,
        "decisions": array("i", [0, 0, 1]),
        "old_logprobs": array("f", [-1.0, -0.5, -2.0]),
        "new_logprobs": array("f", [-0.75, -0.5, -2.0]),
        "ratios": array("f", [1.25, 1.0, 1.0]),
        "clipped": array("B", [CLIP_HIGH, CLIP_NONE, CLIP_NONE]),
        "entropies": array("f", [0.5, 0.25, 1.0]),
        "is_credited": array("B", [1, 1, 0]),
        "advantages": array("f", [0.5, 0.5, 0.0]),
    }
    return Trace(**{**values, **changed})


def test_round_trip_and_equal_input_equal_bytes() -> None:
    frame, sha256 = write_frame(_trace())
    assert read_frame(frame, sha256) == _trace()
    assert write_frame(_trace()) == (frame, sha256)
    assert sha256 == sha256_hex(_trace().to_bytes())


def test_an_uncompressed_frame_reads_too() -> None:
    raw = _trace().to_bytes()
    assert read_frame(raw, sha256_hex(raw)) == _trace()


@pytest.mark.parametrize("position", [0, 6, 60, -1])
def test_a_changed_byte_is_found(position: int) -> None:
    raw = bytearray(_trace().to_bytes())
    raw[position] ^= 1
    with pytest.raises(CaptureError, match="frame_sha256"):
        read_frame(bytes(raw), sha256_hex(_trace().to_bytes()))


def test_a_torn_frame_is_refused() -> None:
    frame, sha256 = write_frame(_trace())
    with pytest.raises(CaptureError, match="zstd"):
        read_frame(frame[:-3], sha256)


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"nope", "magic"), (_trace().to_bytes() + b"x", "after the arrays"), (_trace().to_bytes()[:-1], "expected 12")],
)
def test_malformed_bytes_are_refused_even_under_their_own_hash(data: bytes, message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        read_frame(data, sha256_hex(data))


def test_a_header_without_size_is_refused() -> None:
    """A frame that does not say how large it is must not make a reader allocate without limit."""
    raw = _trace().to_bytes()
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(raw)
    with pytest.raises(CaptureError, match="content size"):
        read_frame(frame, sha256_hex(raw))


def test_arrays_of_unequal_length_are_refused() -> None:
    with pytest.raises(CaptureError, match="ratios: got 1 values, expected 3"):
        _trace(ratios=array("f", [1.0]))
