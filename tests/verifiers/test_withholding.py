"""An artefact cannot take back what was seen of it: no way to turn its own failure, or another test's, into unknown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.servers import wait_until
from tests.verifiers.test_trial import F2P, GOLD, P2P, TESTS, changed, trial
from worker.sandbox.base import Level, Limits, Outcome, Program
from worker.sandbox.choose import get_sandbox
from worker.sandbox.workspace import workspace
from worker.verifiers.trial import LINE_BYTES, HiddenTest, TrialReport, run_trial, utility

HEAD = "import ctypes, os, signal, sys, time\n"
WRITES = "    for number in range(3, 40):\n        try: os.write(number, {data})\n        except OSError: pass\n"
OUTSIDE = ("total", "none")  # tests of a module that does not do anything wrong

ATTACKS = {
    "kills the driver": "os.kill(os.getppid(), signal.SIGKILL)\ndef order(a, k): return 9\n",
    "stops the driver": "os.kill(os.getppid(), signal.SIGSTOP)\ndef order(a, k): return 9\n",
    "interrupts the driver": "os.kill(os.getppid(), signal.SIGINT)\ndef order(a, k): return 9\n",
    "kills everybody": "def order(a, k): return os.kill(-1, signal.SIGKILL)\n",
    "sends every signal": (
        "for number in range(1, 65):\n    try: os.kill(1, number)\n    except OSError: pass\n"
        "def order(a, k): return 9\n"
    ),
    "traces the driver": (
        "L = ctypes.CDLL(None)\nL.ptrace(16, os.getppid(), 0, 0)\ntime.sleep(0.1)\nL.ptrace(8, os.getppid(), 0, 0)\n"
        "def order(a, k): return 9\n"
    ),
    "floods the driver's output": (
        "for number in (1, 2):\n"
        "    try: os.write(os.open(f'/proc/{os.getppid()}/fd/{number}', os.O_WRONLY), b'x' * 3000000)\n"
        "    except OSError: pass\n"
        "def order(a, k): return 9\n"
    ),
    "spoils a line of the driver": (
        "try: os.write(os.open(f'/proc/{os.getppid()}/fd/1', os.O_WRONLY), b'{')\n"
        "except OSError: pass\n"
        "def order(a, k): return 9\n"
    ),
    "answers for another test": (
        "def order(a, k):\n" + WRITES.format(data='b\'{"id": "nobody", "value": 9}\'') + "    os._exit(0)\n"
    ),
    "answers without end": (
        "def order(a, k):\n" + WRITES.format(data="b'{\"value\": ' + b'[' * 60000") + "    os._exit(0)\n"
    ),
    "answers deeper than the reader": (
        "def order(a, k):\n    sys.setrecursionlimit(10**6)\n    x = []\n    for _ in range(930): x = [x]\n"
        "    return x\n"
    ),
    "answers hugely": "def order(a, k): return 'x' * 5000000\n",
    "closes every descriptor": "os.closerange(0, 256)\ndef order(a, k): return 3\n",
    "fills the processes": (
        "def order(a, k):\n    while True:\n        try:\n            if os.fork() == 0: time.sleep(60)\n"
        "        except OSError: return 9\n"
    ),
    "leaves a child with the pipe": (
        "def order(a, k):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(60)\n    return 9\n"
    ),
    "both sides of a fork answer": "def order(a, k):\n    os.fork()\n    return 3\n",
    "leaves by SystemExit": "def order(a, k): raise SystemExit(0)\n",
    "answers at its exit": (
        "import atexit\natexit.register(lambda: os.write(3, b'{\"value\": 3}'))\ndef order(a, k): return 9\n"
    ),
    "replaces the modules of tests": (
        "import types\nfor name in ('unittest', 'pytest'): sys.modules[name] = types.ModuleType(name)\n"
        "def order(a, k): return 9\n"
    ),
    "raises what no record takes": "def order(a, k): raise ValueError('\\ud800 \\x00 \\u2028')\n",
    "hangs": "def order(a, k): time.sleep(60)\n",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_whoever_withholds_fails(name: str) -> None:
    """low fails with a cause, and the tests of a module that does nothing wrong are seen to pass all the same."""
    found = trial({**changed("numbers_/order.py", HEAD + ATTACKS[name]), **CLEAN}, seconds=0.5)
    assert found.complete and found.unknown is None, found.unknown
    assert found.status["low"] == "FAILED" and found.observed[0].cause in (
        "assertion",
        "import_error",
        "timeout",
        "exit",
    )
    assert utility(found, F2P, P2P) == -1
    assert [found.status[name] for name in OUTSIDE] == ["PASSED", "PASSED"]
    assert all(mark.isprintable() for item in found.observed for mark in item.detail)


CLEAN = {"total.py": b"def total(xs):\n    return sum(xs)\n"}


MEMORY = {
    # of no process: the kernel may end the driver, and nothing of the failure is withheld all the same
    "cgroup": "try: open('/proc/1/oom_score_adj', 'w').write('1000')\n"
    "except OSError: pass\n"
    "def order(a, k):\n    held = []\n    while True:\n        held.append(os.memfd_create('x'))\n"
    "        try:\n            while True: os.write(held[-1], b'x' * 1048576)\n        except OSError: pass\n",
    # of one process, all that is bounded where no control group can be made
    "rlimit": "def order(a, k):\n    held = []\n    while True: held.append(bytearray(1048576))\n",
}


def test_a_run_that_meets_its_bound_on_memory_is_the_artefacts_failure() -> None:
    """Whatever bounds memory on this machine: meeting it is a failed test of the artefact, never an unknown."""
    bound = get_sandbox().level.memory_bound
    size = {"cgroup": 48 << 20, "rlimit": 512 << 20}[bound]
    limits = Limits(wall_s=30.0, cpu_s=20, processes=8 if bound == "cgroup" else 512, memory_bytes=size,
                    scratch_bytes=8 << 20)  # fmt: skip
    found = trial(changed("numbers_/order.py", HEAD + MEMORY[bound]), seconds=5.0, limits=limits)
    assert found.complete and found.status["low"] == "FAILED" and utility(found, F2P, P2P) in (0, -1)
    assert found.observed[0].cause == {"cgroup": "exit", "rlimit": "assertion"}[bound]


class Ending:
    """A sandbox whose driver answered of one test and then ended in some way."""

    def __init__(self, *, unisolated: bool, **ending: object) -> None:
        self.level = Level("double", "0", "none", "none", unisolated=unisolated)
        self.ending = {"exit_code": None, "signal": None, "timed_out": False, "out_of_memory": False, **ending}
        self.limits: Limits | None = None

    def run(self, workspace: Path, program: Program, limits: Limits) -> Outcome:
        self.limits = limits
        said = b'0 answer {"value": 3}\n'
        return Outcome(
            stdout=said, stderr=b"", stdout_bytes=len(said), stderr_bytes=0, setup_s=0.0, run_s=0.1, cleanup_s=0.0,
            level=self.level, **self.ending,  # type: ignore[arg-type]
        )  # fmt: skip


def ended(*, unisolated: bool = False, **ending: object) -> TrialReport:
    return run_trial(Ending(unisolated=unisolated, **ending), GOLD, TESTS)


@pytest.mark.parametrize(
    "ending", [{"signal": 9}, {"exit_code": 1}, {"exit_code": 0}, {"timed_out": True, "signal": 9}], ids=str
)
def test_what_ends_a_shielded_driver_is_nobodys_verdict(ending: dict[str, object]) -> None:
    """Nothing inside could have: the machine or the driver itself. Unknown, and no zero."""
    found = ended(**ending)
    assert not found.complete and "3 of 4 tests without an observation" in str(found.unknown)
    assert utility(found, F2P, P2P) is None


@pytest.mark.parametrize(
    ("ending", "cause"),
    [({"signal": 9}, "exit"), ({"timed_out": True, "signal": 9}, "timeout"), ({"exit_code": 1}, None)],
    ids=str,
)
def test_without_isolation_whatever_ends_the_driver_is_the_artefacts(ending: dict[str, object], cause: str) -> None:
    """A driver that ends by itself is still nobody's verdict. What was seen before stands."""
    found = ended(unisolated=True, **ending)
    assert found.complete == (cause is not None) and found.status["low"] == "PASSED"
    assert [item.cause for item in found.observed[1:]] == ([cause] * 3 if cause else [])


