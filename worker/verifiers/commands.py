"""Hidden tests as a test command, one run of the sandbox a test: for repositories whose tests are programs.

Here the judge (test file, runner) runs in the process of the judged, so nothing that it says is believed: not what it
prints, not a file that it writes, not its exit code 0 alone. A test has PASSED where two runs agree, each in a fresh
sandbox:

1. the command on the test as it is ends with exit code 0;
2. the command on its twin, the same test whose every assertion expects what cannot be, ends with another exit code.

A tree that exits 0 while it is imported or at its end, that patches the runner or its assertions, that overrides
equality or brings a runner of its own makes the twin pass as well, and so fails. Files of the harness (test files,
what configures a runner, names of the standard library that the snapshot does not have) are as the harness has them,
whatever the tree says.

Limits of judging inside the judged process: a tree that reads the test's source or its runner's memory and behaves
otherwise in the twin is not found out; a fault in a helper outside the test's own function has no twin; a test that
depends on what another test left behind fails. ``trial`` (calls, compared outside) has none of these limits and is
to be preferred where a test can be said as a call.
"""

from __future__ import annotations

import ast
import copy
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath

from workbench.contracts.canonical import canonical_bytes, sha256_hex
from worker.sandbox.base import Limits, Outcome, Program, Sandbox, SandboxFault
from worker.sandbox.workspace import TreeRefused, workspace

from .trial import ASSERTION, EXIT, FAILED, IMPORT_ERROR, PASSED, TIMEOUT, Observed, TrialReport, tree_sha256

VERIFIER = "test_command/1"
COMMAND_LIMITS = Limits(wall_s=20.0, cpu_s=15, processes=8)
RUNNER_FILES = ("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", "tox.ini", "setup.cfg")
TEST = "{test}"
_VARIES = re.compile(rb"0x[0-9a-fA-F]+|\d+\.\d+ ?s\b")
_EQUAL = {
    "assertEqual", "assertIs", "assertAlmostEqual", "assertDictEqual", "assertListEqual", "assertTupleEqual",
    "assertSetEqual", "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual",
}  # fmt: skip
_SECOND = _EQUAL | {
    "assertIn", "assertGreater", "assertGreaterEqual", "assertLess", "assertLessEqual", "assertIsInstance",
}  # fmt: skip
# What stands for two sides in a twin: one of them beside an object that nothing equals; the side that says otherwise.
_SIDES = "lambda a, b, nothing: (b, nothing) if b == nothing else (a, nothing)"
_INSIDE = "lambda a, b, nothing: (nothing, b) if nothing in b else (a, [nothing])"
_OTHER = "lambda a, b, nothing: (a, nothing)"
_AS_FIRST = {"assertNotEqual", "assertIsNot"}


@dataclass(frozen=True)
class CommandTests:
    """``command``: the program with ``{test}`` where a test's id goes; ``python`` stands for this interpreter.

    ``files``: the harness's own, laid over every tree. ``snapshot``: paths of the tree that the task begins with.
    """

    command: tuple[str, ...]
    files: Mapping[str, str]
    tests: tuple[str, ...]
    snapshot: Mapping[str, str]


