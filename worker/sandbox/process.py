"""Starts a program in a process group of its own, reads both streams within bounds, and ends it in time."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.faults import reach

from .base import SandboxFault

CHUNK = 65_536


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it wrote."""

    returncode: int
    timed_out: bool
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int


def run_group(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    stdin: bytes,
    wall_s: float,
    keep: int,
    before: Callable[[], None] | None = None,
    inherited: Sequence[int] = (),
    started: Callable[[], None] | None = None,
) -> Ended:
    """Run to the end, or to ``wall_s`` seconds; the whole group is killed either way. Raises ``SandboxFault``.

    ``inherited``: descriptors that it keeps beside the three standard ones. ``started`` is called once it runs, before
    anything is read or written; what it raises ends the group and passes on. ``before`` runs between fork and exec,
    which is dear where this process is large: see ``gate``.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=before,
            pass_fds=tuple(inherited),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxFault(f"sandbox: {argv[0]} could not be started ({error})") from error
    try:
        reach("sandbox")
        if started is not None:
            started()
        kept, sizes, timed_out = _read(process, stdin, time.monotonic() + wall_s, keep)
    finally:
        kill_group(process)
    return Ended(process.returncode, timed_out, bytes(kept[1]), bytes(kept[2]), sizes[1], sizes[2])


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the group, and wait for its leader."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _read(
    process: subprocess.Popen[bytes], stdin: bytes, end: float, keep: int
) -> tuple[dict[int, bytearray], dict[int, int], bool]:
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    kept, sizes = {1: bytearray(), 2: bytearray()}, {1: 0, 2: 0}
    left, open_streams = memoryview(stdin), 2
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, 1)
        selector.register(process.stderr, selectors.EVENT_READ, 2)
        os.set_blocking(process.stdin.fileno(), False)
        if left:
            selector.register(process.stdin, selectors.EVENT_WRITE, 0)
        else:
            process.stdin.close()
        while open_streams:
            wait = end - time.monotonic()
            if wait <= 0:
                return kept, sizes, True
            for key, _ in selector.select(min(wait, 0.25)):
                if key.data == 0:
                    left = _write(process, left, selector)
                    continue
                data = os.read(key.fd, CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                    open_streams -= 1
                    continue
                sizes[key.data] += len(data)
                kept[key.data] += data[: max(0, keep - len(kept[key.data]))]
            if process.poll() is not None and open_streams and not selector.select(0):
                break  # a child that outlives its parent holds the streams: the group is killed next
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, end - time.monotonic()))
    return kept, sizes, process.poll() is None


def _write(process: subprocess.Popen[bytes], left: memoryview, selector: selectors.BaseSelector) -> memoryview:
    assert process.stdin is not None
    try:
        left = left[os.write(process.stdin.fileno(), left[:CHUNK]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        left = left[len(left) :]
    if not left:
        selector.unregister(process.stdin)
        with contextlib.suppress(OSError):
            process.stdin.close()
    return left
