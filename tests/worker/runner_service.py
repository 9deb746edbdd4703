"""A service without torch for tests of the runner: each operation is one way to behave."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from workbench.blobs import BlobStore
from workbench.contracts.errors import EnvironmentFault

CALLS = 0


def handle(op: str, spec: dict[str, Any], *, store: BlobStore, cache_dir: Path, progress: Any) -> dict[str, Any]:
    """Do what ``op`` says."""
    global CALLS
    CALLS += 1
    if op == "echo":
        progress({"done": 1, "of": 2})
        progress({"done": 2, "of": 2})
        print("a log line, not a frame", flush=True)
        return {"spec": spec, "calls": CALLS, "pid": os.getpid(), "cache": str(cache_dir)}
    if op == "store":
        return {"sha256": store.put(spec["text"].encode())}
    if op == "large":
        return {"text": "x" * spec["size"], "got": len(spec["padding"])}
    if op == "fault":
        raise EnvironmentFault("the backend broke")
    if op == "bug":
        raise KeyError("missing")
    if op == "full":
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as error:
            raise RuntimeError("writing the adapter") from error
    if op == "nonfinite":
        return {"value": float("nan")}
    if op == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if op == "hang":
        helper = subprocess.Popen(["sleep", "60"])
        progress({"helper": helper.pid, "pid": os.getpid()})
        time.sleep(60)
    if op == "environment":
        return {"value": os.environ.get(spec["name"])}
    raise ValueError(op)
