"""One row of the table of rights, and the answers that many rows share. ``rights`` says what the letters mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

EVERYONE = "oooooooo"
SIGNED_IN = "looooooo"
READERS = "nnoooooo"  # members read; for others it does not exist
READERS_SIGNED_IN = "lnoooooo"
WRITERS = "lnfoffoo"  # researchers and admins
MANAGERS = "lnffffoo"
AUDITORS = "lnffofoo"
SITE_ADMINS = "lnnnnnno"
NEVER = "nnnnnnnn"


@dataclass(frozen=True)
class Row:
    """One address by its name, one method. ``path`` takes the parts of ``Place.parts``."""

    name: str
    method: str
    path: str
    expected: str
    body: dict[str, Any] = field(default_factory=dict)
    token: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    json: bool = False  # a page that takes JSON; the API always does

    @property
    def is_api(self) -> bool:
        """Whether a token can ask it."""
        return self.path.startswith("/api/") and self.path != "/api/"
