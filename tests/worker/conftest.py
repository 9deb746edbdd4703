"""Fixtures of the worker tests: the databases and the scripted study of ``tests.runs``."""

from __future__ import annotations

from tests.runs.conftest import database as database
from tests.runs.conftest import postgres_template as postgres_template
from tests.runs.conftest import sqlite_template as sqlite_template
from tests.runs.scripted import lab as lab
