"""A join on disk: rows of one table found by key while another is read, in bounded memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any


class Scratch:
    """Rows under (table, key), in the order in which they were put. A temporary database, gone when closed."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("")  # a private file that SQLite removes by itself
        self._database.executescript(
            "PRAGMA cache_size=-8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
            "CREATE TABLE kept (sheet TEXT, name TEXT, place INTEGER PRIMARY KEY, body TEXT);"
            "CREATE INDEX kept_by_name ON kept (sheet, name);"
        )

    def put(self, table: str, name: str, value: Any) -> None:
        """Keep one row. Numbers that are not finite stay what they are."""
        self._database.execute(
            "INSERT INTO kept (sheet, name, body) VALUES (?, ?, ?)", (table, name, json.dumps(value, default=str))
        )

    def get(self, table: str, name: str) -> Iterator[Any]:
        """Rows of a key."""
        for (body,) in self._database.execute(
            "SELECT body FROM kept WHERE sheet = ? AND name = ? ORDER BY place", (table, name)
        ):
            yield json.loads(body)

    def close(self) -> None:
        """Drop everything."""
        self._database.close()
