"""Fault points for the crash suite: a process kills itself at a named point when asked to.

Off unless ``WORKBENCH_FAULT_DIR`` names a directory. ``reach("collect")`` claims one file
``collect`` or ``collect.<anything>`` in it by renaming (so one file kills exactly once, whichever
process arrives first) and sends SIGKILL to its own process. Standard library only.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

POINTS = (
    "collect",
    "blob_written",
    "old_logprobs",
    "backward",
    "adapter_written",
    "receipt_append",
    "dispatch",
)
TRIAL_POINTS = ("trial", "sandbox")  # before a trial's sandbox is made; while any sandbox's program runs


def reach(name: str) -> None:
    """Die here if a file for this point is waiting; otherwise do nothing."""
    directory = os.environ.get("WORKBENCH_FAULT_DIR")
    if not directory:
        return
    for path in sorted(Path(directory).glob(f"{name}*")):
        if path.name != name and not path.name.startswith(f"{name}."):
            continue
        try:
            path.rename(path.with_name(f"done-{path.name}-{os.getpid()}"))
        except FileNotFoundError:
            continue  # another process claimed it
        os.kill(os.getpid(), signal.SIGKILL)
