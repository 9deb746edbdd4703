"""What ``verify`` found: counts by step and every problem by table, row and column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import Error as DatabaseError

from runs.errors import DomainError
from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.errors import ContractError

PROBLEM, TOMBSTONED, UNAVAILABLE = "problem", "tombstoned", "unavailable"
SHOWN, SHOWN_WHY = 120, 600
DISAGREES, UNCHECKED = 1, 3  # exit statuses of commands that verify
UNREADABLE = (
    ContractError, DomainError, DatabaseError, ObjectDoesNotExist, ValidationError, ValueError, KeyError, TypeError,
    AttributeError, IndexError, OSError,
)  # fmt: skip


@dataclass(frozen=True)
class NotChecked:
    """In place of what was got: it could not be computed again on this machine, and ``why``."""

    why: str


@dataclass(frozen=True)
class Problem:
    """One disagreement. ``severity`` tombstoned: bytes removed on purpose, which is no fault; unavailable: it could not
    be checked here, so nobody knows."""

    step: int
    table: str
    row: str
    column: str
    expected: str
    got: str
    severity: str = PROBLEM

    def __str__(self) -> str:
        return f"({self.step}) {self.table} {self.row} {self.column}: got {self.got}, expected {self.expected}"


@dataclass
class VerifyReport:
    """Result of a verification. ``checked``: how many things each step looked at, by step number."""

    steps: dict[int, str]
    checked: dict[int, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def faults(self) -> list[Problem]:
        """Problems that are neither tombstones nor unavailable."""
        return [item for item in self.problems if item.severity == PROBLEM]

    @property
    def unavailable(self) -> list[Problem]:
        """What could not be checked here."""
        return [item for item in self.problems if item.severity == UNAVAILABLE]

    @property
    def ok(self) -> bool:
        """True where everything was checked and nothing disagrees; tombstoned bytes are allowed."""
        return not self.faults and not self.unavailable

    @property
    def exit_status(self) -> int:
        """Of a command: 0 where ``ok``, 1 where anything disagrees, 3 where it only could not be checked."""
        if self.faults:
            return DISAGREES
        return UNCHECKED if self.unavailable else 0

    def unchecked(self) -> list[str]:
        """One line for each cause why something could not be checked here, with its count, the most frequent first."""
        found = Counter(item.got for item in self.unavailable)
        return [
            f"not checked here, {count} {'time' if count == 1 else 'times'}: {why}"
            for why, count in found.most_common()
        ]

    def _count(self, step: int, severity: str) -> int:
        return sum(item.step == step and item.severity == severity for item in self.problems)

    def as_json(self) -> dict[str, Any]:
        """Plain values for the command's ``--json``."""
        return {
            "ok": self.ok,
            "steps": [
                {
                    "step": number,
                    "name": name,
                    "checked": self.checked.get(number, 0),
                    "problems": self._count(number, PROBLEM),
                    "tombstoned": self._count(number, TOMBSTONED),
                    "unavailable": self._count(number, UNAVAILABLE),
                }
                for number, name in sorted(self.steps.items())
            ],
            "problems": [vars(item) for item in self.problems],
        }


def same(expected: Any, got: Any) -> bool:
    """Equality of a rebuilt and a stored value; None, False and 0 are three values."""
    if isinstance(expected, dict | list) or isinstance(got, dict | list):
        try:
            return canonical_bytes(expected) == canonical_bytes(got)
        except ContractError:
            return False
    if expected is None or got is None or isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return bool(expected == got)


def show(value: Any) -> str:
    """A value as a problem prints it; why something was not checked is longer, for it says what to do."""
    limit = SHOWN_WHY if isinstance(value, NotChecked) else SHOWN
    text = value.why if isinstance(value, NotChecked) else value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


class StepLog:
    """Writes one step's counts and problems into the report."""

    def __init__(self, report: VerifyReport, step: int, on_progress: Callable[[int, int], None] | None = None):
        self.report, self.step, self._on_progress = report, step, on_progress
        report.checked.setdefault(step, 0)

    def count(self, number: int = 1) -> None:
        """That many more things were looked at."""
        self.report.checked[self.step] += number
        if self._on_progress:
            self._on_progress(self.step, self.report.checked[self.step])

    def problem(self, table: str, row: Any, column: str, *, expected: Any, got: Any, severity: str = PROBLEM) -> None:
        """Add one problem."""
        self.report.problems.append(Problem(self.step, table, str(row), column, show(expected), show(got), severity))

    def compare(self, table: str, row: Any, expected: dict[str, Any], instance: Any) -> None:
        """Compare rebuilt columns with a row's (``a__b`` follows a relation)."""
        for column, value in expected.items():
            got = instance
            for name in column.split("__"):
                got = None if got is None else getattr(got, name)
            if not same(value, got):
                self.problem(table, row, column.split("__")[0], expected=value, got=got)

    @contextmanager
    def reading(self, table: str, row: Any, column: str = "bytes") -> Iterator[None]:
        """Turn a value that cannot be read or parsed into a problem of its row, and go on."""
        try:
            yield
        except UNREADABLE as error:
            self.problem(table, row, column, expected="readable content", got=f"{type(error).__name__}: {error}")
