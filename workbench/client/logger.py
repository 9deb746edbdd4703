"""``Workbench.log_run``: a training program logs, and goes on whatever happens to the server.

``log`` only puts values into a list. A thread writes them to the spool in batches and sends them; while
the server is away they stay on disk and are sent when it is back, or later by ``Workbench.replay``. What
no repeat mends (no such study, no right, no token) is said once: by an exception where a run begins.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import threading
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .errors import ProblemError, WorkbenchError
from .spool import Spool
from .transport import RETRIED, Answer, Transport

log = logging.getLogger(__name__)
POINTS_MOST = 1000  # of one batch
EVERY = 2.0  # seconds between batches
LONGEST_PAUSE = 30.0  # seconds between attempts while the server is away
FIRST_TIMEOUT = 10.0  # seconds that the beginning of a run waits for a server; after that it counts as away
HELD_MOST = 200_000  # points in memory; more are dropped, which only a full disk can bring about


class RunLogger:
    """One run. Use it in a ``with`` block, or call ``finish``.

    The server is asked once at the beginning: what it refuses for good is raised then (``ProblemError``), before
    anything was trained. Later errors of the server are log lines, never exceptions.
    ``dropped``: values that were no numbers, or that neither memory nor disk could hold. ``refused``: batches
    that the server refused for good. ``uid``: the run's uid, None until the server has answered once.
    """

    def __init__(
        self,
        transport: Transport,
        study: str,
        name: str = "",
        *,
        framework: str = "",
        tags: Mapping[str, str] | None = None,
        folder: Path,
        every: float | None = EVERY,
    ):
        self._transport = Transport(transport.client, retries=0)
        header = {
            "study": study, "name": name, "framework": framework, "key": uuid.uuid4().hex,
            "tags": dict(tags or {}), "started_at": _now_text(),
        }  # fmt: skip
        self.spool = Spool.create(folder, name or study, header)
        self._sender = Sender(self._transport, self.spool)
        try:
            self._sender.begin()
        except ProblemError:
            self.spool.remove()  # nothing was logged yet
            raise
        self.dropped = 0
        self._held: list[dict[str, Any]] = []
        self._parameters: dict[str, str] = {}
        self._tags: dict[str, str | None] = {}
        self._lock = threading.Lock()
        self._draining = threading.Lock()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._every = every
        self._thread: threading.Thread | None = None
        if every is not None:
            self._thread = threading.Thread(target=self._work, name=f"log {name or study}", daemon=True)
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish("finished" if kind is None else "killed" if kind is KeyboardInterrupt else "failed")

    @property
    def uid(self) -> str | None:
        """The run's uid on the server."""
        return self._sender.uid

    @property
    def refused(self) -> int:
        """Batches that the server refused for good."""
        return self._sender.refused

    def log(self, values: Mapping[str, float], step: int, *, time_ms: int | None = None) -> None:
        """Take values at a step. A value that is no number is counted and left out."""
        at = round(time.time() * 1000) if time_ms is None else time_ms
        points = []
        for name, value in values.items():
            try:
                points.append({"name": str(name), "value": _number(value), "step": int(step), "time_ms": int(at)})
            except (TypeError, ValueError, OverflowError) as error:
                self.dropped += 1
                log.warning("log %s at step %s: %s; left out", name, step, error)
        with self._lock:
            room = max(0, HELD_MOST - len(self._held))
            self._held += points[:room]
            self.dropped += len(points) - len(points[:room])
            is_full = len(self._held) >= POINTS_MOST
        if is_full:
            self._wake.set()

    def parameters(self, values: Mapping[str, Any]) -> None:
        """Take parameters, as text; each has one value for good."""
        with self._lock:
            self._parameters.update({str(key): str(value) for key, value in values.items()})

    def tag(self, key: str, value: str | None) -> None:
        """Set a tag, or take it away with None."""
        with self._lock:
            self._tags[str(key)] = None if value is None else str(value)

    def flush(self) -> bool:
        """Write what was taken to disk and send what waits; whether the server has everything."""
        with self._draining:
            self._to_disk()
            return self._sender.send()

    def finish(self, status: str = "finished", *, timeout: float = 30.0) -> bool:
        """End the run and wait at most ``timeout`` seconds for the server; whether it has everything.

        What could not be sent stays in ``spool.path`` for ``Workbench.replay``. A server that refused for good is not
        waited for.
        """
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout)
            self._thread = None
        with contextlib.suppress(OSError), self._draining:
            self._to_disk()
            self.spool.append({"kind": "end", "status": status, "at": _now_text()})
        end, pause = time.monotonic() + timeout, 0.2
        while True:
            with self._draining:
                if self._sender.send():
                    if not self._sender.refused:
                        self.spool.remove()
                    return True
            if self._sender.stopped:
                return False
            if time.monotonic() + pause > end:
                log.warning("log: the server does not have everything; the rest waits in %s", self.spool.path)
                return False
            self._transport.sleep(pause)
            pause = min(2.0, pause * 2)

    def _to_disk(self) -> None:
        with self._lock:
            held, self._held = self._held, []
            parameters, self._parameters = self._parameters, {}
            tags, self._tags = self._tags, {}
        batches = [held[start : start + POINTS_MOST] for start in range(0, len(held), POINTS_MOST)] or [[]]
        for position, points in enumerate(batches):
            line: dict[str, Any] = {"kind": "log", "points": points}
            if position == 0:
                line |= {"parameters": parameters, "tags": tags}
            if not (points or line.get("parameters") or line.get("tags")):
                continue
            try:
                self.spool.append(line)
            except OSError as error:
                self.dropped += len(points)
                log.warning("log: %d points could not be written to %s: %s", len(points), self.spool.path, error)

    def _work(self) -> None:
        """Batches until ``finish``; an unknown error is a log line, and the next round tries again."""
        pause = 0.0
        while not self._stop.is_set():
            self._wake.wait((self._every or EVERY) + pause)
            self._wake.clear()
            try:
                pause = 0.0 if self.flush() else min(LONGEST_PAUSE, max(1.0, pause * 2))
            except Exception:
                log.exception("log: a batch could not be handled")
                pause = LONGEST_PAUSE