def test_a_driver_that_is_ended_after_its_last_answer_changes_no_verdict() -> None:
    """Every test was observed: the report is complete, as it is by definition, and keeps how the process ended."""
    for ending in ({"signal": 9}, {"exit_code": 1}, {"exit_code": 0}):
        found = run_trial(Ending(unisolated=False, **ending), GOLD, TESTS[:1])
        assert found.complete and found.unknown is None and found.status == {"low": "PASSED"}
        assert (found.exit_code, found.signal) == (ending.get("exit_code"), ending.get("signal"))


def test_memory_that_ran_out_fails_what_was_not_seen() -> None:
    found = ended(signal=9, out_of_memory=True)
    assert found.complete and [item.cause for item in found.observed] == [None, "exit", "exit", "exit"]


def test_every_test_has_its_time_and_its_room() -> None:
    """40 tests of 2 s, each with 5 to be ended in, and the driver's own 5; and 40 answers of the longest kind."""
    tests = [HiddenTest(f"t{number}", "total.py", "total", ([],), 0) for number in range(40)]
    sandbox = Ending(unisolated=False)
    run_trial(sandbox, GOLD, tests, seconds=2.0)
    assert sandbox.limits is not None
    assert (sandbox.limits.wall_s, sandbox.limits.output_bytes) == (285.0, 40 * LINE_BYTES)


