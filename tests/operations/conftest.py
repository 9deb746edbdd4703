"""Fixtures of the operations tests: the databases and the laboratory of the row tests."""

from __future__ import annotations

from tests.runs.conftest import database as database
from tests.runs.conftest import lab as lab
from tests.runs.conftest import postgres_template as postgres_template
from tests.runs.conftest import sqlite_template as sqlite_template
