"""One verifier trial: the hidden tests of a task on one artefact, in a fresh sandbox.

The harness stands outside: the sandbox calls functions and says what they gave; what was expected stays here and is
compared here. A test is PASSED or FAILED with a cause: assertion (another value, or the call raised), import_error,
timeout, exit (the process ended without an answer). These are the artefact's doing. Only a fault of the sandbox or a
missing observation leaves the report incomplete: then it is unknown, never a failure and never a zero.

An artefact cannot withhold an observation: the driver is out of its reach (see there), has the time and the room that
every test may take, and where the space of a run was ended for its bound on memory, that is the artefact's doing too.
What then still ends the driver (the machine, a fault of its own) is nobody's verdict. The back end ``subprocess``
shields nothing: whatever ends or stops the driver there is taken for the artefact's doing.

Utility: U = passed fail-to-pass / all fail-to-pass - 1[some pass-to-pass fails], in [-1, 1] (ours).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.contracts.canonical import canonical_bytes, sha256_hex
from worker.sandbox.base import Limits, Outcome, Program, Sandbox, SandboxFault
from worker.sandbox.workspace import TreeRefused, workspace

PASSED, FAILED = "PASSED", "FAILED"
ASSERTION, IMPORT_ERROR, TIMEOUT, EXIT = "assertion", "import_error", "timeout", "exit"
CAUSES = {"raised": ASSERTION, "no_json": ASSERTION, "import_error": IMPORT_ERROR, "timeout": TIMEOUT, "exit": EXIT}
DRIVER = Path(__file__).with_name("driver.py")
VERIFIER = "hidden_calls/2"
TRIAL_LIMITS = Limits(wall_s=30.0, cpu_s=20, processes=8)
START_SECONDS = 5.0  # of the driver itself, beside its tests
ENDING_SECONDS = (
    5.0  # for the kernel to end what one test leaves, which an artefact can make long: no reason to be unknown
)
LINE_BYTES = 132_000  # at most, of one answer
DETAIL_CHARACTERS = 300


@dataclass(frozen=True)
class HiddenTest:
    """One hidden test: a call and the value that it must give, as JSON."""

    id: str
    module: str
    function: str
    arguments: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class Observed:
    """What one test showed. ``cause`` None where it passed; ``detail``: the raw word of the sandbox's side."""

    test: str
    status: str
    cause: str | None
    detail: str


@dataclass(frozen=True)
class TrialReport:
    """A trial as it is recorded. ``complete``: every test of the fixed list has an observation.

    ``unknown``: why it is not complete. ``repeated``: test ids whose status a later line overwrote (the first stands).
    Times in seconds; ``queue_s`` is the caller's. ``reused_from``: the trial whose verdict this is, for training
    rewards alone.
    """

    verifier: str
    tree_sha256: str
    complete: bool
    observed: tuple[Observed, ...]
    unknown: str | None
    exit_code: int | None
    signal: int | None
    stdout_sha256: str
    stderr_sha256: str
    setup_s: float
    run_s: float
    cleanup_s: float
    level: Mapping[str, object]
    repeated: tuple[str, ...] = ()
    reused_from: str | None = None

    @property
    def status(self) -> dict[str, str]:
        """PASSED or FAILED by test."""
        return {item.test: item.status for item in self.observed}


def tree_sha256(files: Mapping[str, bytes]) -> str:
    """Identity of a tree: the digest of {path: hash of the content}."""
    return sha256_hex(canonical_bytes({path: sha256_hex(data) for path, data in files.items()}))


def utility(report: TrialReport, fail_to_pass: Sequence[str], pass_to_pass: Sequence[str]) -> Fraction | None:
    """U of a complete report; None of an incomplete one. Raises ``ValueError`` where no fail-to-pass test is named."""
    if not fail_to_pass:
        raise ValueError("fail_to_pass: got none, expected at least one test")
    status = report.status
    if not report.complete or any(name not in status for name in [*fail_to_pass, *pass_to_pass]):
        return None
    passed = sum(status[name] == PASSED for name in fail_to_pass)
    broken = any(status[name] != PASSED for name in pass_to_pass)
    return Fraction(passed, len(fail_to_pass)) - (1 if broken else 0)


def is_success(report: TrialReport, fail_to_pass: Sequence[str], pass_to_pass: Sequence[str]) -> bool | None:
    """All fail-to-pass pass and no pass-to-pass is broken; None of an incomplete report."""
    found = utility(report, fail_to_pass, pass_to_pass)
    return None if found is None else found == 1


def run_trial(
    sandbox: Sandbox,
    files: Mapping[str, bytes],
    tests: Sequence[HiddenTest],
    *,
    seconds: float = 2.0,
    limits: Limits = TRIAL_LIMITS,
    below: Path | None = None,
) -> TrialReport:
    """Run the tests on a tree. Never raises for what the artefact does; a fault of the sandbox is an unknown report.

    ``seconds``: of one test. ``below``: where the workspace folder is made, else the system's temporary folder.
    """
    identity = tree_sha256(files)
    names = [test.id for test in tests]
    if len(set(names)) != len(names):
        raise ValueError("tests: got an id twice, expected each once")
    program = driver_program(tests, seconds)
    try:
        with workspace(files, below=below) as folder:
            outcome = sandbox.run(folder, program, _with_room(limits, len(tests), seconds))
    except (SandboxFault, TreeRefused, OSError) as error:
        return TrialReport(
            VERIFIER, identity, False, (), f"{type(error).__name__}: {error}"[:300], None, None,
            sha256_hex(b""), sha256_hex(b""), 0.0, 0.0, 0.0, sandbox.level.record(),
        )  # fmt: skip
    observed, repeated = _observed(outcome.stdout, tests)
    withheld = _withheld(outcome)
    if withheld is not None:
        for test in tests:
            observed.setdefault(test.id, withheld(test.id))
    return _report(identity, outcome, tests, observed, repeated)


