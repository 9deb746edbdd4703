"""Holds bwrap before its program until the process that will run it is bounded from outside.

With that no shell, no other program and no function between fork and exec is needed to set bounds. Such a function
makes Python copy the page tables of its whole process, which costs one that holds a model more than the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import time
from types import TracebackType

from .base import Limits, SandboxFault

ANSWER_BYTES = 65_536
START_SECONDS = 20.0  # for bwrap to make its child, on a machine that is busy
_CHILD = re.compile(rb'"child-pid": (\d+)')


class Gate:
    """Two pipes: what bwrap says of its child, and what lets the child go on. Closed with the context."""

    def __init__(self) -> None:
        self._status, self._told = os.pipe()
        self._waits, self._opens = os.pipe()
        self._left = {self._status, self._told, self._waits, self._opens}
        self._said = b""
        self.is_open = False

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for descriptor in tuple(self._left):
            self._close(descriptor)

    @property
    def inherited(self) -> tuple[int, int]:
        """Descriptors that bwrap needs."""
        return self._told, self._waits

    def arguments(self) -> list[str]:
        """Arguments of bwrap."""
        return ["--json-status-fd", str(self._told), "--block-fd", str(self._waits)]

    def child(self) -> int | None:
        """Process id of bwrap's child, once there is one; None where bwrap ended before. Raises ``SandboxFault``."""
        self._close(self._told)
        self._close(self._waits)
        end = time.monotonic() + START_SECONDS
        while (found := _CHILD.search(self._said)) is None:
            if not select.select([self._status], [], [], max(0.0, end - time.monotonic()))[0]:
                raise SandboxFault(f"sandbox: got no process of bwrap within {START_SECONDS:g} s, expected one")
            part = os.read(self._status, ANSWER_BYTES)
            if not part:
                return None
            self._said += part
        return int(found[1])

    def open(self) -> None:
        """Let the program start."""
        with contextlib.suppress(BrokenPipeError):  # bwrap has ended meanwhile, and says why on its error stream
            os.write(self._opens, b"1")
        self.is_open = True

    def said(self) -> bytes:
        """All that bwrap said of its child; called once bwrap has ended. Its program never holds the other end."""
        os.set_blocking(self._status, False)
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self._status, ANSWER_BYTES):
                self._said += part
        return self._said

    def _close(self, descriptor: int) -> None:
        if descriptor in self._left:
            self._left.remove(descriptor)
            os.close(descriptor)


def bound(pid: int, limits: Limits, *, memory: bool, processes: bool) -> None:
    """Set the rlimits of a process that waits. ``memory``, ``processes``: those too. Raises ``OSError``."""
    found = {
        resource.RLIMIT_CPU: (limits.cpu_s, limits.cpu_s + 1),
        resource.RLIMIT_FSIZE: (limits.file_bytes, limits.file_bytes),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_NOFILE: (limits.open_files, limits.open_files),
    }
    if memory:
        found[resource.RLIMIT_AS] = (limits.memory_bytes, limits.memory_bytes)
    if processes:
        found[resource.RLIMIT_NPROC] = (limits.processes, limits.processes)
    for name, pair in found.items():
        resource.prlimit(pid, name, pair)
