"""Environment controls: trees whose verdict is known before a verifier sees them, and what it said of each.

A slot is one task under one kind of control. Kinds and what must come of them:

    gold          the reference repair                     must pass
    empty         every file there, none with content      must fail
    no_op         the tree as the task begins with it      must fail
    step_removed  the reference without one of its steps   must fail
    surface_only  looks repaired, repairs nothing          must fail
    other_form    the reference written another way        must pass

``passed`` is the raw verdict: each test of the fixed lists was seen to pass. A test without an observation did not, so
a raw verdict may be a fail that nobody observed; only a complete observation makes a slot ``as_expected`` or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .canonical import derive_uid
from .errors import RecordError
from .trials import PASSED, TestObservation
from .wire import parse_record

CONTROLS = "controls"  # kind of the document
KINDS: Mapping[str, bool] = {
    "gold": True,
    "empty": False,
    "no_op": False,
    "step_removed": False,
    "surface_only": False,
    "other_form": True,
}
REQUIRED = ("gold", "empty", "no_op")  # every task has them; the others come with the task
RAW_PASS, STRICT_PASS, REPORT_BINARY = "raw_pass", "strict_pass", "report_binary"
UNRESOLVED, PARTIAL_ZERO, MISMATCH = "unresolved", "partial_zero", "expectation_mismatch"
CATEGORIES = (RAW_PASS, STRICT_PASS, REPORT_BINARY, UNRESOLVED, PARTIAL_ZERO, MISMATCH)


@dataclass(frozen=True)
class ControlSlot:
    """One task under one kind. ``tests``: how many the fixed lists hold. ``observed``: without details, by test.

    ``complete``: every test of the lists has an observation, else ``unknown`` says why not. ``passed``: raw verdict.
    """

    task_uid: str
    task_key: str
    split: str
    kind: str
    expected: bool
    tests: int
    tree_sha256: str
    complete: bool
    passed: bool
    unknown: str | None
    observed: tuple[TestObservation, ...]
    exit_code: int | None
    signal: int | None
    stdout_sha256: str | None
    stderr_sha256: str | None
    level: dict[str, Any]

    @property
    def as_expected(self) -> bool | None:
        """Whether the verdict is the expected one; None where the observation is not complete."""
        return self.passed == self.expected if self.complete else None

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories that the slot belongs to. They overlap: no sum of them is a number of slots."""
        reported = bool(self.observed)  # a score can be read off it, of however few tests
        found = {
            RAW_PASS: self.passed == self.expected,
            STRICT_PASS: self.as_expected is True,
            REPORT_BINARY: reported,
            UNRESOLVED: not reported,
            PARTIAL_ZERO: reported and not self.complete and not self.passed,
            MISMATCH: self.passed != self.expected,
        }
        return tuple(name for name in CATEGORIES if found[name])


@dataclass(frozen=True)
class ControlsRecord:
    """The controls of an environment version on a task set; the ``ordinal``-th time from 1. ``splits``: those asked."""

    uid: str
    environment: str
    environment_version: str
    code_sha256: str
    task_set_sha256: str
    verifier: str
    ordinal: int
    splits: tuple[str, ...]
    slots: tuple[ControlSlot, ...]


@dataclass(frozen=True)
class ControlsSpec:
    """``run_controls``: which environment, and tasks of which splits; no split means all."""

    environment: str
    config: dict[str, Any]
    splits: tuple[str, ...]


@dataclass(frozen=True)
class SlotTiming:
    """Seconds of one slot, in the order of the slots; hashed nowhere."""

    setup_s: float
    run_s: float
    cleanup_s: float
    service_s: float


@dataclass(frozen=True)
class ControlsResult:
    """Answer to ``ControlsSpec``. The task set's bytes lie in the store."""

    environment: str
    environment_version: str
    code_sha256: str
    task_set_sha256: str
    verifier: str
    splits: tuple[str, ...]
    slots: tuple[ControlSlot, ...]
    timings: tuple[SlotTiming, ...]


@dataclass(frozen=True)
class Count:
    """``count`` of ``of`` slots of a category; ``kind`` None: of all kinds."""

    category: str
    kind: str | None
    count: int
    of: int


def controls_uid(task_set_uid: str, ordinal: int) -> str:
    """Uid of a record."""
    return str(derive_uid(task_set_uid, f"controls:{ordinal}"))


def raw_verdict(statuses: Iterable[str], tests: int) -> bool:
    """Whether each of the ``tests`` tests was seen to pass."""
    found = list(statuses)
    return len(found) == tests > 0 and all(status == PASSED for status in found)


def counts(slots: Sequence[ControlSlot]) -> list[Count]:
    """Every category over all slots, then by kind, each beside its denominator."""
    kinds = [None, *(kind for kind in KINDS if any(slot.kind == kind for slot in slots))]
    found = []
    for kind in kinds:
        of = [slot for slot in slots if kind is None or slot.kind == kind]
        found += [Count(name, kind, sum(name in slot.categories for slot in of), len(of)) for name in CATEGORIES]
    return found


def admission(slots: Iterable[ControlSlot]) -> bool | None:
    """Whether the slots of one task admit it to evaluation: all are as expected, the required kinds among them.

    False where one is not; None where none is wrong but something is not known: unknown admits nothing and refuses
    nothing.
    """
    found = {slot.kind: slot.as_expected for slot in slots}
    if False in found.values():
        return False
    return None if None in found.values() or any(kind not in found for kind in REQUIRED) else True


def parse_controls(data: bytes) -> ControlsRecord:
    """The record of canonical bytes, its inner relations checked. Raises ``RecordError``."""
    record = parse_record(ControlsRecord, data)
    if not record.slots or record.ordinal < 1:
        raise RecordError(f"controls: got {len(record.slots)} slots, ordinal {record.ordinal}, expected at least 1")
    keys = [(slot.task_uid, slot.kind) for slot in record.slots]
    if len(set(keys)) != len(keys):
        raise RecordError("slots: got one twice, expected each task and kind once")
    for slot in record.slots:
        check_slot(slot)
    return record


def check_slot(slot: ControlSlot) -> None:
    """Raises ``RecordError`` where a slot contradicts itself."""
    where = f"slot {slot.task_key} {slot.kind}"
    if slot.kind not in KINDS or slot.expected != KINDS[slot.kind]:
        raise RecordError(f"{where}: got expected {slot.expected}, expected one of {dict(KINDS)}")
    names = [item.test for item in slot.observed]
    if len(set(names)) != len(names) or len(names) > slot.tests:
        raise RecordError(f"{where}.observed: got {len(names)} of {slot.tests} tests, expected each at most once")
    if slot.complete != (len(names) == slot.tests and slot.unknown is None):
        raise RecordError(f"{where}.complete: got {slot.complete} with {len(names)} of {slot.tests} and {slot.unknown}")
    if not slot.complete and slot.unknown is None:
        raise RecordError(f"{where}.unknown: got nothing, expected why the observation is not complete")
    verdict = raw_verdict((item.status for item in slot.observed), slot.tests)
    if slot.passed != verdict:
        raise RecordError(f"{where}.passed: got {slot.passed}, expected {verdict} from its observations")
