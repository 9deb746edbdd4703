"""The closed study of the outward tests, with a person of its own."""

from __future__ import annotations

from tests.evidence_outward.conftest import built, sqlite_template, world

__all__ = ["built", "sqlite_template", "world"]
