"""The visible tests of a tree, as the policy reads them. An Observation, no verdict, and so kept by tree and tests."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.contracts.canonical import digest
from workbench.contracts.errors import EnvironmentFault
from worker.environments.base import Task
from worker.sandbox.base import SandboxFault
from worker.sandbox.choose import get_sandbox
from worker.verifiers.trial import ASSERTION, FAILED, HiddenTest, Observed, run_trial

KEPT, SHOWN_FAILURES, SHOWN_CHARACTERS = 4096, 20, 160
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_FOLDER = re.compile(r"/[^\s'\"]*workbench-trial-[^/\s'\"]*")


@dataclass(frozen=True)
class VisibleRun:
    """How many visible tests pass, and what is shown of it."""

    text: str
    passed: int
    total: int


def as_test(item: Mapping[str, Any]) -> HiddenTest:
    """A test as a task stores it."""
    return HiddenTest(item["id"], item["module"], item["function"], tuple(item["arguments"]), item["expected"])


class VisibleTests:
    """Runs visible tests in the sandbox, once for each tree and list of tests."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, VisibleRun] = OrderedDict()

    def __call__(self, task: Task, files: Mapping[str, str]) -> VisibleRun:
        """Raises ``EnvironmentFault`` where the sandbox fails: that is nobody's result."""
        visible = task.initial_state["visible"]
        key = digest({"files": dict(files), "visible": visible})
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found = self._kept[key] = _run(files, [as_test(item) for item in visible])
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found


def _run(files: Mapping[str, str], tests: list[HiddenTest]) -> VisibleRun:
    if not tests:
        return VisibleRun("no visible tests", 0, 0)
    try:
        report = run_trial(get_sandbox(), {path: text.encode() for path, text in files.items()}, tests)
    except SandboxFault as error:
        raise EnvironmentFault(f"visible tests: {error}") from error
    if not report.complete:
        raise EnvironmentFault(f"visible tests: {report.unknown}")
    return VisibleRun(shown(report.observed, tests), sum(item.status != FAILED for item in report.observed), len(tests))


def shown(observed: Sequence[Observed], tests: Sequence[HiddenTest]) -> str:
    """The text of an Observation; ``observed`` one a test, in their order."""
    failed = [(test, item) for test, item in zip(tests, observed, strict=True) if item.status == FAILED]
    lines = [f"{len(tests) - len(failed)} of {len(tests)} pass"]
    lines += [_line(test, item) for test, item in failed[:SHOWN_FAILURES]]
    if len(failed) > SHOWN_FAILURES:
        lines.append(f"{len(failed) - SHOWN_FAILURES} more fail")
    return "\n".join(lines)


def _line(test: HiddenTest, item: Observed) -> str:
    """``due.py due(3, 1) gives -2 not 2``; without addresses or folders, so that equal trees show equal text."""
    call = f"{test.module} {test.function}({', '.join(_word(value) for value in test.arguments)})"
    word, _, rest = item.detail.partition(": ")
    if item.cause == ASSERTION and word == "another value":
        return f"{call} gives {rest} not {_word(test.expected)}"
    said = _FOLDER.sub("", _ADDRESS.sub("0x", rest))[:SHOWN_CHARACTERS]
    return f"{call} {item.cause if item.cause != ASSERTION else word}{': ' + said if said else ''}"


def _word(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:SHOWN_CHARACTERS]
