"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from tests.e2e.fixtures import cache as cache
from tests.e2e.fixtures import tried as tried
from tests.e2e.fixtures import undisturbed as undisturbed
