"""Start a program that cannot outlive its parent: ``python -m workbench.child PARENT_PID -- PROGRAM ...``.

On Linux the kernel kills it when the parent dies, kill -9 included, and this module replaces itself by
the program. Elsewhere this process stays, watches the parent and takes the program with it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.5


def die_with_parent(parent: int, *, signum: int = signal.SIGKILL) -> bool:
    """Have the kernel send ``signum`` when the parent ends. False where the system has no such thing.

    Ends this process at once where ``parent`` is already gone. The promise holds across exec, not
    across fork, and follows the parent's *thread* that forked.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_PDEATHSIG, int(signum), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)
    return True


def watch(command: list[str], parent: int) -> int:
    """Run ``command``; pass signals on; kill it when ``parent`` is gone. Returns its exit status."""
    process = subprocess.Popen(command, close_fds=False)
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(signum, lambda number, frame: process.send_signal(number))
    while process.poll() is None:
        if os.getppid() != parent:
            process.kill()
        time.sleep(POLL_SECONDS)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def main(arguments: list[str]) -> int:
    """Entry point; does not return where the program replaces this process."""
    if len(arguments) < 3 or arguments[1] != "--" or not arguments[0].isdigit():
        sys.stderr.write("usage: python -m workbench.child PARENT_PID -- PROGRAM [ARGUMENT ...]\n")
        return 2
    parent, command = int(arguments[0]), arguments[2:]
    if not die_with_parent(parent):
        return watch(command, parent)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
