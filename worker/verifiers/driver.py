"""Runs inside the sandbox: calls functions of the artefact, each in a process of its own, and prints what they gave.

Stands alone (``python -I -S driver.py``, standard library only). Standard input: {"calls": [{"id", "module",
"function", "arguments"}], "seconds"}; standard output: one JSON line a call. What is expected never comes in here,
so no artefact can read it, and an answer that it forges is an answer that it must know.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import time

ANSWER_BYTES = 65_536


def call(item):
    """Answer of one call, as the child says it."""
    sys.path.insert(0, os.getcwd())
    name = item["module"][:-3].replace("/", ".")
    try:
        module = importlib.import_module(name)
        function = getattr(module, item["function"])
    except BaseException as error:
        return {"cause": "import_error", "what": type(error).__name__ + ": " + str(error)[:200]}
    try:
        value = function(*item["arguments"])
    except BaseException as error:
        return {"cause": "raised", "what": type(error).__name__ + ": " + str(error)[:200]}
    try:
        return {"value": json.loads(json.dumps(value, allow_nan=False))}
    except (TypeError, ValueError, RecursionError):
        return {"cause": "no_json", "what": type(value).__name__}


def child(item, descriptor):
    """Never returns."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    data = json.dumps(call(item)).encode()[:ANSWER_BYTES]
    while data:
        data = data[os.write(descriptor, data) :]
    os._exit(0)


def answer_of(item, seconds):
    """Start a child and wait for its answer."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            child(item, writing)
        finally:
            os._exit(1)
    os.close(writing)
    end, data, late = time.monotonic() + seconds, b"", False
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            late = True
            break
        part = os.read(reading, ANSWER_BYTES)
        if not part:
            break
        data += part
        if len(data) > ANSWER_BYTES:
            break
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if late:
        return {"cause": "timeout"}
    try:
        found = json.loads(data)
        return found if isinstance(found, dict) else {"cause": "exit", "status": status}
    except ValueError:
        return {"cause": "exit", "status": status}


def main():
    """Answer every call, in order."""
    asked = json.loads(sys.stdin.read())
    for item in asked["calls"]:
        line = json.dumps({"id": item["id"], **answer_of(item, asked["seconds"])})
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


main()
