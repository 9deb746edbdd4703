"""Processes of an examination: a second one that is ended with all its children, and children of this one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

PROC = Path("/proc")


def run_apart(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, seconds: float) -> tuple[int | None, str]:
    """(exit status, or None where it did not end in time; what it wrote to standard error).

    It leads a session of its own, and whatever it started in that is killed with it. Nothing waits for a pipe.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        status: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        errors.seek(0)
        return status, errors.read().decode(errors="replace")


@contextlib.contextmanager
def children_ended() -> Iterator[None]:
    """Kill what the body started in this process and left behind. Where there is no /proc, nothing is killed."""
    before = descendants(os.getpid())
    try:
        yield
    finally:
        for pid in descendants(os.getpid()) - before:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def descendants(pid: int) -> set[int]:
    """Children of a process, and theirs."""
    parents: dict[int, list[int]] = {}
    for path in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(path.parent.name))
    found, open_ones = set[int](), [pid]
    while open_ones:
        for child in parents.get(open_ones.pop(), ()):
            found.add(child)
            open_ones.append(child)
    return found
