"""A control group for one run, where the machine lets this process make one (version 1 or 2)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

ROOT = Path("/sys/fs/cgroup")
ENDING_SECONDS = 5.0
ABANDONED_SECONDS = 30.0  # between its making and its first process a group is empty for a moment
PREFIX = "workbench-"
BOUND, MACHINE = "bound", "machine"  # whose memory ran out


class Groups:
    """The control groups of one run: bounds on processes and memory, and the certain end of all that is in them."""

    def __init__(self, folders: dict[str, Path]):
        self.folders = folders

    def join(self, pid: int) -> None:
        """A process that waits joins: everything that it starts belongs to the groups. Raises ``OSError``."""
        for folder in set(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def ended_for_memory(self) -> str | None:
        """Why the kernel ended a process for want of memory; None where it ended none, or where nothing counts it.

        ``BOUND``: the group met its own bound; also where the machine had no memory left then. ``MACHINE``: it never
        did, so the want was not its own.
        """
        folder = self.folders.get("memory")
        if folder is None:
            return None
        with contextlib.suppress(OSError):
            found = _numbers(folder / "memory.events")
            return _cause(found["oom_kill"], found["oom"])
        with contextlib.suppress(OSError):
            killed = _numbers(folder / "memory.oom_control").get("oom_kill", 0)
            return _cause(killed, int((folder / "memory.failcnt").read_text()))
        return None

    def close(self) -> None:
        """Kill what is left and remove the groups. Raises ``OSError`` where something would not end."""
        end = time.monotonic() + ENDING_SECONDS
        for folder in set(self.folders.values()):
            while pids := (folder / "cgroup.procs").read_text().split():
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                if time.monotonic() > end:
                    raise OSError(f"{len(pids)} processes of {folder.name} would not end")
                time.sleep(0.002)
            folder.rmdir()


def _cause(killed: int, met: int) -> str | None:
    if not killed:
        return None
    return BOUND if met else MACHINE


def _numbers(file: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in file.read_text().splitlines())}


@lru_cache(maxsize=1)
def places() -> dict[str, Path]:
    """Controller -> folder below which a group can be made, of ``pids`` and ``memory``; tried once a process."""
    if (ROOT / "cgroup.controllers").exists():
        own = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2].lstrip("/")
        candidates = dict.fromkeys(("pids", "memory"), ROOT / own)
    else:
        candidates = {name: ROOT / name for name in ("pids", "memory")}
    return {name: folder for name, folder in candidates.items() if _works(name, folder)}


def sweep() -> int:
    """Remove groups that a killed process left: old and without a process. How many there were."""
    found = 0
    for folder in set(places().values()):
        for place in folder.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):  # in use, or removed meanwhile
                if time.time() - place.stat().st_mtime > ABANDONED_SECONDS:
                    place.rmdir()
                    found += 1
    return found


def _works(name: str, folder: Path) -> bool:
    trial = folder / f"{PREFIX}{uuid4().hex}"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        return (trial / _FILES[name][0]).exists() or (trial / _FILES[name][1]).exists()
    finally:
        trial.rmdir()


_FILES = {"pids": ("pids.max", "pids.max"), "memory": ("memory.max", "memory.limit_in_bytes")}


def make(bounds: dict[str, int]) -> Groups:
    """Groups with these bounds, of the controllers that can be used here. Raises ``OSError``."""
    name, folders = f"{PREFIX}{uuid4().hex}", {}
    for controller, bound in bounds.items():
        if controller not in places():
            continue
        folder = places()[controller] / name
        folder.mkdir(exist_ok=True)
        folders[controller] = folder
        file = next(folder / item for item in _FILES[controller] if (folder / item).exists())
        file.write_text(str(bound))
    return Groups(folders)
