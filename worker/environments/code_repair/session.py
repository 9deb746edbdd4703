"""One running repair: state = the tree, the calls and the submission. What a test said is no part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.records import ERROR, OK
from worker.environments.base import FinishAction, Observation, Task, ToolAction

from .edits import EditRefused, changed_paths, edited, lines_of
from .visible import VisibleRun

READ_LINES, FOUND_LINES, SHOWN_CHARACTERS = 200, 20, 160
TestVisible = Callable[[Task, Mapping[str, str]], VisibleRun]
_FIELDS = {"task", "changed", "calls", "finished"}


@lru_cache(maxsize=4096)
def text_sha256(text: str) -> str:
    """Hash of a file's bytes."""
    return sha256_hex(text.encode())


def initial_files(task: Task) -> dict[str, str]:
    """The tree that a task begins with, sorted by path."""
    return dict(sorted(task.initial_state["files"].items()))


def state_name(edits: int, is_tested: bool) -> str:
    """Coarse name of a state: edits that changed something so far (4 stands for more), tested since the last one."""
    return f"{min(edits, 4)} edits, {'tested' if is_tested else 'untested'}"


class RepairSession:
    """A tree of text files under a task's tools. ``test_visible`` runs the visible tests of a tree.

    Injected failures never reach a session: the runtime short-circuits them before the backend.
    """

    def __init__(self, task: Task, test_visible: TestVisible):
        self.task, self.test_visible = task, test_visible
        self.files = initial_files(task)
        self.calls: list[dict[str, Any]] = []
        self.finished: dict[str, Any] | None = None
        self.edits = 0  # calls that changed the tree
        self.is_tested = False  # since the last of them

    def step(self, action: ToolAction) -> Observation:
        """Execute a parsed call. Raises ``EnvironmentFault`` after a submission, for a foreign tool, and where the
        sandbox of the visible tests fails."""
        self._check(action)
        before, was_tested = self.files, self.is_tested
        seen = _TOOLS[action.tool](self, action.arguments)
        is_new = self._is_first(action) if action.tool == "read" else not was_tested
        self.advance(action)
        return Observation(
            status=seen.status,
            text=seen.text,
            retryable=seen.retryable,
            is_productive=seen.status == OK and _is_productive(self.task, action, before, self.files, is_new),
            facts=seen.facts,
        )

    def advance(self, action: ToolAction) -> None:
        """The state after a call, without its Observation: nothing is run."""
        self._check(action)
        if action.tool == "edit":
            try:
                after = edited(self.files, action.arguments)
            except EditRefused:
                after = self.files
            if after != self.files:
                self.files, self.edits, self.is_tested = after, self.edits + 1, False
        self.is_tested = self.is_tested or action.tool == "test"
        self.calls.append({"tool": action.tool, "arguments": dict(action.arguments)})

    def _check(self, action: ToolAction) -> None:
        if self.finished is not None:
            raise EnvironmentFault("step: got a call after the submission, expected none")
        if action.tool not in self.task.tools or action.tool not in _TOOLS:
            raise EnvironmentFault(f"tool: got {action.tool!r}, expected one of {list(self.task.tools)}")

    def _is_first(self, action: ToolAction) -> bool:
        return all(
            call["tool"] != "read" or call["arguments"]["path"] != action.arguments["path"] for call in self.calls
        )

    def finish(self, action: FinishAction) -> None:
        """Submit the tree as it is; the episode takes no further call."""
        if self.finished is not None:
            raise EnvironmentFault("finish: got a second submission, expected one")
        self.finished = {"answer": action.answer, "citations": list(action.citations)}

    def manifest(self) -> dict[str, str]:
        """The tree as {path: sha256 of the content}."""
        return {path: text_sha256(text) for path, text in self.files.items()}

    def snapshot(self) -> bytes:
        """Canonical JSON bytes of the state; of the tree only what differs from the task's own."""
        first = self.task.initial_state["files"]
        return canonical_bytes(
            {
                "task": self.task.identity(),
                "changed": {path: text for path, text in self.files.items() if first.get(path) != text},
                "calls": self.calls,
                "finished": self.finished,
            }
        )

    def state_hash(self) -> str:
        """SHA-256 of ``snapshot``."""
        return sha256_hex(self.snapshot())

    def fork(self) -> RepairSession:
        """An independent copy of the state."""
        return restore_session(self.task, self.snapshot(), self.test_visible)


