"""What a check of a bundle finds: counts, problems and what could not be checked, each named."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

SHOWN = 160


@dataclass(frozen=True)
class Fault:
    """One disagreement. ``area``: file, signature, chain, anchor, plan, document, source, excerpt, figure, claim."""

    area: str
    subject: str
    got: str
    expected: str

    def __str__(self) -> str:
        return f"{self.area}: {self.subject}: got {self.got}, expected {self.expected}"


@dataclass
class Findings:
    """Filled step by step."""

    study: str = ""
    fingerprint: str = ""
    checked: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """No fault; what could not be checked is no fault and is named."""
        return not self.faults

    def fault(self, area: str, subject: Any, *, got: Any, expected: Any) -> None:
        """Add one disagreement."""
        self.faults.append(Fault(area, str(subject), _short(got), _short(expected)))

    def same(self, area: str, subject: Any, expected: Any, got: Any) -> bool:
        """Count one comparison, and add it where the two differ."""
        self.checked[area] += 1
        if expected != got:
            self.fault(area, subject, got=got, expected=expected)
            return False
        return True

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "ok": self.ok,
            "study": self.study,
            "fingerprint": self.fingerprint,
            "checked": dict(sorted(self.checked.items())),
            "problems": [vars(item) for item in self.faults],
            "unchecked": self.unchecked,
        }


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
