"""Long series of small writes let others write: SQLite gives its lock to whoever asks at the right moment."""

from __future__ import annotations

import time

from django.db import connection

PAUSE_S = 0.15  # longer than the longest sleep of a writer that waits for SQLite's lock (0.1 s)


def give_way() -> None:
    """Pause between two transactions on SQLite; nothing inside one, or where rows are locked instead of the file."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        time.sleep(PAUSE_S)
