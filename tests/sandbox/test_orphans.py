"""A run whose process was killed while bwrap began is ended; one that somebody waits for is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil

from tests.servers import wait_until
from worker.sandbox.orphans import end_orphans

PROGRAM = "/nowhere/bwrap"  # no sandbox of this machine
LIKE_BWRAP = (
    "import subprocess, sys; print(subprocess.Popen([sys.argv[1], '-c', 'import time; time.sleep(600)', *sys.argv[2:]],"
    " executable=sys.executable, stdout=subprocess.DEVNULL).pid, flush=True); sys.stdin.read()"
)
MARKS = ["--unshare-all", "--die-with-parent", "--clearenv"]


def is_there(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_only_what_nobody_waits_for_is_ended() -> None:
    """With its parent it stays; when another process took it over it is killed, unless it is another program."""
    parent = subprocess.Popen(
        [sys.executable, "-c", LIKE_BWRAP, PROGRAM, *MARKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    try:
        wait_until(lambda: psutil.Process(pid).cmdline()[0] == PROGRAM, "the program", 20)
        assert end_orphans(PROGRAM) == 0 and is_there(pid)
        parent.kill()
        parent.communicate()
        wait_until(lambda: psutil.Process(pid).ppid() != parent.pid, "another parent", 20)
        assert end_orphans("/nowhere/else") == 0 and end_orphans(None) == 0 and is_there(pid)
        assert end_orphans(PROGRAM) == 1
        wait_until(lambda: not is_there(pid), "its end", 20)
    finally:
        if is_there(pid):
            os.kill(pid, signal.SIGKILL)
