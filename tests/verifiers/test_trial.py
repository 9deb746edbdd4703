"""Trials: verdicts with causes, utility by hand, artefacts that cheat, and reports that stay unknown."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest

from worker.sandbox.base import Level, Limits, Outcome, Program, Sandbox, SandboxFault
from worker.sandbox.choose import get_sandbox
from worker.verifiers.trial import HiddenTest, TrialReport, is_success, run_trial, utility

TESTS = (
    HiddenTest("low", "numbers_/order.py", "order", (3, 5), 3),
    HiddenTest("equal", "numbers_/order.py", "order", (4, 4), 4),
    HiddenTest("total", "total.py", "total", ([1, 2, 3],), 6),
    HiddenTest("none", "total.py", "total", ([],), 0),
)
F2P, P2P = ["low"], ["equal", "total", "none"]
GOLD = {
    "numbers_/__init__.py": b"",
    "numbers_/order.py": b"def order(a, k):  # min of a and k\n    return min(a, k)\n",
    "total.py": b"from numbers_.order import order\ndef total(xs):\n    return sum(xs)\n",
}
BROKEN = {**GOLD, "numbers_/order.py": b"def order(a, k):  # min of a and k\n    return max(a, k)\n"}


def trial(files: Mapping[str, bytes], **changes: object) -> TrialReport:
    return run_trial(get_sandbox(), files, TESTS, **changes)  # type: ignore[arg-type]


def changed(path: str, text: str) -> dict[str, bytes]:
    return {**GOLD, path: text.encode()}


def test_gold_passes_and_the_broken_tree_fails_what_it_must() -> None:
    """max(3, 5) = 5 is not 3; max(4, 4) = 4 passes all the same. U = 1/1 - 0 and 0/1 - 0."""
    gold, broken = trial(GOLD), trial(BROKEN)
    assert gold.complete and set(gold.status.values()) == {"PASSED"} and utility(gold, F2P, P2P) == 1
    assert broken.complete and broken.status == {
        "low": "FAILED",
        "equal": "PASSED",
        "total": "PASSED",
        "none": "PASSED",
    }
    assert broken.observed[0].cause == "assertion" and utility(broken, F2P, P2P) == 0
    assert is_success(gold, F2P, P2P) is True and is_success(broken, F2P, P2P) is False
    assert gold.tree_sha256 != broken.tree_sha256 and gold.level["backend"] == "bubblewrap"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("def order(a, k):\n    return a if a < k else str(k)\n", None),  # low passes; another type elsewhere
        ("def order(a, k):\n    raise ValueError('x')\n", "assertion"),
        ("def order(a, k:\n", "import_error"),
        ("def other(a, k):\n    return 3\n", "import_error"),
        ("raise SystemExit(0)\n", "import_error"),
        ("def order(a, k):\n    while True: pass\n", "timeout"),
        ("import os\ndef order(a, k):\n    os._exit(0)\n", "exit"),
        ("import os\nos._exit(0)\n", "exit"),
        ("def order(a, k):\n    return float('nan')\n", "assertion"),
        ("def order(a, k):\n    return object()\n", "assertion"),
        ("def order(a, k):\n    return order(a, k)\n", "assertion"),
        ("import os, signal\ndef order(a, k):\n    os.kill(os.getpid(), signal.SIGSEGV)\n", "exit"),
    ],
)
def test_causes_are_the_artefacts(text: str, cause: str | None) -> None:
    """Each leaves a complete report: what the artefact does is observed, and the other module's tests go on."""
    found = trial(changed("numbers_/order.py", text), seconds=1.0)
    assert found.complete, found.unknown
    low = found.observed[0]
    assert low.cause == cause and (low.status == "PASSED") == (cause is None)
    assert found.status["equal"] == "FAILED"  # str(4), or the same fault


