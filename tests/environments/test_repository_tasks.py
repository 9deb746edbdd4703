"""Tasks made of repositories: loaded, controlled, attacked; a forged result never passes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workbench.contracts.controls import KINDS
from workbench.contracts.errors import EnvironmentFault
from worker.environments.base import FinishAction, Task, ToolAction
from worker.environments.code_repair.session import RepairSession
from worker.environments.code_repair.swe import RepositoryRepair, command_tests, load_task, load_tasks
from worker.environments.controls import control_trees, run_controls
from worker.environments.registry import get_environment
from worker.sandbox.base import Level, Limits, Outcome, Program, SandboxFault
from worker.sandbox.choose import get_sandbox
from worker.verifiers.commands import run_command_trial
from worker.verifiers.trial import is_success, utility

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples" / "repositories"
PATH = "worker.environments.code_repair.swe:RepositoryRepair"


@pytest.fixture(scope="module")
def environment() -> RepositoryRepair:
    return RepositoryRepair({"tasks": str(FOLDER)})


@pytest.fixture(scope="module")
def ledger(environment: RepositoryRepair) -> Task:
    return next(task for task in environment.tasks() if task.key == "ledger.book")


@pytest.fixture(scope="module")
def slugs(environment: RepositoryRepair) -> Task:
    return next(task for task in environment.tasks() if task.key == "slugs.address")


@pytest.mark.slow
def test_every_control_of_both_behaves_as_it_must(environment: RepositoryRepair) -> None:
    slots = [slot for slot, _ in run_controls(environment, "repository_repair/1.0.0")]
    assert [slot.kind for slot in slots] == [*KINDS, *KINDS]
    assert all(slot.as_expected for slot in slots), [slot for slot in slots if not slot.as_expected]


def test_gold_passes_and_doing_nothing_fails(environment: RepositoryRepair, ledger: Task) -> None:
    """Nothing done: 0 of 3, and what passed goes on passing: U = 0. Twice the same report, times apart."""
    trees = control_trees(ledger)
    gold, nothing = environment.trial(ledger, trees["gold"]), environment.trial(ledger, trees["no_op"])
    lists = environment.lists(ledger)
    assert is_success(gold, *lists) is True and gold.verifier == "test_command/1"
    assert utility(nothing, *lists) == 0 and is_success(nothing, *lists) is False
    again = environment.trial(ledger, trees["no_op"])
    assert (again.observed, again.stdout_sha256, again.stderr_sha256) == (
        nothing.observed,
        nothing.stdout_sha256,
        nothing.stderr_sha256,
    )


FORGERIES = {
    "exits at import": "import os\nos._exit(0)\n",
    "exits at its end": "import atexit, os\natexit.register(os._exit, 0)\n",
    "leaves by SystemExit": "raise SystemExit(0)\n",
    "prints what a runner prints": "print('OK')\nprint('Ran 1 test in 0.001s')\nimport sys\nsys.exit(0)\n",
    "equals everything": (
        "class Any(str):\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "    def isalpha(self): return True\n"
        "def slug(title, most=20): return Any()\ndef unique(title, taken): return Any()\n"
    ),
    "patches the assertions": (
        "import unittest\nfor name in dir(unittest.TestCase):\n"
        "    if name.startswith('assert'): setattr(unittest.TestCase, name, lambda *a, **k: None)\n"
        "def slug(title, most=20): return 'x'\ndef unique(title, taken): return 'x'\n"
    ),
    "patches the runner": (
        "import unittest\nunittest.TestCase.run = lambda self, result=None: result\n"
        "def slug(title, most=20): return 'x'\ndef unique(title, taken): return 'x'\n"
    ),
    "patches the result": (
        "import unittest\nunittest.TestResult.wasSuccessful = lambda self: True\n"
        "def slug(title, most=20): return 'x'\ndef unique(title, taken): return 'x'\n"
    ),
    "writes the test away": (
        "open('/w/tests/test_slugs.py', 'w').write('')\nopen('/w/report.xml', 'w').write('<passed/>')\n"
        "def slug(title, most=20): return 'x'\ndef unique(title, taken): return 'x'\n"
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_result_never_passes(environment: RepositoryRepair, slugs: Task, name: str) -> None:
    """The test that it should make pass is not, and the report is complete: it is the artefact's failure."""
    tree = {**control_trees(slugs)["no_op"], "slugs/address.py": FORGERIES[name].encode()}
    first = environment.lists(slugs)[0][0]
    report = run_command_trial(get_sandbox(), tree, replace(command_tests(slugs), tests=(first,)))
    assert report.complete and report.status == {first: "FAILED"}


SHADOWS = {
    "unittest.py": "def main(*a, **k): raise SystemExit(0)\nclass TestCase: pass\nraise SystemExit(0)\n",
    "unittest/__main__.py": "raise SystemExit(0)\n",
    "sitecustomize.py": "import os\nos._exit(0)\n",
    "tests/test_slugs.py": "import unittest\nclass Slugs(unittest.TestCase):\n    def test_lower_case(self): pass\n",
    "tests/__init__.py": "raise SystemExit(0)\n",
}


