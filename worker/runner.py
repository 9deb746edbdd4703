"""The runner: one process that owns torch and serves jobs over two pipes, ``python -m worker.runner``.

It is started afresh (never forked from a process that has loaded torch), in a session of its own,
and keeps its model between jobs. Standard output and error are logs; requests and answers travel
over dedicated pipes. It ends when its request pipe ends or its parent dies: at once, also inside a
job, since nobody is left to take the answer.

Request: {"op", "spec", "store", "cache_dir"}. Answer: any number of {"kind": "progress", "value"},
then {"kind": "result", "value"} or {"kind": "error", "class", "message", "boundary", "no_room", "traceback"}.
``boundary`` is the class name of the ``FaultBoundary`` crossed, None where our own code broke; ``no_room``
the error number where there was no room to write, else None.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import importlib
import logging
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from workbench.blobs import BlobStore
from workbench.child import die_with_parent
from workbench.contracts.errors import FaultBoundary
from workbench.room import no_room
from worker.frames import FrameError, pack, read_frame

Handle = Callable[..., dict[str, Any]]
SERVICE = "worker.engine.service"


def _read_requests(stream: BinaryIO, requests: queue.Queue[dict[str, Any]]) -> None:
    """Thread: hand requests over, and end the process with its pipe, even while a job is running."""
    try:
        while (request := read_frame(stream)) is not None:
            requests.put(request)
    except (FrameError, OSError) as error:
        logging.getLogger("worker.runner").error("request pipe: %s", error)
        os._exit(1)
    os._exit(0)


def boundary_of(error: BaseException) -> str | None:
    """Name of the boundary that a fault crossed; None for a fault of our own code."""
    return type(error).__name__ if isinstance(error, FaultBoundary) else None


def answer(request: dict[str, Any], send: Callable[[dict[str, Any]], None], service: str = SERVICE) -> dict[str, Any]:
    """Do one request and return its last frame. Never raises: every error becomes a frame."""
    try:
        if request["op"] == "ping":
            return {"kind": "result", "value": {"pid": os.getpid()}}
        module = importlib.import_module(service)  # torch loads here, with the first job
        if request["op"] == "warm":
            return {"kind": "result", "value": {"pid": os.getpid(), "loaded": "torch" in sys.modules}}
        handle: Handle = module.handle
        value = handle(
            request["op"],
            request["spec"],
            store=BlobStore(Path(request["store"])),
            cache_dir=Path(request["cache_dir"]),
            progress=lambda value: send({"kind": "progress", "value": value}),
        )
        pack({"value": value})  # a value that JSON cannot carry is an error of this job, not of the pipe
        return {"kind": "result", "value": value}
    except Exception as error:
        return {
            "kind": "error",
            "class": type(error).__name__,
            "message": str(error),
            "boundary": boundary_of(error),
            "no_room": no_room(error),
            "traceback": traceback.format_exc(),
        }


def serve(requests: BinaryIO, answers: BinaryIO, service: str = SERVICE, *, preload: bool = False) -> None:
    """Answer requests one after the other until the pipe ends. ``preload``: load torch before the first."""

    def send(frame: dict[str, Any]) -> None:
        answers.write(pack(frame))
        answers.flush()

    waiting: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read_requests, args=(requests, waiting), daemon=True, name="requests").start()
    if preload:
        gc.disable()  # nothing of what is loaded is garbage: looking for it takes a tenth of the time
        with contextlib.suppress(Exception):  # the first job meets the same error and reports it
            getattr(importlib.import_module(service), "preload", lambda: None)()
        gc.freeze()
        gc.enable()
    while True:
        request = waiting.get()
        started = time.monotonic()
        frame = answer(request, send, service)
        send(frame)
        logging.getLogger("worker.runner").debug(
            "%s: %s in %.2f s", request.get("op"), frame["kind"], time.monotonic() - started
        )


def main(arguments: list[str]) -> None:
    """Entry point of the process."""
    parser = argparse.ArgumentParser(prog="worker.runner")
    parser.add_argument("--requests", type=int, required=True, help="file descriptor to read requests from")
    parser.add_argument("--answers", type=int, required=True, help="file descriptor to write answers to")
    parser.add_argument("--parent", type=int, required=True, help="process id whose end ends this one")
    parser.add_argument("--service", default=SERVICE, help="module with the function handle")
    parser.add_argument("--preload", action="store_true", help="load the service before the first request")
    options = parser.parse_args(arguments)
    die_with_parent(options.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's; it ends this process in order
    faulthandler.enable()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it advises a package that is best left out
    with os.fdopen(options.requests, "rb") as requests, os.fdopen(options.answers, "wb") as answers:
        serve(requests, answers, options.service, preload=options.preload)


if __name__ == "__main__":
    main(sys.argv[1:])
