"""Captures: bytes and back, and every corrupted length, field and byte found."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.capture import Capture, pack_array, unpack_array
from workbench.contracts.errors import CaptureError, ContractError

ID = st.integers(0, 2**31 - 1)
FLOAT32 = st.floats(width=32)


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    count = draw(st.integers(0, 6))
    logprobs = draw(st.none() | st.lists(FLOAT32, min_size=count, max_size=count))
    return Capture(
        trajectory_uid=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
        decision=draw(st.integers(0, 100)), branch="main", parent_decision=draw(st.none() | st.integers(0, 9)),
        policy_version=draw(st.integers(0, 9)), seed=str(draw(st.integers(0, 2**64 - 1))),
        sampling={"temperature": draw(st.floats(0.5, 2))}, identities={"adapter": "a" * 64}, state_sha256="b" * 64,
        prompt_ids=array("i", draw(st.lists(ID, min_size=1, max_size=8))),
        generated_ids=array("i", draw(st.lists(ID, min_size=count, max_size=count))),
        is_policy_token=array("B", draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))),
        segments=array("B", draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))),
        sampler_logprobs=None if logprobs is None else array("f", logprobs),
    )  # fmt: skip


def example() -> Capture:
    return Capture(
        trajectory_uid="t", decision=1, branch="main", parent_decision=0, policy_version=2, seed="18446744073709551615",
        sampling={"temperature": 1.0}, identities={"adapter": "a" * 64}, state_sha256="b" * 64,
        prompt_ids=array("i", [5, 6, 7]), generated_ids=array("i", [8, 9]), is_policy_token=array("B", [1, 0]),
        segments=array("B", [1, 2]), sampler_logprobs=array("f", [-0.5, -1.5]),
    )  # fmt: skip


@given(captures())
def test_bytes_and_back(capture: Capture) -> None:
    data = capture.to_bytes()
    again = Capture.from_bytes(data)
    assert again.to_bytes() == data
    assert again.sha256() == capture.sha256() == sha256_hex(data)
    assert list(again.prompt_ids) == list(capture.prompt_ids)
    assert (again.sampler_logprobs is None) == (capture.sampler_logprobs is None)


def test_layout_is_what_the_docstring_says() -> None:
    """Magic, header length, header; then 3 prompt ids, 2 generated ids (int32), 2 + 2 bytes, 2 float32: 32 bytes."""
    data = example().to_bytes()
    (length,) = struct.unpack("<I", data[4:8])
    assert data[:4] == b"WBC1" and len(data) == 8 + length + 4 * 3 + 4 * 2 + 2 + 2 + 4 * 2
    assert data[8 + length :][:12] == struct.pack("<3i", 5, 6, 7)
    assert parse_canonical(data[8 : 8 + length])["seed"] == "18446744073709551615"


def test_every_changed_byte_is_found() -> None:
    """A byte flipped anywhere is refused in reading, or the capture has another hash."""
    data = example().to_bytes()
    for position in range(len(data)):
        for flip in (0x01, 0x80):
            changed = bytearray(data)
            changed[position] ^= flip
            try:
                found = Capture.from_bytes(bytes(changed)).sha256()
            except ContractError:
                continue
            assert found != sha256_hex(data), position


def test_every_cut_and_every_addition_is_refused() -> None:
    data = example().to_bytes()
    for length in range(len(data)):
        with pytest.raises(ContractError):
            Capture.from_bytes(data[:length])
    with pytest.raises(CaptureError, match="1 bytes after the arrays"):
        Capture.from_bytes(data + b"\x00")


def _with_header(change: Callable[[dict[str, Any]], Any]) -> bytes:
    data = example().to_bytes()
    (length,) = struct.unpack("<I", data[4:8])
    header = parse_canonical(data[8 : 8 + length])
    change(header)
    encoded = canonical_bytes(header)
    return data[:4] + struct.pack("<I", len(encoded)) + encoded + data[8 + length :]


def _array(index: int, **values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda header: header["arrays"][index].update(values)


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.pop("seed"),
        lambda h: h.pop("arrays"),
        lambda h: h.update(schema="workbench.capture/2"),
        lambda h: h.update(extra=1),
        lambda h: h.update(seed=7),
        lambda h: h.update(decision="1"),
        lambda h: h.update(decision=True),
        lambda h: h.update(parent_decision="0"),
        lambda h: h.update(identities=[]),
        lambda h: h.update(arrays={}),
        lambda h: h["arrays"].pop(),
        lambda h: h["arrays"].pop(0),
        lambda h: h["arrays"].reverse(),
        lambda h: h["arrays"].append({"name": "more", "type": "u1", "length": 0}),
        lambda h: h["arrays"].append({"name": "segments", "type": "u1", "length": 0}),
        lambda h: h["arrays"].append("segments"),
        _array(0, length=2),
        _array(0, length=-1),
        _array(0, length="3"),
        _array(0, length=2.5),
        _array(0, type="i8"),
        _array(0, type=["i4"]),
        _array(0, type="f4"),
        _array(0, name="prompt"),
        _array(2, type="i4"),
    ],
)  # fmt: skip
def test_a_header_that_says_something_else_is_refused(change: Callable[[dict[str, Any]], Any]) -> None:
    with pytest.raises(ContractError):
        Capture.from_bytes(_with_header(change))


@pytest.mark.parametrize("name", ["is_policy_token", "segments", "sampler_logprobs"])
def test_arrays_parallel_to_the_generated_ids_have_their_length(name: str) -> None:
    with pytest.raises(CaptureError, match=f"{name}: got 1 values, expected 2"):
        replace(example(), **{name: getattr(example(), name)[:1]})


def test_a_turn_without_prompt_is_refused() -> None:
    with pytest.raises(CaptureError, match="prompt_ids"):
        replace(example(), prompt_ids=array("i"))


@given(st.lists(st.floats(), max_size=5))
def test_float64_arrays_keep_their_bits(values: list[float]) -> None:
    packed = pack_array(values, "f8")
    assert len(packed) == 8 * len(values) and pack_array(unpack_array(packed, "f8"), "f8") == packed


def test_a_torn_array_is_refused() -> None:
    with pytest.raises(CaptureError, match="multiple of 4"):
        unpack_array(b"\x00" * 5, "i4")
