"""Visible tests of trees that this package wrote itself, in this process: thousands of demonstrations need them.

What is shown equals what the sandbox shows of the same tree. No text of a policy may come here.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping
from functools import lru_cache
from types import CodeType, SimpleNamespace
from typing import Any

from worker.environments.base import Task
from worker.verifiers.trial import FAILED, HiddenTest, Observed, judged

from .visible import VisibleRun, as_test, shown

Files = Mapping[str, str]


class OwnTests:
    """``RepairSession``'s ``test_visible`` for trees of the scripted repairer."""

    def __call__(self, task: Task, files: Files) -> VisibleRun:
        """As ``visible.VisibleTests`` says it."""
        tests = [as_test(item) for item in task.initial_state["visible"]]
        if not tests:
            return VisibleRun("no visible tests", 0, 0)
        observed = observe(files, tests)
        passed = sum(item.status != FAILED for item in observed)
        return VisibleRun(shown(observed, tests), passed, len(tests))


def observe(files: Files, tests: list[HiddenTest]) -> list[Observed]:
    """What each test gives on a tree."""
    modules = _Modules(files)
    return [judged(test, modules.answer(test)) for test in tests]


class _Modules:
    """Modules of a tree; a name inside the tree is imported from it."""

    def __init__(self, files: Files):
        self.files = files
        self.loaded: dict[str, dict[str, Any]] = {}

    def answer(self, test: HiddenTest) -> dict[str, Any]:
        """As the driver in the sandbox answers a call."""
        try:
            space = self._load(test.module)
            if test.function not in space:
                name = test.module.removesuffix(".py")
                raise AttributeError(f"module {name!r} has no attribute {test.function!r}")
        except Exception as error:
            return {"cause": "import_error", "what": _said(error)}
        try:
            value = space[test.function](*json.loads(json.dumps(test.arguments)))
        except Exception as error:
            return {"cause": "raised", "what": _said(error)}
        try:
            return {"value": json.loads(json.dumps(value, allow_nan=False))}
        except (TypeError, ValueError):
            return {"cause": "no_json", "what": type(value).__name__}

    def _load(self, path: str) -> dict[str, Any]:
        if path not in self.loaded:
            space: dict[str, Any] = {"__builtins__": {**vars(builtins), "__import__": self._import}}
            exec(_compiled(self.files[path], path), space)  # our own templates, never a policy's text
            self.loaded[path] = space
        return self.loaded[path]

    def _import(self, name: str, *_: Any) -> SimpleNamespace:
        space = self._load(f"{name}.py")
        return SimpleNamespace(**{key: value for key, value in space.items() if not key.startswith("__")})


@lru_cache(maxsize=4096)
def _compiled(source: str, path: str) -> CodeType:
    return compile(source, path, "exec")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


run_own = OwnTests()
