"""What a world for page tests holds while it is built."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.pages.text import Words
from workbench.contracts.canonical import sha256_hex

T0 = datetime(2026, 11, 30, 0, 12, 6, tzinfo=UTC)


def fake_sha(name: str) -> str:
    """A hash of nothing but a name, where no bytes are needed."""
    return sha256_hex(name.encode())


@dataclass
class World:
    """What was built, for tests to find their way."""

    study: Any = None
    plan: Any = None
    version: Any = None
    execution: Any = None
    runs: dict[str, Any] = field(default_factory=dict)
    words: Words = field(default_factory=Words)
    rng: random.Random = field(default_factory=lambda: random.Random(3))
    clock: datetime = T0

    def tick(self, seconds: float = 3.0) -> datetime:
        """The next moment."""
        self.clock += timedelta(seconds=seconds)
        return self.clock
