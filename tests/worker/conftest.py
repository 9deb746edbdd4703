"""Fixtures of the worker tests."""

from __future__ import annotations

from tests.runs.scripted import lab as lab
