"""Categories of control slots by hand, admission that stays unknown, and records that contradict themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.contracts.controls import (
    CATEGORIES,
    KINDS,
    ControlSlot,
    ControlsRecord,
    admission,
    controls_uid,
    counts,
    parse_controls,
    raw_verdict,
)
from workbench.contracts.errors import RecordError
from workbench.contracts.trials import FAILED, PASSED, TestObservation
from workbench.contracts.wire import record_bytes


def slot(kind: str = "gold", statuses: str = "PP", tests: int = 2, task: str = "t1", **changes: Any) -> ControlSlot:
    """A slot whose tests passed (P) or failed (F), the rest without an observation."""
    observed = tuple(
        TestObservation(
            f"test{number}", PASSED if letter == "P" else FAILED, None if letter == "P" else "assertion", ""
        )
        for number, letter in enumerate(statuses)
    )
    complete = len(statuses) == tests
    passed = raw_verdict((item.status for item in observed), tests)
    made = ControlSlot(
        task, task, "test", kind, KINDS[kind], tests, "0" * 64, complete, passed,
        None if complete else "the driver ended with None / 9", observed, 0, None, None, None, {},
    )  # fmt: skip
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("kind", "statuses", "categories", "as_expected"),
    [
        ("gold", "PP", "raw_pass strict_pass report_binary", True),
        ("gold", "PF", "report_binary expectation_mismatch", False),
        ("gold", "P", "report_binary partial_zero expectation_mismatch", None),
        ("gold", "", "unresolved expectation_mismatch", None),
        ("empty", "FF", "raw_pass strict_pass report_binary", True),
        ("empty", "PP", "report_binary expectation_mismatch", False),
        ("empty", "F", "raw_pass report_binary partial_zero", None),
        ("empty", "", "raw_pass unresolved", None),  # nobody saw it fail: raw says pass, strict does not
        ("other_form", "PP", "raw_pass strict_pass report_binary", True),
    ],
)
def test_categories_of_one_slot(kind: str, statuses: str, categories: str, as_expected: bool | None) -> None:
    found = slot(kind, statuses)
    assert " ".join(found.categories) == categories and found.as_expected is as_expected


def test_counts_overlap_and_carry_their_denominators() -> None:
    """Four slots: a gold that passes, a gold that mismatches, an empty that fails, an empty that nobody saw.

    raw 3 (the unseen empty among them), strict 2, binary 3, unresolved 1, partial zeros 0, mismatches 1: ten over
    four slots. By kind, of two each.
    """
    slots = [slot(), slot("gold", "PF"), slot("empty", "FF"), slot("empty", "")]
    found = {(item.category, item.kind): (item.count, item.of) for item in counts(slots)}
    assert [found[name, None] for name in CATEGORIES] == [(3, 4), (2, 4), (3, 4), (1, 4), (0, 4), (1, 4)]
    assert found["raw_pass", "gold"] == (1, 2) and found["unresolved", "empty"] == (1, 2)
    assert ("raw_pass", "no_op") not in found
    assert sum(found[name, None][0] for name in CATEGORIES) == 10


SLOTS = st.lists(st.builds(slot, kind=st.sampled_from(list(KINDS)), statuses=st.text("PF", max_size=2)), max_size=12)


@given(SLOTS)
def test_what_holds_of_any_slots(slots: list[ControlSlot]) -> None:
    """Raw and mismatch part all slots, so do binary and unresolved; strict is raw and binary; a strict one is known."""
    found = {item.category: item.count for item in counts(slots) if item.kind is None}
    assert found["raw_pass"] + found["expectation_mismatch"] == len(slots)
    assert found["report_binary"] + found["unresolved"] == len(slots)
    assert found["strict_pass"] <= min(found["raw_pass"], found["report_binary"])
    assert found["partial_zero"] <= found["report_binary"]
    assert found["strict_pass"] == sum(item.as_expected is True for item in slots)


def test_admission_is_explicit_and_unknown_stays_unknown() -> None:
    good = {"gold": "PP", "empty": "FF", "no_op": "PF"}

    def of(**kinds: str) -> bool | None:
        return admission(slot(kind, statuses) for kind, statuses in kinds.items())

    assert of(**good) is True
    assert of(**good, surface_only="PP") is False
    assert of(**{**good, "gold": "P"}) is None
    assert of(gold="PP", empty="FF") is None  # a required kind was not tried
    assert of(**{**good, "gold": "P"}, other_form="PF") is False  # one wrong verdict refuses, whatever is unknown
    assert admission([]) is None


def record(*slots: ControlSlot) -> ControlsRecord:
    uid = controls_uid("7b1f6f6c-6f0e-5a57-9d6b-0f5f7a4a2d11", 1)
    return ControlsRecord(uid, "code_repair", "1.0.0", "0" * 64, "1" * 64, "hidden_calls/1", 1, (), slots)


def test_a_record_is_read_back() -> None:
    made = record(slot(), slot("empty", "F"))
    assert parse_controls(record_bytes(made)) == made


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"passed": False}, "passed: got False, expected True"),
        ({"expected": False}, "got expected False"),
        ({"complete": False}, "complete: got False"),
        ({"unknown": "broken"}, "complete: got True"),
        ({"tests": 1}, "2 of 1 tests"),
        ({"kind": "other"}, "expected one of"),
    ],
)
def test_a_slot_that_contradicts_itself_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        parse_controls(record_bytes(record(slot(), replace(slot(task="t2"), **wrong))))


def test_a_slot_twice_and_no_slot_are_refused() -> None:
    with pytest.raises(RecordError, match="expected each task and kind once"):
        parse_controls(record_bytes(record(slot(), slot())))
    with pytest.raises(RecordError, match="got 0 slots"):
        parse_controls(record_bytes(record()))
    unexplained = replace(slot(statuses="P"), unknown=None)
    with pytest.raises(RecordError, match="expected why the observation is not complete"):
        parse_controls(record_bytes(record(unexplained)))
