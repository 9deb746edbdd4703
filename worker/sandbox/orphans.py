"""Ends what a killed process left of a run that had only begun.

bwrap and its child each ask the kernel to end them with their parent. bwrap's child does so only after bwrap has
written its user map: where both die before, the child waits for ever, without having run anything.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

MARKS = {b"--die-with-parent", b"--unshare-all", b"--clearenv"}


def end_orphans(program: str | None) -> int:
    """Kill this user's processes of ``program`` (bwrap's path) that nobody waits for. How many there were.

    A sandbox in use has for its parent this interpreter or bwrap itself; another parent took over an orphan.
    """
    if program is None:
        return 0
    found = 0
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it ended meanwhile, or is another user's
            if place.stat().st_uid == os.geteuid() and _is_run(place, program) and not _is_awaited(place):
                os.kill(int(place.name), signal.SIGKILL)
                found += 1
    return found


def _is_run(place: Path, program: str) -> bool:
    argv = (place / "cmdline").read_bytes().split(b"\0")
    return argv[0] == os.fsencode(program) and set(argv) >= MARKS


def _is_awaited(place: Path) -> bool:
    """Whether its parent is one that may have started it. One that cannot be looked at is another user's."""
    parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
    try:
        name = os.path.basename(os.readlink(f"/proc/{parent}/exe")).removesuffix(" (deleted)")
    except PermissionError:
        return False
    return name == os.path.basename(os.path.realpath(sys.executable)) or name.startswith(("python", "bwrap"))