class Sender:
    """Sends a spool's lines in order. ``uid`` None: the server has not said yet which run it is.

    ``stopped``: the server gave an answer that no repeat of this process mends; nothing more is sent.
    """

    def __init__(self, transport: Transport, spool: Spool):
        self._transport, self._spool = transport, spool
        self.uid: str | None = None
        self.refused = 0
        self.stopped = False

    def begin(self) -> None:
        """Make the run now if the server is there. Raises ``ProblemError`` for what no repeat mends."""
        try:
            self.uid = self._open(FIRST_TIMEOUT)
        except ProblemError as error:
            if _is_final(error):
                raise
        except (WorkbenchError, OSError) as error:
            log.warning("log: the server is away, values wait in %s: %s", self._spool.path, error)

    def send(self) -> bool:
        """Send what waits; False where the server was away. What it refuses for good is counted and passed over."""
        if self.stopped:
            return False
        try:
            if self.uid is None:
                self.uid = self._open()
            for line, offset in self._spool.waiting():
                self._deliver(line)
                self._spool.mark(offset)
        except ProblemError as error:
            self.stopped = _is_final(error)
            if self.stopped:
                log.error("log: %s; nothing more is sent. What was logged waits in %s", error, self._spool.path)
            else:
                log.warning("log: %s", error)
            return False
        except (WorkbenchError, OSError) as error:
            log.info("log: the server is away: %s", error)
            return False
        return True

    def _open(self, timeout: float | None = None) -> str:
        """The run's uid: the run is made once for its key, however often this asks."""
        with self._spool.path.open("rb") as file:
            header = json.loads(file.readline())
        body = {name: header[name] for name in ("name", "framework", "key", "tags", "started_at")}
        try:
            answer: Answer = self._transport.post(f"studies/{header['study']}/logged-runs", body, timeout=timeout)
        except ProblemError as error:
            raise self._named(error, str(header["study"])) from None
        return str(answer.value["uid"])

    def _named(self, error: ProblemError, study: str) -> ProblemError:
        """The same refusal, with the study that it is about and what mends it."""
        detail = f"study {study!r}: {error.detail}"
        if error.status == 404:
            page = f"{str(self._transport.client.base_url).removesuffix('api/v1/')}studies/new/"
            detail = (
                f"study {study!r}: no study of this slug that you can see. Create it on {page} or with "
                f"Workbench().create_study({study!r}, 'Its title') and a token with the scope write; if it exists, "
                "have an admin of it make you a researcher"
            )
        return type(error)(error.status, error.title, detail, error.errors, error.retry_after, error.headers)

    def _deliver(self, line: dict[str, Any]) -> None:
        kind = line.get("kind")
        if kind == "log":
            body = {name: line[name] for name in ("points", "parameters", "tags") if line.get(name)}
            self._change("log", body)
        elif kind == "end":
            self._change("status", {"status": line["status"], "ended_at": line["at"]})

    def _change(self, verb: str, body: dict[str, Any]) -> None:
        try:
            self._transport.post(f"logged-runs/{self.uid}/{verb}", body)
        except ProblemError as error:
            if error.status in RETRIED or error.status >= 500 or error.status in (401, 403, 404, 409):
                raise  # a later attempt, or another token, may do better
            self.refused += 1
            log.warning("log: the server refused a batch for good: %s", error)


def _is_final(error: ProblemError) -> bool:
    """Whether no repeat by this process mends a refusal: a 4xx, but no timeout, conflict, too early, too many."""
    return 400 <= error.status < 500 and error.status not in RETRIED | {408, 409, 425}


def replay(transport: Transport, spool: Spool) -> bool:
    """Send what an earlier process left; its file goes once the server has everything."""
    sender = Sender(Transport(transport.client, retries=2), spool)
    done = sender.send()
    if done and not sender.refused:
        spool.remove()
    return done


def _number(value: Any) -> Any:
    """A value as the API takes it. Raises ``ValueError`` or ``TypeError`` for what is no number."""
    if isinstance(value, str | bytes):
        raise ValueError(f"got {type(value).__name__}, expected a number")
    number = float(value)
    if math.isfinite(number):
        return number
    return {"nonfinite": "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"}


def _now_text() -> str:
    return datetime.now(UTC).isoformat()
