"""Capture files: exact round trip, determinism, refusal of damage."""

from __future__ import annotations

import threading
from array import array
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.capturefile import read_capture, read_index, read_trajectory, write_group_file
from workbench.contracts.capture import Capture
from workbench.contracts.errors import CaptureError, ContractError

IDS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=12)


def capture(uid: str, decision: int, prompt: list[int], generated: list[int], *, logprobs: bool = True) -> bytes:
    return Capture(
        trajectory_uid=uid,
        decision=decision,
        branch="main",
        parent_decision=decision - 1 if decision else None,
        policy_version=3,
        seed="12345678901234567890",
        sampling={"temperature": 1.0},
        identities={"adapter": "a" * 64},
        state_sha256="b" * 64,
        prompt_ids=array("i", prompt),
        generated_ids=array("i", generated),
        is_policy_token=array("B", [1] * len(generated)),
        segments=array("B", [2] * len(generated)),
        sampler_logprobs=array("f", [-0.5] * len(generated)) if logprobs else None,
    ).to_bytes()


@st.composite
def trajectories(draw: st.DrawFn) -> list[tuple[str, list[bytes]]]:
    """Turns that mostly continue the one before, and sometimes do not."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        context: list[int] = draw(IDS)
        turns = []
        for decision in range(draw(st.integers(0, 4))):
            generated = draw(st.lists(st.integers(0, 2**31 - 1), max_size=6))
            turns.append(capture(f"t{number}", decision, context, generated, logprobs=draw(st.booleans())))
            carried = context + generated if draw(st.integers(0, 3)) else draw(IDS)
            context = carried + draw(IDS)
        found.append((f"t{number}", turns))
    return found


@settings(max_examples=60, deadline=None)
@given(trajectories())
def test_round_trip_gives_the_exact_bytes(group: list[tuple[str, list[bytes]]]) -> None:
    blob, refs = write_group_file(group)
    assert write_group_file(group) == (blob, refs)
    expected = [data for _, turns in group for data in turns]
    assert [read_capture(blob, ref) for ref in refs] == expected
    assert read_index(blob) == refs
    for uid, turns in group:
        assert read_trajectory(blob, [ref for ref in refs if ref.trajectory_uid == uid]) == turns


def test_shared_prompt_prefix_is_stored_once() -> None:
    """Turn 2's prompt holds turn 1's 4,000 ids: two turns cost less than 1.2 of one."""
    import random

    noise = random.Random(0)
    first = [noise.randrange(2**30) for _ in range(4000)]
    one, _ = write_group_file([("t", [capture("t", 0, first, [1, 2])])])
    both, _ = write_group_file([("t", [capture("t", 0, first, [1, 2]), capture("t", 1, [*first, 1, 2, 9], [5])])])
    assert len(both) < 1.2 * len(one)


def test_changed_byte_is_refused() -> None:
    """Every single byte of the frame: the checksum, the layout or the hash catches it."""
    blob, refs = write_group_file([("t", [capture("t", 0, [1, 2, 3], [4, 5])])])
    for place in range(refs[0].offset, len(blob)):
        damaged = bytearray(blob)
        damaged[place] ^= 1
        with pytest.raises(ContractError):
            read_capture(bytes(damaged), refs[0])


def test_wrong_reference_is_refused() -> None:
    blob, refs = write_group_file([("t", [capture("t", 0, [1, 2, 3], [4, 5])])])
    with pytest.raises(CaptureError, match="capture_sha256: got none"):
        read_capture(blob, replace(refs[0], capture_sha256="0" * 64))
    with pytest.raises(CaptureError, match="expected a frame inside"):
        read_capture(blob, replace(refs[0], offset=len(blob)))
    with pytest.raises(CaptureError, match="end: got"):
        read_index(blob + b"x")


def test_capture_of_another_trajectory_is_refused() -> None:
    with pytest.raises(CaptureError, match="trajectory_uid: got t, expected other"):
        write_group_file([("other", [capture("t", 0, [1], [2])])])


def test_threads_share_no_compressor() -> None:
    """Four threads write the same group 50 times: equal bytes each time."""
    group = [("t", [capture("t", 0, list(range(500)), [4, 5])])]
    expected = write_group_file(group)
    results: list[bool] = []

    def work() -> None:
        results.extend(write_group_file(group) == expected for _ in range(50))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [True] * 200
