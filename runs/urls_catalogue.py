"""Addresses of the plan editor and of the catalogue: task sets, environments, models."""

from __future__ import annotations

from typing import Any

urlpatterns: list[Any] = []
