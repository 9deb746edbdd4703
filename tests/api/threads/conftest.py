"""Databases of a test's own, SQLite and PostgreSQL: threads need commits that are real."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.api.calls import Api
from tests.api.conftest import make_caller
from tests.runs.conftest import database as database
from tests.runs.conftest import postgres_template as postgres_template
from tests.runs.conftest import sqlite_template as sqlite_template


@pytest.fixture
def caller(database: BaseDatabaseWrapper) -> Callable[..., Api]:
    """Callers in the test's own database."""
    return make_caller
