"""The supervisor: starts children, shows their logs, starts a crashed one again, stops all in order.

It knows nothing of what the children do; ``workbench.processes`` says which ones there are. No child
outlives it: each is started through ``workbench.child``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from workbench.logs import LogFile, prefix

FIRST_DELAY_S, LONGEST_DELAY_S = 0.2, 15.0
STEADY_AFTER_S = 20.0  # a child that lived this long starts its back-off afresh
LONGEST_LINE = 16_384
CHILD_PROGRAM = Path(__file__).with_name("child.py")
TERMINATE = ((signal.SIGTERM, 5.0),)


@dataclass(frozen=True)
class ChildSpec:
    """One child. ``stop``: (signal, seconds to wait) in order, then SIGKILL to its process group.

    ``environment(generation)``: its whole environment; the generation counts its starts from 1.
    ``once``: it is not started again. ``stage``: children of the lowest stage are stopped first.
    """

    name: str
    command: tuple[str, ...]
    environment: Callable[[int], dict[str, str]]
    stage: int
    pass_fds: tuple[int, ...] = ()
    stop: tuple[tuple[int, float], ...] = TERMINATE
    once: bool = False
    quiet: bool = False  # its lines go to its log file only
    before_start: Callable[[int], None] | None = None  # gets how often in a row it ended by itself
    after_exit: Callable[[int], Awaitable[None]] | None = None  # gets the generation that died


class Output:
    """The terminal: one line at a time. A reader that went away is no reason to stop."""

    def __init__(self, stream: IO[str], *, colour: bool) -> None:
        self.stream, self.colour = stream, colour

    def line(self, name: str, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(f"{prefix(name, colour=self.colour)}{text}\n")
            self.stream.flush()


@dataclass
class Child:
    """A running child and its restarts."""

    spec: ChildSpec
    output: Output
    log: LogFile
    on_change: Callable[[], None]
    cwd: Path
    generation: int = 0
    quick_deaths: int = 0
    failures: int = 0  # quick deaths in a row that no signal caused
    process: asyncio.subprocess.Process | None = None
    stopping: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self.process.pid if self.process is not None and self.process.returncode is None else None

    def start(self) -> None:
        """Start it, and keep it running from now on."""
        self._task = asyncio.create_task(self._keep(), name=self.spec.name)

    async def finished(self) -> int:
        """Exit status of a child that runs once."""
        assert self._task is not None
        await self._task
        return self.process.returncode if self.process and self.process.returncode is not None else 1

    async def _keep(self) -> None:
        delay = FIRST_DELAY_S
        while not self.stopping:
            started = time.monotonic()
            status = await self._run()
            if self.stopping or self.spec.once:
                break
            lived = time.monotonic() - started
            steady = lived >= STEADY_AFTER_S
            delay = FIRST_DELAY_S if steady else min(FIRST_DELAY_S * 2**self.quick_deaths, LONGEST_DELAY_S)
            self.quick_deaths = 0 if steady else self.quick_deaths + 1
            self.failures = 0 if steady or status < 0 else self.failures + 1
            self.say(f"{describe_exit(status)} after {lived:.1f} s; starting again in {delay:.1f} s")
            await self._pause(delay)

    async def _run(self) -> int:
        self.generation += 1
        try:
            if self.spec.before_start is not None:
                self.spec.before_start(self.failures)
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(CHILD_PROGRAM), str(os.getpid()), "--"),
                *self.spec.command,
                env=self.spec.environment(self.generation),
                cwd=self.cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=self.spec.pass_fds,
                start_new_session=True,  # Ctrl-C reaches the supervisor alone, which stops in order
            )
        except OSError as error:
            self.say(f"could not be started: {error}")
            return 127
        self.on_change()
        reader = asyncio.create_task(self._read(self.process.stdout))
        status = await self.process.wait()
        self._kill_group()  # what it left behind must not work on beside its successor
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(reader, 2)
        self.on_change()
        if self.spec.after_exit is not None:
            await self.spec.after_exit(self.generation)
        return status

    async def _read(self, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        rest = b""
        while data := await stream.read(65_536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._pass_on(line.decode("utf-8", "replace").rstrip("\r"))
            if len(rest) > LONGEST_LINE:
                self._pass_on(rest.decode("utf-8", "replace"))
                rest = b""
        if rest:
            self._pass_on(rest.decode("utf-8", "replace"))

    def _pass_on(self, text: str) -> None:
        """A line of the child's own: always in its log file, on the terminal unless it is quiet."""
        if self.spec.quiet:
            self.log.write(text)
        else:
            self.say(text)

    def say(self, text: str) -> None:
        """One line under this child's name, on the terminal and in its log file."""
        self.output.line(self.spec.name, text)
        self.log.write(text)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)

    def _kill_group(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def stop(self, hurry: asyncio.Event) -> None:
        """Ask it to end, then insist. ``hurry`` set: insist at once."""
        self.stopping = True
        self._wake.set()
        if self._task is None:
            return
        for signum, seconds in self.spec.stop:
            if self.pid is None or hurry.is_set():
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signum)  # type: ignore[union-attr]
            waiter = asyncio.create_task(hurry.wait())
            await asyncio.wait({self._task, waiter}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            waiter.cancel()
            if self._task.done():
                break
        while not self._task.done():  # it may just be starting
            self._kill_group()
            await asyncio.wait({self._task}, timeout=0.2)
        self.log.close()


def describe_exit(status: int) -> str:
    """``exited with status 1`` or ``was killed by SIGKILL``."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


class Supervisor:
    """Children and their order. ``stop`` is set by a signal, or by whoever decides that it is over."""

    def __init__(self, *, output: Output, logs: Path, cwd: Path, on_change: Callable[[], None] = lambda: None) -> None:
        self.output, self.logs, self.cwd, self.on_change = output, logs, cwd, on_change
        self.children: dict[str, Child] = {}
        self.stop = asyncio.Event()
        self.hurry = asyncio.Event()
        self._first_signal: float | None = None

    def handle_signals(self) -> None:
        """Ctrl-C, SIGTERM and a closed terminal stop everything in order; a second one a second later, at once."""
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signum == signal.SIGHUP and signal.getsignal(signum) == signal.SIG_IGN:
                continue  # started by nohup: it is meant to outlive its terminal
            loop.add_signal_handler(signum, self._on_signal)

    def _on_signal(self) -> None:
        now = time.monotonic()
        if self._first_signal is None:
            self._first_signal = now
            self.say("stopping (Ctrl-C again: at once)")
            self.stop.set()
        elif now - self._first_signal > 1.0:  # make and the terminal may both deliver the first one
            self.hurry.set()

    def say(self, text: str) -> None:
        """One line of the supervisor's own."""
        self.output.line("workbench", text)

    def start(self, spec: ChildSpec) -> Child:
        """Start a child and keep it running."""
        child = Child(spec, self.output, LogFile(self.logs / f"{spec.name}.log"), self.on_change, self.cwd)
        self.children[spec.name] = child
        child.start()
        return child

    def processes(self) -> dict[str, dict[str, int | None]]:
        """Name -> pid (None while it is down) and number of starts."""
        return {name: {"pid": child.pid, "starts": child.generation} for name, child in self.children.items()}

    async def stop_all(self) -> None:
        """Stop the children stage by stage, those of one stage together."""
        stages: Sequence[int] = sorted({child.spec.stage for child in self.children.values()})
        for stage in stages:
            now = [child for child in self.children.values() if child.spec.stage == stage]
            await asyncio.gather(*(child.stop(self.hurry) for child in now))
        self.on_change()
