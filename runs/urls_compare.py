"""Addresses of comparison pages: pairs, runs side by side, lineage, discarded work."""

from __future__ import annotations

from typing import Any

urlpatterns: list[Any] = []