@pytest.mark.parametrize("path", SHADOWS)
def test_files_of_the_harness_are_the_harnesss(environment: RepositoryRepair, slugs: Task, path: str) -> None:
    """A runner or a test of its own changes nothing: the verdict is that of the tree without it."""
    first = environment.lists(slugs)[0][0]
    one = replace(command_tests(slugs), tests=(first,))
    for kind, expected in (("no_op", "FAILED"), ("gold", "PASSED")):
        tree = {**control_trees(slugs)[kind], path: SHADOWS[path].encode()}
        assert run_command_trial(get_sandbox(), tree, one).status == {first: expected}


class Breaking:
    """A sandbox that works once."""

    level = Level("none", "0", "none", "none")
    runs = 0

    def run(self, workspace: Path, program: Program, limits: Limits) -> Outcome:
        self.runs += 1
        if self.runs > 1:
            raise SandboxFault("sandbox: no control group")
        return Outcome(1, None, False, b"", b"", 0, 0, 0.0, 0.1, 0.0, self.level)


def test_a_fault_of_the_sandbox_is_unknown(ledger: Task) -> None:
    """One test was seen to fail, the others were not seen: no verdict."""
    report = run_command_trial(Breaking(), control_trees(ledger)["gold"], command_tests(ledger))
    assert not report.complete and "no control group" in str(report.unknown) and len(report.observed) == 1
    assert utility(report, ledger.hidden["fail_to_pass"], ledger.hidden["pass_to_pass"]) is None


def test_an_episode_repairs_it(environment: RepositoryRepair, ledger: Task) -> None:
    """Through the policy's own tools; the hidden files are not in its tree; the visible tests are shown."""
    session = environment.reset(ledger)
    assert isinstance(session, RepairSession)
    assert not [path for path in session.files if "check_book" in path]
    seen = session.step(ToolAction("test", {}))
    assert seen.text == "check_seen.py::test_whole_amounts: passes"
    for path, text in ledger.hidden["gold"].items():
        assert session.step(ToolAction("edit", {"path": path, "text": text})).status == "ok"
    session.finish(FinishAction("done", ()))
    tree = {path: text.encode() for path, text in session.files.items()}
    assert tree == control_trees(ledger)["gold"]


def test_it_is_an_environment_by_its_path() -> None:
    found = get_environment(PATH, {"tasks": str(FOLDER)})
    assert [task.key for task in found.tasks()] == ["ledger.book", "slugs.address"]
    assert found.version == "1.0.0" and "repository" in found.instructions()
    with pytest.raises(EnvironmentFault, match="expected tasks: a folder"):
        get_environment(PATH, {})
    with pytest.raises(EnvironmentFault, match="expected a folder"):
        get_environment(PATH, {"tasks": "/nowhere/at/all"})


def test_tasks_say_nothing_of_their_place(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "other")
    assert [task.identity() for task in load_tasks(tmp_path / "other")] == [t.identity() for t in load_tasks(FOLDER)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "other/1"}, "with schema"),
        ({"more": 1}, "expected"),
        ({"prompt": " "}, "prompt: got ' ', expected text"),
        ({"split": "dev"}, "split: got 'dev'"),
        ({"command": ["python", "run_tests.py"]}, "expected {test} in it"),
        ({"fail_to_pass": []}, "at least one to pass"),
        ({"pass_to_pass": ["check_book.py::test_one_place"]}, "each test once"),
        ({"fail_to_pass": ["check_book.py::test_other"]}, "got no test_other"),
        ({"fail_to_pass": ["elsewhere.py::test"]}, "expected one of a file of the harness"),
        ({"visible": "all"}, "expected a list of texts"),
    ],
)
def test_a_wrong_task_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    place = tmp_path / "ledger"
    shutil.copytree(FOLDER / "ledger", place)
    value = json.loads((place / "task.json").read_text())
    (place / "task.json").write_text(json.dumps({**value, **change}))
    with pytest.raises(EnvironmentFault, match="task ledger: ") as caught:
        load_task(place)
    assert message in str(caught.value)


def test_a_patch_that_does_not_fit_and_a_test_without_an_assertion(tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    shutil.copytree(FOLDER / "ledger", place)
    (place / "hidden" / "check_book.py").write_text("def test_one_place(): pass\n")
    with pytest.raises(EnvironmentFault, match="without an assertion of its own"):
        load_task(place)
    shutil.copytree(FOLDER / "ledger", tmp_path / "again")
    patch = tmp_path / "again" / "gold.patch"
    patch.write_text(patch.read_text().replace(" def cents", " def pence"))
    with pytest.raises(EnvironmentFault, match="expected 'def pence"):
        load_task(tmp_path / "again")
    (tmp_path / "empty").mkdir()
    with pytest.raises(EnvironmentFault, match=r"without a task\.json"):
        load_tasks(tmp_path / "empty")