def located(test: str, files: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """(path, names below it) of ``package.module.Class.test`` or ``path.py::Class::test``.

    Raises ``ValueError`` where no file of the harness holds it.
    """
    if "::" in test:
        path, *names = test.split("::")
        if path in files and names:
            return path, tuple(names)
    parts = test.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        path = "/".join(parts[:cut]) + ".py"
        if path in files:
            return path, tuple(parts[cut:])
    raise ValueError(f"test: got {test!r}, expected one of a file of the harness: {sorted(files)}")


def _function(tree: ast.Module, names: Sequence[str]) -> ast.FunctionDef | None:
    body: Sequence[ast.stmt] = tree.body
    for position, name in enumerate(names):
        last = position == len(names) - 1
        kind = ast.FunctionDef if last else ast.ClassDef
        found = next((item for item in body if isinstance(item, kind) and item.name == name), None)
        if found is None or isinstance(found, ast.FunctionDef):
            return found
        body = found.body
    return None


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _never(expression: ast.expr, value: str) -> ast.expr:
    """The expression is evaluated, and ``value`` stands in its place."""
    return ast.Subscript(ast.Tuple([expression, _expression(value)], ast.Load()), ast.Constant(1), ast.Load())


class _Twin(ast.NodeTransformer):
    """Every assertion expects what cannot be."""

    def __init__(self) -> None:
        self.changed = 0

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.changed += 1
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            picked = ast.Call(_expression(_SIDES), [test.left, test.comparators[0], _expression("object()")], [])
            node.test = ast.Call(_expression("lambda pair: pair[0] == pair[1]"), [picked], [])
        else:
            node.test = _never(test, "False")
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in _SECOND and len(node.args) >= 2:
            rule = _SIDES if name in _EQUAL else _INSIDE if name == "assertIn" else _OTHER
            nothing = _expression("object()" if name != "assertIsInstance" else "type('N', (), {})")
            picked = ast.Call(_expression(rule), [*node.args[:2], nothing], [])
            node.args[:2] = [ast.Starred(picked, ast.Load())]
        elif name in _AS_FIRST and len(node.args) >= 2:
            node.args[1] = copy.deepcopy(node.args[0])
        elif name == "assertNotIn" and len(node.args) >= 2:
            node.args[1] = ast.List([copy.deepcopy(node.args[0])], ast.Load())
        elif name in ("assertTrue", "assertFalse") and node.args:
            node.args[0] = _never(node.args[0], str(name == "assertFalse"))
        elif name in ("assertIsNone", "assertIsNotNone") and node.args:
            node.args[0] = _never(node.args[0], "object()" if name == "assertIsNone" else "None")
        elif name in ("assertRaises", "assertRaisesRegex") and node.args:
            node.args[0] = _expression("type('N', (Exception,), {})")
        else:
            return node
        self.changed += 1
        return node


@lru_cache(maxsize=4096)
def both(text: str, names: tuple[str, ...], where: str) -> tuple[str, str]:
    """(the test file, the file with the test's twin in it), both written out by one printer.

    Raises ``ValueError`` where the function is missing or has no assertion of its own that can be turned.
    """
    try:
        plain, turned = ast.parse(text), ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{where}: got {error}, expected Python") from error
    function = _function(turned, names)
    if function is None:
        raise ValueError(f"{where}: got no {'.'.join(names)}, expected a test function")
    twin = _Twin()
    function.body = [twin.visit(item) for item in function.body]
    if not twin.changed:
        raise ValueError(f"{where}: got {'.'.join(names)} without an assertion of its own, expected at least one")
    return ast.unparse(plain) + "\n", ast.unparse(ast.fix_missing_locations(turned)) + "\n"


def _is_harness(path: str, snapshot: Mapping[str, str]) -> bool:
    """Whether a path is the harness's to say: configuration of runners, and new names of the standard library."""
    pure = PurePosixPath(path)
    top = pure.parts[0].removesuffix(".py")
    is_new = not any(known == path or known.startswith(f"{pure.parts[0]}/") for known in snapshot)
    return pure.name in RUNNER_FILES or (is_new and top in sys.stdlib_module_names)


def judged_tree(files: Mapping[str, bytes], tests: CommandTests) -> dict[str, bytes]:
    """The tree as it is judged: paths of the harness are as the snapshot has them, test files as the harness has."""
    tree = {path: data for path, data in files.items() if not _is_harness(path, tests.snapshot)}
    tree |= {path: text.encode() for path, text in tests.snapshot.items() if PurePosixPath(path).name in RUNNER_FILES}
    return {**tree, **{path: text.encode() for path, text in tests.files.items()}}


def argv_of(command: Sequence[str], test: str) -> list[str]:
    """The program of one test."""
    argv = [part.replace(TEST, test) for part in command]
    return [os.path.realpath(sys.executable), "-s", "-S", "-B", *argv[1:]] if argv[0] == "python" else argv


def run_once(
    sandbox: Sandbox, tree: Mapping[str, bytes], command: Sequence[str], test: str, limits: Limits = COMMAND_LIMITS
) -> Outcome:
    """One run on one tree. Raises ``SandboxFault``, ``TreeRefused`` or ``OSError``: nobody's verdict."""
    with workspace(tree) as folder:
        program = Program(argv_of(command, test), environment={"PYTHONHASHSEED": "0"})
        return sandbox.run(folder, program, limits)


def run_command_trial(
    sandbox: Sandbox, files: Mapping[str, bytes], tests: CommandTests, *, limits: Limits = COMMAND_LIMITS
) -> TrialReport:
    """Every test on a tree. Never raises for what the artefact does; a fault of the sandbox is an unknown report.

    Raises ``ValueError`` for a test that has no twin: see ``both``.
    """
    identity, tree = tree_sha256(files), judged_tree(files, tests)
    observed: list[Observed] = []
    runs: list[tuple[str, Outcome]] = []
    unknown = None
    for test in tests.tests:
        try:
            found, outcomes = _judge(sandbox, tree, tests, test, limits)
        except (SandboxFault, TreeRefused, OSError) as error:
            unknown = f"{type(error).__name__}: {error}"[:300]
            break
        observed.append(found)
        runs += [(test, outcome) for outcome in outcomes]
    return _report(sandbox, identity, tuple(observed), runs, unknown)


def _judge(
    sandbox: Sandbox, tree: Mapping[str, bytes], tests: CommandTests, test: str, limits: Limits
) -> tuple[Observed, list[Outcome]]:
    path, names = located(test, tests.files)
    plain, turned = both(tests.files[path], names, path)
    first = run_once(sandbox, {**tree, path: plain.encode()}, tests.command, test, limits)
    if first.timed_out or first.exit_code != 0:
        return Observed(test, FAILED, _cause(first), _ended(first)), [first]
    twin = run_once(sandbox, {**tree, path: turned.encode()}, tests.command, test, limits)
    if twin.exit_code in (0, None) or twin.timed_out:
        detail = f"its twin {_ended(twin)}: the result does not come from the test"
        return Observed(test, FAILED, EXIT, detail), [first]
    return Observed(test, PASSED, None, "exit code 0, and not its twin"), [first]


def _cause(outcome: Outcome) -> str:
    """A word for people; what the process printed decides it and nothing else."""
    if outcome.timed_out:
        return TIMEOUT
    if outcome.exit_code is None:
        return EXIT
    words = outcome.stderr + outcome.stdout
    is_import = any(name in words for name in (b"ImportError", b"ModuleNotFoundError", b"SyntaxError"))
    return IMPORT_ERROR if is_import else ASSERTION


def _ended(outcome: Outcome) -> str:
    if outcome.timed_out:
        return "timed out"
    return f"exit code {outcome.exit_code}" if outcome.exit_code is not None else f"signal {outcome.signal}"


def _report(
    sandbox: Sandbox,
    identity: str,
    observed: tuple[Observed, ...],
    runs: Sequence[tuple[str, Outcome]],
    unknown: str | None,
) -> TrialReport:
    """Streams are hashed test by test, addresses and seconds in them left out: equal trees give equal reports."""
    streams = {
        name: sha256_hex(canonical_bytes([[test, sha256_hex(_VARIES.sub(b"", getattr(o, name)))] for test, o in runs]))
        for name in ("stdout", "stderr")
    }
    last = runs[-1][1] if runs else None
    return TrialReport(
        VERIFIER,
        identity,
        unknown is None,
        observed,
        unknown,
        None if last is None else last.exit_code,
        None if last is None else last.signal,
        streams["stdout"],
        streams["stderr"],
        sum(outcome.setup_s for _, outcome in runs),
        sum(outcome.run_s for _, outcome in runs),
        sum(outcome.cleanup_s for _, outcome in runs),
        sandbox.level.record(),
    )


def with_limits(limits: Limits, seconds: float) -> Limits:
    """Limits with another wall time and a CPU time to go with it."""
    return replace(limits, wall_s=seconds, cpu_s=max(1, int(seconds)))
