"""What runs of a sandbox have left on this machine: for acceptance and benchmarks, never for a verdict.

Everything is recognised by the folder that the workspaces were made in, so that runs of other processes of this
machine are not taken for traces.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from . import cgroups

SETTLING_SECONDS = 3.0  # the kernel ends a process space after its first process, not with it


@dataclass(frozen=True)
class Traces:
    """Counts. ``ports``: of those asked for, how many somebody listens at. ``groups``: control groups without a run."""

    processes: int
    mounts: int
    files: int
    ports: int
    groups: int

    def record(self) -> dict[str, int]:
        """By name."""
        return asdict(self)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left."""
        return not any(self.record().values())


def traces(below: Path, ports: tuple[int, ...] = (), groups_before: frozenset[str] = frozenset()) -> Traces:
    """What is there now that names ``below``. Waits up to ``SETTLING_SECONDS`` for what is just ending."""
    end = time.monotonic() + SETTLING_SECONDS
    groups = _abandoned(groups_now() - groups_before)
    while True:
        groups &= _abandoned(frozenset(groups))  # a run elsewhere has none in its group for a moment alone
        found = _now(below, ports, len(groups))
        if found.is_clean or time.monotonic() > end:
            return found
        time.sleep(0.05)


def groups_now() -> frozenset[str]:
    """Names of the control groups of sandboxes, of this process and of others."""
    return frozenset(
        item.name for folder in set(cgroups.places().values()) for item in folder.glob(f"{cgroups.PREFIX}*")
    )


def _now(below: Path, ports: tuple[int, ...], groups: int) -> Traces:
    mark = str(below).encode()
    processes = sum(
        any(mark in _bytes_of(place / name) for name in ("cmdline", "mountinfo"))
        for place in Path("/proc").glob("[0-9]*")
    )
    return Traces(
        processes,
        _bytes_of(Path("/proc/self/mountinfo")).count(mark),
        sum(1 for _ in below.rglob("*")),
        len(_listening() & set(ports)),
        groups,
    )


def _bytes_of(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError:
        return b""  # it ended meanwhile, or is not ours to read


def _listening() -> set[int]:
    """Ports of this machine's own network at which a socket listens, TCP, or is bound, UDP."""
    found: set[int] = set()
    for name, states in (("tcp", ("0A",)), ("tcp6", ("0A",)), ("udp", ("07",)), ("udp6", ("07",))):
        for line in _bytes_of(Path("/proc/net") / name).decode().splitlines()[1:]:
            fields = line.split()
            if fields[3] in states:
                found.add(int(fields[1].rpartition(":")[2], 16))
    return found


def _abandoned(names: frozenset[str]) -> set[str]:
    """Those in which no process is: a run that goes on elsewhere has one."""
    return {
        name
        for name in names
        for folder in set(cgroups.places().values())
        if (folder / name).is_dir() and not _bytes_of(folder / name / "cgroup.procs").strip()
    }