def test_answers_of_the_longest_kind_are_all_read() -> None:
    """20 answers of 60,000 characters are more than a stream keeps by default."""
    tests = [HiddenTest(f"t{number}", "long.py", "long", (), "x" * 60_000) for number in range(20)]
    found = run_trial(get_sandbox(), {"long.py": b"def long():\n    return 'x' * 60000\n"}, tests)
    assert found.complete and set(found.status.values()) == {"PASSED"}


def test_the_first_process_of_a_run_is_out_of_reach() -> None:
    """With ``is_first`` the program is process 1, which no program inside can end."""
    code = b"import os\nprint(os.getpid())\n"
    for is_first in (True, False):
        with workspace({"a.py": code}) as folder:
            program = Program([os.path.realpath("/usr/bin/env"), "python3", "-S", "a.py"], is_first=is_first)
            found = get_sandbox().run(folder, program, Limits())
        assert (int(found.stdout) == 1) == is_first


def test_nothing_runs_on_after_the_process_that_tried_it_was_killed(tmp_path: Path) -> None:
    """kill -9 while a hanging test is watched: the sandbox ends with its parent, whichever process is its first."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from tests.verifiers.test_trial import TESTS, changed\n"
        "from worker.sandbox.choose import get_sandbox\n"
        "from worker.verifiers.trial import run_trial\n"
        "files = changed('numbers_/order.py', 'import time\\ntime.sleep(600)\\n')\n"
        "run_trial(get_sandbox(), files, TESTS, seconds=300.0, below=Path(sys.argv[2]))\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    process = subprocess.Popen([sys.executable, "-c", code, root, str(tmp_path)], cwd=root)
    try:
        watched = psutil.Process(process.pid)
        wait_until(lambda: len(watched.children(recursive=True)) >= 3, "bwrap, the driver and a test", 60)
        below = watched.children(recursive=True)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not any(is_alive(item) for item in below), "the end of its sandbox", 30)


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
