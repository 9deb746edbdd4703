"""The one moment that a verification reads."""

from __future__ import annotations

import threading

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from evidence import snapshot
from runs.models import StreamHead


def test_reading_is_one_moment(database: BaseDatabaseWrapper) -> None:
    """A writer commits while the reader is inside: the reader sees neither half, and does not hold it back."""

    def write() -> None:
        StreamHead.objects.create(stream="late", seq=0, sha256="0" * 64)
        connections.close_all()

    with snapshot.reading():
        assert StreamHead.objects.count() == 0
        writer = threading.Thread(target=write)
        writer.start()
        writer.join(10)
        assert not writer.is_alive()
        assert StreamHead.objects.count() == 0
    assert StreamHead.objects.count() == 1
