"""Runs inside the sandbox: calls functions of the artefact, each in a process of its own, and prints what they gave.

Stands alone and imports next to nothing: its start is most of what a trial costs. Standard input: this program, then
``main(calls, seconds)``, calls a literal of [{"module", "function", "arguments"}]. Standard output: one line a call,
its place in the list and then ``answer`` with JSON ({"value"} or {"cause", "what"}), ``timeout``, or ``exit`` with the
status of its process. What is expected never comes in here, so no artefact can read it, and an answer that it forges is
an answer that it must know. An answer is text of the artefact's making: it stays on its line.

No artefact can end, stop or change this process, so none can take back what was seen of it: as process 1 of its space
(``Program.is_first``) it takes no signal from inside, and it lets nobody trace it, read its memory or open its
descriptors. After each call everything else in the space is ended. Where the sandbox gives it no space of its own, it
can still be killed.
"""

import _ctypes
import _signal
import gc
import posix
import select
import sys
import time

ANSWER_BYTES = 65_536
DEPTH = 50  # of lists and objects that are written here; deeper ones, and every other type, by the library
PLAIN = {bool: ("false", "true"), type(None): ("null",)}
SIGKILL = 9
PR_SET_DUMPABLE = 4


def shield():
    """Nobody of the same user may trace this process or open what is its own below /proc."""
    # ctypes itself takes longer to load than all of this program
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    if _ctypes.call_function(prctl, (PR_SET_DUMPABLE, 0, 0, 0, 0)) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE) failed")
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


def written(value, depth=0):
    """JSON of a value. Raises ``TypeError``, ``ValueError`` or ``RecursionError`` where it has none."""
    kind = type(value)
    if kind in PLAIN:
        return PLAIN[kind][bool(value)]
    if kind is int:
        return repr(value)
    if kind is str and value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return '"' + value + '"'
    if kind in (list, tuple) and depth < DEPTH:
        return "[" + ", ".join([written(item, depth + 1) for item in value]) + "]"
    if kind is dict and depth < DEPTH and all(type(key) is str for key in value):
        items = [written(key) + ": " + written(item, depth + 1) for key, item in value.items()]
        return "{" + ", ".join(items) + "}"
    import json

    return json.dumps(value, allow_nan=False)


def called(item):
    """Answer of one call, as the child says it."""
    try:
        name = item["module"][:-3].replace("/", ".")
        __import__(name)
        function = getattr(sys.modules[name], item["function"])
    except BaseException as error:
        return failed("import_error", error)
    try:
        value = function(*item["arguments"])
    except BaseException as error:
        return failed("raised", error)
    try:
        return '{"value": ' + written(value) + "}"
    except (TypeError, ValueError, RecursionError):
        return written({"cause": "no_json", "what": type(value).__name__})


def failed(cause, error):
    """Answer of a call that raised."""
    return written({"cause": cause, "what": type(error).__name__ + ": " + str(error)[:200]})


def child(item, descriptor, null):
    """Never returns."""
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    for standard in range(3):
        posix.dup2(null, standard)
    posix.close(null)
    data = called(item).encode()[:ANSWER_BYTES]
    while data:
        data = data[posix.write(descriptor, data) :]
    posix._exit(0)


def ended(pid):
    """Kill a child, and all that is left of it where the space is this process's own. Its wait status."""
    alone = posix.getpid() == 1
    posix.kill(-1 if alone else pid, SIGKILL)  # a child that nobody has waited for is there, ended or not
    status = posix.waitpid(pid, 0)[1]
    while alone:
        try:
            posix.waitpid(-1, 0)
        except ChildProcessError:
            break
    return status


def said(item, seconds, null):
    """Start a child and wait for its answer."""
    reading, writing = posix.pipe()
    pid = posix.fork()
    if pid == 0:
        posix.close(reading)
        try:
            child(item, writing, null)
        finally:
            posix._exit(1)
    posix.close(writing)
    end, data, late = time.monotonic() + seconds, b"", False
    while len(data) <= ANSWER_BYTES:
        left = end - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            late = True
            break
        part = posix.read(reading, ANSWER_BYTES)
        if not part:
            break
        data += part
    posix.close(reading)
    status = ended(pid)
    if late:
        return b"timeout"
    if not data or b"\n" in data or b"\r" in data:
        return b"exit %d" % status
    return b"answer " + data


def main(calls, seconds):
    """Answer every call, in order."""
    shield()
    sys.path.insert(0, posix.getcwd())
    null = posix.open("/dev/null", posix.O_RDWR)
    compile("def warm(x):\n    return x\n", "warm", "exec")  # the compiler sets itself up once, not once a child
    gc.freeze()  # what is shared with the children stays unwritten, and so shared
    for place, item in enumerate(calls):
        line = b"%d %s\n" % (place, said(item, seconds, null))
        while line:
            line = line[posix.write(1, line) :]
    posix._exit(0)  # taking the interpreter down serves nobody