def _with_room(limits: Limits, tests: int, seconds: float) -> Limits:
    """Limits under which tests that all take what they may, and say what they may, are each observed."""
    return replace(
        limits,
        wall_s=max(limits.wall_s, tests * (seconds + ENDING_SECONDS) + START_SECONDS),
        output_bytes=max(limits.output_bytes, tests * LINE_BYTES),
    )


def _withheld(outcome: Outcome) -> Callable[[str], Observed] | None:
    """What a test without an observation showed, where the artefact is why there is none; None where it is not."""
    if outcome.out_of_memory:
        return lambda name: Observed(name, FAILED, EXIT, "exit: the bound on memory ended the run")
    if not outcome.level.unisolated:
        return None
    if outcome.timed_out:
        return lambda name: Observed(name, FAILED, TIMEOUT, "timeout: the driver was stopped")
    if outcome.signal is not None:
        return lambda name: Observed(name, FAILED, EXIT, f"exit: the driver was ended by signal {outcome.signal}")
    return None


def driver_program(tests: Sequence[HiddenTest], seconds: float) -> Program:
    """The driver with its calls; what is expected is not among what it is told. See ``driver`` for both formats."""
    calls = [{"module": test.module, "function": test.function, "arguments": list(test.arguments)} for test in tests]
    return Program(
        [os.path.realpath(sys.executable), "-P", "-s", "-S", "-B", "-"],
        environment={"PYTHONHASHSEED": "0"},  # the order of a set is the artefact's: equal in every trial
        stdin=f"{_driver_text()}\nmain({calls!a}, {seconds!a})\n".encode(),
        is_first=True,
    )


@lru_cache(maxsize=1)
def _driver_text() -> str:
    return DRIVER.read_text(encoding="utf-8")


def _observed(stdout: bytes, tests: Sequence[HiddenTest]) -> tuple[dict[str, Observed], list[str]]:
    """Observations by test, and the tests that a later line named again. Whatever else was printed is not read."""
    found: dict[str, Observed] = {}
    repeated: list[str] = []
    for line in stdout.split(b"\n"):
        place, _, said = line.partition(b" ")
        if not place.isdigit() or len(place) > 9 or int(place) >= len(tests):
            continue  # the artefact's own print; it cannot make a test pass
        test = tests[int(place)]
        if test.id in found:
            repeated.append(test.id)
            continue
        found[test.id] = judged(test, _answer(said))
    return found, repeated


def _answer(said: bytes) -> dict[str, Any]:
    """What a line of the driver says of its call; whatever is no answer is the end of a process without one."""
    word, _, text = said.partition(b" ")
    if word == b"answer":
        try:
            item = json.loads(text)
        except (ValueError, RecursionError):
            item = None
        return item if isinstance(item, dict) else {"cause": "exit"}
    return {"cause": "timeout" if word == b"timeout" else "exit"}


def judged(test: HiddenTest, item: dict[str, Any]) -> Observed:
    """What a test showed, from the answer that the driver gave of its call."""
    if "value" in item and "cause" not in item:
        if _same(item["value"], test.expected):
            return Observed(test.id, PASSED, None, "value")
        try:
            return Observed(test.id, FAILED, ASSERTION, f"another value: {json.dumps(item['value'])[:200]}")
        except RecursionError:  # it could be read, a few frames higher
            return Observed(test.id, FAILED, ASSERTION, "another value: lists or objects a thousand deep")
    word = str(item.get("cause"))
    return Observed(test.id, FAILED, CAUSES.get(word, EXIT), _shown(f"{word}: {str(item.get('what', ''))[:200]}"))


def _shown(text: str) -> str:
    """Text that any record and any database takes, whatever the artefact put into its error."""
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in text)[:DETAIL_CHARACTERS]


def _same(got: Any, expected: Any) -> bool:
    """Equal values of equal types: True is not 1, and 1 is not 1.0."""
    if type(got) is not type(expected):
        return False
    if isinstance(got, list):
        return len(got) == len(expected) and all(_same(a, b) for a, b in zip(got, expected, strict=True))
    if isinstance(got, dict):
        return got.keys() == expected.keys() and all(_same(value, expected[key]) for key, value in got.items())
    return bool(got == expected)


def _report(
    identity: str,
    outcome: Outcome,
    tests: Sequence[HiddenTest],
    observed: dict[str, Observed],
    repeated: list[str],
) -> TrialReport:
    missing = [test.id for test in tests if test.id not in observed]
    unknown = None
    if missing:
        ended = "timed out" if outcome.timed_out else f"ended with {outcome.exit_code} / {outcome.signal}"
        unknown = f"{len(missing)} of {len(tests)} tests without an observation; the driver {ended}"
    return TrialReport(
        VERIFIER,
        identity,
        not missing,
        tuple(observed[test.id] for test in tests if test.id in observed),
        unknown,
        outcome.exit_code,
        outcome.signal,
        sha256_hex(outcome.stdout),
        sha256_hex(outcome.stderr),
        outcome.setup_s,
        outcome.run_s,
        outcome.cleanup_s,
        outcome.level.record(),
        tuple(repeated),
    )
