"""Helpers for tests that start real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.servers import wait_until
from workbench.home import running_supervisor
from workbench.paths import Home
from workbench.settings import BASE_DIR


def environment(home: Path, **extra: str) -> dict[str, str]:
    """A user's environment with its own home."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "WORKBENCH_HOME": str(home), "OMP_NUM_THREADS": "1", **extra}


def manage(home: Path, *arguments: str, timeout_s: float = 60, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a management command to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        env=environment(home, **extra),
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


class Up:
    """A running ``manage.py up`` with its output so far."""

    def __init__(self, home: Path, *arguments: str, **extra: str) -> None:
        self.home = Home(home)
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", *arguments],
            env=environment(home, **extra),
            cwd=BASE_DIR,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def text(self) -> str:
        """Everything printed so far."""
        return "\n".join(self.lines)

    def state(self) -> dict[str, object]:
        """The state file while the supervisor runs, else empty."""
        return running_supervisor(self.home) or {}

    def pid_of(self, name: str) -> int | None:
        """Process id of a child, None while it is down."""
        processes = self.state().get("processes", {})
        assert isinstance(processes, dict)
        return processes.get(name, {}).get("pid")

    def wait_ready(self) -> None:
        """Until everything was started."""

        def ready() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"up ended with {self.process.returncode}:\n{self.text}")
            return bool(self.state().get("ready"))

        wait_until(ready, "up", 60)

    def wait_line(self, part: str, seconds: float = 30) -> None:
        """Until a line contains ``part``."""
        wait_until(lambda: part in self.text, f"{part!r} in the output:\n{self.text}", seconds)

    def family(self) -> list[psutil.Process]:
        """Every process below the supervisor, at any depth."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def interrupt(self) -> int:
        """Ctrl-C; exit status."""
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(30)
        self._reader.join(5)
        return status


@contextmanager
def up(home: Path, *arguments: str, **extra: str) -> Iterator[Up]:
    """Start ``up``; at the end nothing of it is left, whatever the test did."""
    started = Up(home, *arguments, **extra)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            family = started.family()
            started.process.kill()
            started.process.wait()
            gone_soon(family)
        started._reader.join(5)
        assert started.process.stdout is not None
        started.process.stdout.close()


def gone_soon(family: list[psutil.Process], seconds: float = 10) -> None:
    """Every process of ``family`` ends. Raises ``AssertionError`` with those that stay, after ending them."""
    _, alive = psutil.wait_procs(family, timeout=seconds)
    left = [f"{process.pid} {process.cmdline()}" for process in alive if process.is_running()]
    for process in alive:
        process.kill()
    assert not left, f"still running: {left}"
