"""What a sandbox is asked, what it answers, and what it does not cover.

Covered by ``bubblewrap``, each attacked by a test: no network; no process outside is seen or can be signalled;
no file outside the workspace and the read-only system folders is seen; nothing of the host can be written, the
workspace folder included: the program works on a copy of it that ends with it; bounds on processes, memory, file
size, written space, open files, CPU time of a process and wall time; nothing that was started is left, nor any
file, mount or port of it; the environment holds what the caller names, nothing else.

Not covered:
- faults of the kernel itself, and of bubblewrap;
- timing and cache side channels between sandboxes, and what the kernel says of the machine (cores, load, uptime);
- the load that a program within its bounds puts on its neighbours: no share of a core is promised or taken;
- the contents of the read-only system folders, which every program may read;
- inside one run, programs against each other: they share user, workspace and process space. Who runs a judge in
  the same run as the judged must not believe it (``worker.verifiers`` keeps what is expected outside);
- total CPU time of many processes: the bound is that of each, the wall time bounds the sum;
- where no control group can be made (``level.memory_bound`` rlimit): the memory of all processes together, and whether
  it was the machine that had none left when a process inside was ended;
- a process inside that somebody outside kills: nothing tells it from one that kills itself.

``subprocess`` bounds resources and time by rlimits and ends the process group. It hides nothing, stops no network,
protects no file of its user, does not bound written space in all, and a child that takes a session of its own
survives it. It is refused unless a setting allows it, and every record says ``unisolated``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from workbench.contracts.errors import FaultBoundary

MEBIBYTE = 1 << 20


class SandboxFault(FaultBoundary):
    """The sandbox itself failed, or there is none that may be used here: the result is unknown, never a verdict."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one run. Seconds, bytes and numbers; every one is enforced by the kernel or by ending the run."""

    wall_s: float = 10.0
    cpu_s: int = 5
    memory_bytes: int = 512 * MEBIBYTE
    file_bytes: int = 16 * MEBIBYTE  # of one file
    scratch_bytes: int = 64 * MEBIBYTE  # of each of /tmp, /dev/shm and what the workspace gains beyond its files
    processes: int = 32
    open_files: int = 128
    output_bytes: int = MEBIBYTE  # of each stream that is kept; more is read, counted and dropped


@dataclass(frozen=True)
class Level:
    """How well a back end separates, as receipts record it. ``unisolated``: nothing is hidden from the program."""

    backend: str
    version: str
    process_bound: str  # cgroup, rlimit, none
    memory_bound: str  # cgroup, rlimit
    unisolated: bool = False

    def record(self) -> dict[str, object]:
        """What a receipt says."""
        return {
            "backend": self.backend,
            "version": self.version,
            "process_bound": self.process_bound,
            "memory_bound": self.memory_bound,
            "unisolated": self.unisolated,
        }


@dataclass(frozen=True)
class Outcome:
    """What one run did. ``exit_code`` None: ended by a signal, whose number is ``signal``.

    ``timed_out``: ended for its wall time. ``*_bytes``: how much each stream wrote, also beyond what was kept.
    ``out_of_memory``: something in it was ended for its bound on memory; False where nothing counts that.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    setup_s: float
    run_s: float
    cleanup_s: float
    level: Level
    out_of_memory: bool = False


@dataclass(frozen=True)
class Program:
    """``argv`` runs in the workspace, which it sees as ``/w``. ``shown``: further folders, read-only, by place.

    ``is_first``: it is process 1 of its space, which no process inside can end or stop. It has to reap what it
    inherits. ``subprocess`` has no such thing.
    """

    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    shown: Mapping[str, Path] = field(default_factory=dict)
    is_first: bool = False


class Sandbox(Protocol):
    """Runs a program on a workspace folder that the caller made and removes; see ``workspace``.

    Nothing that the program writes is to be read back: what it says stands in its two streams.
    """

    level: Level

    def run(self, workspace: Path, program: Program, limits: Limits) -> Outcome:
        """Raises ``SandboxFault`` where the sandbox failed; a program that fails is an outcome."""
        ...