def restore_session(task: Task, snapshot: bytes, test_visible: TestVisible) -> RepairSession:
    """A session with exactly the state of ``snapshot``. Raises ``EnvironmentFault`` for one of another task, and for
    a tree that its calls do not lead to."""
    state = parse_canonical(snapshot)
    if not isinstance(state, dict) or set(state) != _FIELDS:
        raise EnvironmentFault(f"snapshot: got other fields, expected {', '.join(sorted(_FIELDS))}")
    if state["task"] != task.identity():
        raise EnvironmentFault(f"snapshot.task: got {state['task']}, expected {task.identity()}")
    actions = [ToolAction(call["tool"], call["arguments"]) for call in state["calls"]]
    session = replay_session(task, actions, test_visible)
    session.finished = state["finished"]
    if session.snapshot() != snapshot:
        raise EnvironmentFault("snapshot.changed: got another tree, expected the one that its calls lead to")
    return session


def replay_session(task: Task, actions: Sequence[ToolAction], test_visible: TestVisible) -> RepairSession:
    """A session after ``actions``. No test runs: what it said is no state."""
    session = RepairSession(task, test_visible)
    for action in actions:
        session.advance(action)
    return session


def _is_productive(
    task: Task, action: ToolAction, before: Mapping[str, str], after: Mapping[str, str], is_new: bool
) -> bool:
    """Whether a call brought something that the repair needs: a broken file read for the first time, one changed, or
    the first test since the last change."""
    broken = set(task.hidden["gold"])
    if action.tool == "edit":
        return bool(broken & set(changed_paths(before, after)))
    if action.tool == "read":
        return is_new and action.arguments["path"] in broken
    return action.tool == "test" and is_new


# --- tools ----------------------------------------------------------------------------------------


def _ok(text: str, facts: dict[str, Any] | None = None) -> Observation:
    return Observation(OK, text, facts=facts or {})


def _error(text: str) -> Observation:
    return Observation(ERROR, text, retryable=False)


def _list(session: RepairSession, arguments: Mapping[str, Any]) -> Observation:
    return _ok("\n".join(session.files) or "no files")


def _read(session: RepairSession, arguments: Mapping[str, Any]) -> Observation:
    path, start = arguments["path"], arguments.get("start", 1)
    if path not in session.files:
        return _error(f"no file {path}")
    lines = lines_of(session.files[path])
    if lines and start > len(lines):
        return _error(f"{path} has {len(lines)} lines")
    shown = [f"{number} {line}" for number, line in enumerate(lines, 1)][start - 1 : start - 1 + READ_LINES]
    left = len(lines) - (start - 1) - len(shown)
    more = [f"{left} more from {start + len(shown)}"] if left > 0 else []
    return _ok("\n".join([*shown, *more]) or "empty", {"path": path, "sha256": text_sha256(session.files[path])})


def _search(session: RepairSession, arguments: Mapping[str, Any]) -> Observation:
    wanted = arguments["text"]
    found = [
        f"{path} {number} {line.strip()[:SHOWN_CHARACTERS]}"
        for path, text in session.files.items()
        for number, line in enumerate(lines_of(text), 1)
        if wanted in line
    ]
    more = [f"{len(found) - FOUND_LINES} more"] if len(found) > FOUND_LINES else []
    return _ok("\n".join([*found[:FOUND_LINES], *more]) or "nothing found", {"found": len(found)})


def _edit(session: RepairSession, arguments: Mapping[str, Any]) -> Observation:
    try:
        after = edited(session.files, arguments)
    except EditRefused as error:
        return _error(f"not edited: {error}")
    paths = changed_paths(session.files, after)
    facts = {
        "paths": paths,
        "before": {path: text_sha256(session.files[path]) if path in session.files else None for path in paths},
        "after": {path: text_sha256(after[path]) for path in paths},
    }
    return _ok(f"edited {' '.join(paths)}" if paths else "nothing changed", facts)


def _test(session: RepairSession, arguments: Mapping[str, Any]) -> Observation:
    found = session.test_visible(session.task, session.files)
    return _ok(found.text, {"passed": found.passed, "total": found.total})


_TOOLS: dict[str, Callable[[RepairSession, Mapping[str, Any]], Observation]] = {
    "list": _list,
    "read": _read,
    "search": _search,
    "edit": _edit,
    "test": _test,
}
