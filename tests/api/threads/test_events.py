"""Events while writers append: every follower sees each one once."""

from __future__ import annotations

import threading

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.actions.actors import service_actor
from runs.actions.receipts import append_receipt
from runs.api import events
from runs.api.events import Stream, decode, encode
from tests.pages.state import T0


def test_nothing_is_lost_while_writers_append_and_followers_poll(database: BaseDatabaseWrapper) -> None:
    """3 streams, 2 writers of 12 events each per stream, 3 followers: each sees 72 events once, in order."""
    actor = service_actor("scheduler")
    streams = [Stream("run", key, f"run:00000000-0000-4000-8000-00000000000{key}") for key in (1, 2, 3)]
    names = [item.name for item in streams]
    total, done = 3 * 2 * 12, threading.Event()
    seen: list[list[tuple[str, int]]] = [[] for _ in range(3)]

    def write(writer: int) -> None:
        try:
            for n in range(12):
                for name in names:
                    with transaction.atomic():
                        append_receipt(name, "test", None, {"by": writer, "n": n}, actor=actor, at=T0)
        finally:
            connection.close()

    def read(found: list[tuple[str, int]]) -> None:
        try:
            cursor = encode(streams, {})
            while True:
                last = done.is_set()
                positions = decode(cursor, streams)
                rows, more = events.events_since(names, positions, 7)
                for row in rows:
                    positions[row.stream] = row.seq
                    found.append((row.stream, row.seq))
                cursor = encode(streams, positions)
                if last and not more:
                    return
        finally:
            connection.close()

    readers = [threading.Thread(target=read, args=(found,)) for found in seen]
    writers = [threading.Thread(target=write, args=(n,)) for n in range(2)]
    for thread in [*readers, *writers]:
        thread.start()
    for thread in writers:
        thread.join(60)
    done.set()
    for thread in readers:
        thread.join(60)
    for found in seen:
        assert len(found) == len(set(found)) == total
        for name in names:
            assert [seq for stream, seq in found if stream == name] == list(range(1, 25))
