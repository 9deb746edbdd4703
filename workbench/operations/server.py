"""The web server's worker with deadlines for slow clients, who would else hold its threads for ever.

A request's head must arrive within ``HEAD_SECONDS``, its body within ``BODY_SECONDS`` after that; then
its connection is shut for reading. An answer that nobody takes is given up after ``SEND_SECONDS``.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

HEAD_SECONDS = 10.0
BODY_SECONDS = 60.0
SEND_SECONDS = 60
LOOK_EVERY = 0.5


class Worker(ThreadWorker):
    """Threads as before; one more thread looks at the deadlines."""

    def init_process(self) -> None:
        """Start the thread of the deadlines, then serve."""
        self._deadlines: dict[Any, float] = {}
        self._deadlines_lock = threading.Lock()
        threading.Thread(target=self._watch, name="deadlines", daemon=True).start()
        super().init_process()

    def handle(self, conn: Any) -> Any:
        """One request; the deadline of its head runs from here, where its first bytes have arrived or may arrive."""
        with contextlib.suppress(OSError):
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
        self._set(conn, HEAD_SECONDS)
        try:
            return super().handle(conn)
        finally:
            self._set(conn, None)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """The head is there: what may still be slow is a body."""
        has_body = any(name in ("CONTENT-LENGTH", "TRANSFER-ENCODING") and value != "0" for name, value in req.headers)
        self._set(conn, BODY_SECONDS if has_body else None)
        return super().handle_request(req, conn)

    def _set(self, conn: Any, seconds: float | None) -> None:
        with self._deadlines_lock:
            if seconds is None:
                self._deadlines.pop(conn, None)
            else:
                self._deadlines[conn] = time.monotonic() + seconds

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_EVERY)
            now = time.monotonic()
            with self._deadlines_lock:
                late = [conn for conn, deadline in self._deadlines.items() if deadline < now]
                for conn in late:
                    del self._deadlines[conn]
            for conn in late:
                with contextlib.suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RD)  # a waiting read ends as if the client had gone
