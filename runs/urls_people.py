"""Addresses of members, tokens and the audit log."""

from __future__ import annotations

from typing import Any

urlpatterns: list[Any] = []
