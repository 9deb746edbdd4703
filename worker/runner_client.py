"""The worker's side of the runner: starts it, hands it jobs, and ends it when a job is cancelled.

This module never imports torch, so that a process that forks may use it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from worker.frames import LENGTH, body_length, pack, unpack

Progress = Callable[[Any], None]


class RunnerDied(RuntimeError):
    """The process ended inside a job (killed, out of memory, crashed). ``returncode`` < 0: by that signal."""

    def __init__(self, message: str, returncode: int | None):
        super().__init__(message)
        self.returncode = returncode


class RunnerCancelled(RuntimeError):
    """The job was stopped because ``should_cancel`` said so; its process group is gone."""


class RunnerFailed(RuntimeError):
    """The job raised. ``boundary``: FaultBoundary class name, or None where our own code broke.

    ``no_room``: the error number where there was no room to write, else None.
    """

    def __init__(
        self, message: str, *, boundary: str | None, class_name: str, trace: str, no_room: int | None = None
    ) -> None:
        super().__init__(f"{class_name}: {message}")
        self.boundary, self.class_name, self.trace, self.no_room = boundary, class_name, trace, no_room


class RunnerClient:
    """One runner process, started at the first call and kept. Not for use by two threads at once.

    ``env`` is the child's whole environment; ``store`` and ``cache_dir`` go with each request.
    """

    def __init__(
        self, env: Mapping[str, str], *, store: Path, cache_dir: Path, service: str = "worker.engine.service"
    ) -> None:
        self.env, self.store, self.cache_dir, self.service = dict(env), Path(store), Path(cache_dir), service
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: int | None = None
        self._answers: int | None = None
        self._buffer = bytearray()

    @property
    def pid(self) -> int | None:
        """Process id while it runs, which is its process group too."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def call(
        self,
        op: str,
        spec: dict[str, Any],
        *,
        on_progress: Progress | None = None,
        should_cancel: Callable[[], bool] = lambda: False,
        poll_s: float = 0.2,
    ) -> dict[str, Any]:
        """Run one job and return its value. After any of the errors below the next call starts a new process.

        ``should_cancel`` is asked every ``poll_s`` seconds, so it is also the place for a heartbeat.
        Raises ``RunnerFailed``, ``RunnerDied`` or ``RunnerCancelled``. What ``should_cancel`` or
        ``on_progress`` raises ends the process too, and passes on.
        """
        self._ensure_started()
        request = {"op": op, "spec": spec, "store": str(self.store), "cache_dir": str(self.cache_dir)}
        try:
            self._send(pack(request))
            while True:
                frame = self._next_frame(poll_s)
                if frame is None:
                    if should_cancel():
                        raise RunnerCancelled(f"{op}: cancelled")
                    continue
                if frame["kind"] == "progress":
                    if on_progress is not None:
                        on_progress(frame["value"])
                    continue
                break
        except BaseException:
            self.kill()  # a job that nobody waits for must not go on
            raise
        if frame["kind"] == "error":
            self.kill()  # what a job that raised left in the resident model is unknown
            raise RunnerFailed(
                frame["message"], boundary=frame["boundary"], class_name=frame["class"], trace=frame["traceback"],
                no_room=frame["no_room"],
            )  # fmt: skip
        return dict(frame["value"])

    def close(self, timeout_s: float = 2.0) -> None:
        """End the process through its pipe; kill its group where it does not go."""
        if self._process is None:
            return
        if self._requests is not None:
            os.close(self._requests)
            self._requests = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the whole process group: what it wrote is complete or absent, never torn."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for descriptor in (self._requests, self._answers):
            if descriptor is not None:
                os.close(descriptor)
        self._requests = self._answers = None
        self._buffer.clear()

    def start(self) -> None:
        """Start the process now and have it load torch, without waiting: the first job then finds it ready."""
        self._ensure_started(preload=True)

    def _ensure_started(self, *, preload: bool = False) -> None:
        if self.pid is not None:
            return
        self.kill()  # clear what a dead one left
        child_reads, self._requests = os.pipe()
        self._answers, child_writes = os.pipe()
        command = [sys.executable, "-m", "worker.runner", "--service", self.service, "--parent", str(os.getpid())]
        command += ["--requests", str(child_reads), "--answers", str(child_writes)]
        command += ["--preload"] if preload else []
        try:
            self._process = subprocess.Popen(
                command,
                env=self.env,
                cwd=Path(__file__).resolve().parent.parent,
                pass_fds=(child_reads, child_writes),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(child_reads)
            os.close(child_writes)
        os.set_blocking(self._requests, False)

    def _died(self) -> RunnerDied:
        assert self._process is not None
        try:
            code: int | None = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = None  # it closed its pipe and hangs; the caller kills it
        return RunnerDied(f"runner ended inside a job with exit status {code}", code)

    def _send(self, data: bytes) -> None:
        assert self._requests is not None
        view = memoryview(data)
        while view:
            select.select([], [self._requests], [])
            try:
                view = view[os.write(self._requests, view[:65536]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise self._died() from error

    def _next_frame(self, timeout_s: float) -> dict[str, Any] | None:
        """Next whole frame, or None after ``timeout_s``; a slow frame does not hold a cancellation up."""
        assert self._answers is not None
        end = time.monotonic() + timeout_s
        while True:
            if len(self._buffer) >= LENGTH.size:
                whole = LENGTH.size + body_length(bytes(self._buffer[: LENGTH.size]))
                if len(self._buffer) >= whole:
                    body = bytes(self._buffer[LENGTH.size : whole])
                    del self._buffer[:whole]
                    return unpack(body)
            readable, _, _ = select.select([self._answers], [], [], max(0.0, end - time.monotonic()))
            if not readable:
                return None
            data = os.read(self._answers, 1 << 20)
            if not data:
                raise self._died()
            self._buffer += data


_resident: tuple[int, RunnerClient] | None = None


def resident(env: Mapping[str, str], *, store: Path, cache_dir: Path) -> RunnerClient:
    """The client of this process, kept between calls; another one for other arguments or in a forked child."""
    global _resident
    if _resident is not None and _resident[0] == os.getpid():
        client = _resident[1]
        if (client.env, client.store, client.cache_dir) == (dict(env), Path(store), Path(cache_dir)):
            return client
        client.close()
    _resident = (os.getpid(), RunnerClient(env, store=store, cache_dir=cache_dir))
    return _resident[1]
