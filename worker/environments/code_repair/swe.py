"""Tasks made of a repository: a snapshot, a prompt, a test command with its lists, a gold patch.

A folder holds one folder a task:

    <task>/task.json     {"schema": "workbench.repository-task/1", "key", "split", "family", "prompt", "command",
                          "fail_to_pass", "pass_to_pass", "visible"}; ``command`` holds "{test}" where an id goes
    <task>/repository/   the snapshot with its defect, UTF-8 texts
    <task>/hidden/       test files, laid over every tree that is judged; never in the workspace of the policy
    <task>/gold.patch    unified diff that repairs the snapshot
    <task>/controls/     optional: step_removed.patch, surface_only.patch, other_form.patch against the snapshot

Test ids are ``package.module.Class.test`` or ``path.py::Class::test`` of a hidden file; visible ones are of the
snapshot. Tests run one by one, see ``worker.verifiers.commands``: also for the limits of judging a program inside its
own process. Tests of a task may use what the interpreter of the sandbox has; no container image is started.

``RepositoryRepair`` is an environment of its own, named in a plan by its path, with ``config: {"tasks": "<folder>"}``.
The folder's name is in no hash of a task; what the files say is.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.contracts.errors import EnvironmentFault
from worker.environments.base import Demonstration, Task
from worker.sandbox.base import SandboxFault
from worker.sandbox.choose import get_sandbox
from worker.sandbox.workspace import TreeRefused, read_tree
from worker.verifiers.commands import TEST, VERIFIER, CommandTests, both, located, run_command_trial, run_once
from worker.verifiers.trial import TrialReport

from .diffs import DiffRefused, apply_diff
from .environment import CodeRepair
from .tasks import TOOLS
from .visible import VisibleRun

SCHEMA = "workbench.repository-task/1"
FIELDS = {
    "schema", "key", "split", "family", "prompt", "command", "fail_to_pass", "pass_to_pass", "visible",
}  # fmt: skip
CONTROLS = ("step_removed", "surface_only", "other_form")
SPLITS = ("train", "validation", "test", "out_of_distribution", "anchor")
SHOWN_CHARACTERS = 1500
INSTRUCTIONS = (
    "Repair the repository so that it does what the task says, then finish without citations. "
    "If the latest observation is retryable and budget remains, retry or go on."
)


def load_tasks(folder: Path | str) -> list[Task]:
    """Every task below a folder, by name. Raises ``EnvironmentFault`` naming task, field and value."""
    root = Path(folder)
    if not root.is_dir():
        raise EnvironmentFault(f"tasks: got {str(folder)!r}, expected a folder")
    places = sorted(place for place in root.iterdir() if (place / "task.json").is_file())
    if not places:
        raise EnvironmentFault(f"tasks: got {str(folder)!r} without a task.json below it, expected at least one task")
    tasks = [load_task(place) for place in places]
    keys = [task.key for task in tasks]
    if len(set(keys)) != len(keys):
        raise EnvironmentFault(f"tasks: got a key twice in {sorted(keys)}, expected each once")
    return tasks


def load_task(place: Path) -> Task:
    """One task of a folder. Raises ``EnvironmentFault``."""
    try:
        return _task(place)
    except (OSError, UnicodeDecodeError, TreeRefused, DiffRefused, ValueError) as error:
        raise EnvironmentFault(f"task {place.name}: {error}") from error


def _task(place: Path) -> Task:
    value = json.loads((place / "task.json").read_text(encoding="utf-8"))
    _check_fields(value)
    files, hidden = _texts(place / "repository"), _texts(place / "hidden")
    if not files:
        raise ValueError("repository: got no file, expected a snapshot")
    lists = [*value["fail_to_pass"], *value["pass_to_pass"]]
    if not value["fail_to_pass"] or len(set(lists)) != len(lists):
        raise ValueError(f"fail_to_pass, pass_to_pass: got {lists}, expected at least one to pass, each test once")
    for test in lists:
        path, names = located(test, hidden)
        both(hidden[path], names, path)  # a test without a twin judges nothing
    for test in value["visible"]:
        located(test, files)
    patches = {name: apply_diff(files, text) for name, text in _patches(place).items()}
    return Task(
        key=value["key"],
        split=value["split"],
        family=value["family"],
        prompt=value["prompt"],
        initial_state={"files": files, "command": value["command"], "visible": value["visible"]},
        hidden={
            "verifier": VERIFIER,
            "files": hidden,
            "tests": lists,
            "fail_to_pass": value["fail_to_pass"],
            "pass_to_pass": value["pass_to_pass"],
            "gold": patches.pop("gold"),
            "controls": patches,
        },
        tools=TOOLS,
    )


def _check_fields(value: Any) -> None:
    if not isinstance(value, dict) or set(value) != FIELDS or value["schema"] != SCHEMA:
        got = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise ValueError(f"task.json: got {got}, expected {sorted(FIELDS)} with schema {SCHEMA}")
    for name in ("key", "split", "family", "prompt"):
        if not isinstance(value[name], str) or not value[name].strip():
            raise ValueError(f"{name}: got {value[name]!r}, expected text")
    if value["split"] not in SPLITS:
        raise ValueError(f"split: got {value['split']!r}, expected one of {', '.join(SPLITS)}")
    for name in ("command", "fail_to_pass", "pass_to_pass", "visible"):
        items = value[name]
        if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
            raise ValueError(f"{name}: got {items!r}, expected a list of texts")
    if not any(TEST in part for part in value["command"]):
        raise ValueError(f"command: got {value['command']}, expected {TEST} in it")


def _texts(folder: Path) -> dict[str, str]:
    return {path: data.decode("utf-8") for path, data in read_tree(folder).items()} if folder.is_dir() else {}


def _patches(place: Path) -> dict[str, str]:
    found = {"gold": (place / "gold.patch").read_text(encoding="utf-8")}
    for kind in CONTROLS:
        if (place / "controls" / f"{kind}.patch").is_file():
            found[kind] = (place / "controls" / f"{kind}.patch").read_text(encoding="utf-8")
    return found


def command_tests(task: Task) -> CommandTests:
    """What judges a tree of the task."""
    return CommandTests(
        tuple(task.initial_state["command"]),
        task.hidden["files"],
        tuple(task.hidden["tests"]),
        task.initial_state["files"],
    )


class VisibleCommands:
    """The visible tests of a tree as the policy reads them: an Observation, no verdict."""

    def __call__(self, task: Task, files: Mapping[str, str]) -> VisibleRun:
        """Raises ``EnvironmentFault`` where the sandbox fails."""
        tests = task.initial_state["visible"]
        tree = {path: text.encode() for path, text in files.items()}
        lines, passed = [], 0
        for test in tests:
            try:
                found = run_once(get_sandbox(), tree, task.initial_state["command"], test)
            except (SandboxFault, TreeRefused, OSError) as error:
                raise EnvironmentFault(f"visible tests: {error}") from error
            good = found.exit_code == 0 and not found.timed_out
            passed += good
            said = (found.stdout + found.stderr).decode("utf-8", "replace").strip()
            lines.append(f"{test}: passes" if good else f"{test}: fails\n{said[-SHOWN_CHARACTERS:]}")
        return VisibleRun("\n".join(lines) or "no visible tests", passed, len(tests))


class RepositoryRepair(CodeRepair):
    """Repair of repositories. ``config``: ``tasks``, the folder. Raises ``ValueError`` for anything else."""

    id = "repository_repair"
    version = "1.0.0"
    verifier = VERIFIER

    def __init__(self, config: dict[str, Any]) -> None:
        if set(config) != {"tasks"} or not isinstance(config["tasks"], str):
            raise ValueError(f"config: got {sorted(config)}, expected tasks: a folder")
        self.config = dict(config)
        self._tasks = tuple(load_tasks(config["tasks"]))
        self._visible = VisibleCommands()  # type: ignore[assignment]
        self._verdicts: OrderedDict[str, TrialReport] = OrderedDict()

    def tasks(self) -> Sequence[Task]:
        """Tasks by name of their folders."""
        return self._tasks

    def instructions(self) -> str:
        """System text shared by every task."""
        return INSTRUCTIONS

    def demonstrations(self, seed: int) -> Iterator[Demonstration]:
        """None: a policy that is warm-started has no use for repositories from outside."""
        return iter(())

    def trial(self, task: Task, files: Mapping[str, bytes]) -> TrialReport:
        """Every test of the lists on a tree, twice each in fresh sandboxes. Raises ``EnvironmentFault`` without one."""
        try:
            sandbox = get_sandbox()
        except SandboxFault as error:
            raise EnvironmentFault(f"trial: {error}") from error
        return run_command_trial(sandbox, files, command_tests(task))
