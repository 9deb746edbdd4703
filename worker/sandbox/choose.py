"""Which sandbox this process uses: bubblewrap where it works, probed once; ``subprocess`` only where it is allowed."""

from __future__ import annotations

import os
from functools import lru_cache

from . import cgroups
from .base import Limits, Program, Sandbox, SandboxFault
from .bubblewrap import Bubblewrap, program_path
from .orphans import end_orphans
from .rlimited import SETTING, Rlimited
from .workspace import sweep, workspace

NAMES = ("bubblewrap", "subprocess")


def probe(sandbox: Sandbox) -> None:
    """Run the least program. Raises ``SandboxFault`` where it does not do what it is told."""
    with workspace({"in": b"x"}) as folder:
        found = sandbox.run(folder, Program(["/bin/cat", "in"]), Limits(wall_s=20.0))
    if found.exit_code != 0 or found.stdout != b"x":
        raise SandboxFault(f"sandbox: got {found.exit_code} and {found.stderr[:200]!r}, expected a program that runs")


def unisolated_allowed() -> bool:
    """The setting ``WORKBENCH_ALLOW_UNISOLATED``, read here since the engine's process has no other settings."""
    value = os.environ.get(SETTING, "0").strip() or "0"
    if value not in ("0", "1"):
        raise SandboxFault(f"{SETTING}: got {value!r}, expected 0 or 1")
    return value == "1"


def get_sandbox(*, allow_unisolated: bool | None = None) -> Sandbox:
    """The sandbox of this process; ``allow_unisolated`` None: as the setting says.

    Raises ``SandboxFault`` where there is none that may be used.
    """
    return _made(unisolated_allowed() if allow_unisolated is None else allow_unisolated)


def sweep_left() -> int:
    """Remove processes, folders and control groups of runs whose process was killed. How many there were."""
    return end_orphans(program_path()) + cgroups.sweep() + sweep()


@lru_cache(maxsize=2)
def _made(allowed: bool) -> Sandbox:
    try:
        found: Sandbox = Bubblewrap()
        probe(found)
    except SandboxFault:
        if not allowed:
            raise
        found = Rlimited(allowed=True)
        probe(found)
    sweep_left()
    return found
