"""One consistent view of the database for a long reading, without holding back a writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

BEGIN = {"sqlite": "BEGIN DEFERRED", "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}


@contextmanager
def reading() -> Iterator[None]:
    """Everything read inside belongs to one moment. Inside a caller's transaction it adds nothing.

    ``transaction.atomic()`` would take SQLite's write lock, for it begins IMMEDIATE here.
    """
    if connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute(BEGIN[connection.vendor])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
