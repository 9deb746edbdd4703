"""Records made by hand, as the attack suite builds them too."""

from __future__ import annotations

from evidence.attacks.records import ENVIRONMENT, RUNTIME, SHA, VERSION, group_of, identities, update_of

__all__ = ["ENVIRONMENT", "RUNTIME", "SHA", "VERSION", "group_of", "identities", "update_of"]