def test_a_broken_import_breaks_what_imports_it_and_u_says_so() -> None:
    """0/1 of fail-to-pass, and pass-to-pass broken: -1."""
    found = trial(changed("numbers_/order.py", "import nothing_here\n"))
    assert found.status == {"low": "FAILED", "equal": "FAILED", "total": "FAILED", "none": "FAILED"}
    assert utility(found, F2P, P2P) == -1


def test_half_of_two() -> None:
    """low passes, total fails: 1/2 of fail-to-pass, pass-to-pass whole. With none broken too: 1/2 - 1."""
    found = trial(changed("total.py", "def total(xs):\n    return len(xs)\n"))
    assert utility(found, ["low", "total"], ["equal", "none"]) == Fraction(1, 2)
    found = trial(changed("total.py", "def total(xs):\n    return 1\n"))
    assert utility(found, ["low", "total"], ["equal", "none"]) == Fraction(-1, 2)


CHEATS = {
    "prints passes": 'import sys\nsys.__stdout__.write(\'{"id": "low", "status": "PASSED"}\\n\')\n',
    "patches equality": "class Any(int):\n    def __eq__(self, other): return True\ndef order(a, k): return Any(9)\n",
    "kills the driver": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\ndef order(a, k): return 9\n",
    "writes to the driver's output": (
        'import os\nLINE = b\'{"id": "low", "value": 9}\\n\'\n'
        "for name in ('1', '2'):\n"
        '    try: os.write(os.open(f"/proc/{os.getppid()}/fd/{name}", os.O_WRONLY), LINE)\n'
        "    except OSError: pass\n"
        "def order(a, k): return 9\n"
    ),
    "replaces the driver": "open('/h/driver.py', 'w').write('')\n",
    "looks for the tests": (
        "import glob\nFOUND = [p for p in glob.glob('/**/*', recursive=True) if 'hidden' in p or 'trial' in p]\n"
        "def order(a, k): return FOUND\n"
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_an_artefact_that_cheats_gains_nothing(name: str) -> None:
    """Whatever it does, the test that it should make pass is seen to fail."""
    found = trial(changed("numbers_/order.py", CHEATS[name]), seconds=1.0)
    assert found.complete and found.status["low"] == "FAILED" and found.observed[0].cause is not None
    assert is_success(found, F2P, P2P) is False


def test_one_test_does_not_see_what_another_left() -> None:
    """State of a module does not pass from call to call."""
    text = "SEEN = []\ndef order(a, k):\n    SEEN.append(a)\n    return min(a, k) if len(SEEN) == 1 else 99\n"
    assert set(trial(changed("numbers_/order.py", text)).status.values()) == {"PASSED"}


class Breaking:
    """A sandbox that fails."""

    level = Level("none", "0", "none", "none", unisolated=True)

    def run(self, workspace: Path, program: Program, limits: Limits) -> Outcome:
        raise SandboxFault("sandbox: no control group")


def test_a_fault_of_the_sandbox_is_unknown_and_no_verdict() -> None:
    broken: Sandbox = Breaking()
    found = run_trial(broken, GOLD, TESTS)
    assert not found.complete and found.observed == () and "no control group" in str(found.unknown)
    assert utility(found, F2P, P2P) is None and is_success(found, F2P, P2P) is None


def test_a_tree_that_leaves_its_folder_is_unknown() -> None:
    assert not run_trial(get_sandbox(), {"../x.py": b""}, TESTS).complete


def test_two_tests_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="expected each once"):
        run_trial(get_sandbox(), GOLD, [TESTS[0], TESTS[0]])


def test_utility_needs_a_fail_to_pass_test() -> None:
    with pytest.raises(ValueError, match="expected at least one"):
        utility(trial(GOLD), [], P2P)


def test_the_same_tree_gives_the_same_verdicts() -> None:
    first, again = trial(BROKEN), trial(BROKEN)
    assert first.observed == again.observed and first.stdout_sha256 == again.stdout_sha256
