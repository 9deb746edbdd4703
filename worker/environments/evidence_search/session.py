"""One running episode: pure state over an immutable corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.errors import EnvironmentFault
from worker.environments.base import FinishAction, Observation, Task, ToolAction

from .world import World, call_result


class EvidenceSession:
    """State = executed calls, documents read and listed so far, and the Finish if there was one.

    Injected failures never reach a session: the runtime short-circuits them before the backend.
    """

    def __init__(self, world: World, task: Task):
        self.world, self.task = world, task
        self.calls: list[dict[str, Any]] = []
        self.read: list[str] = []
        self.listed: list[str] = []
        self.finished: dict[str, Any] | None = None

    def step(self, action: ToolAction) -> Observation:
        """Execute a parsed call. Raises ``EnvironmentFault`` after a Finish or for a foreign tool."""
        if self.finished is not None:
            raise EnvironmentFault("step: got a call after Finish, expected none")
        if action.tool not in self.task.tools:
            raise EnvironmentFault(f"tool: got {action.tool!r}, expected one of {list(self.task.tools)}")
        status, text, read, listed = call_result(self.world, action.tool, action.arguments)
        needed = {item["id"] for item in self.task.hidden["documents"]}
        new_read = [item.id for item in read if item.id not in self.read]
        new_listed = [item.id for item in listed if item.id not in self.listed and item.id not in self.read]
        self.calls.append({"tool": action.tool, "arguments": dict(action.arguments)})
        self.read += new_read
        self.listed += new_listed
        return Observation(
            status=status,
            text=text,
            retryable=None if status == "ok" else False,
            is_productive=bool(needed & set(new_read + new_listed)),
            facts={"documents": [item.fact() for item in read], "listed": [item.fact() for item in listed]},
        )

    def finish(self, action: FinishAction) -> None:
        """Record the Finish; the episode takes no further call."""
        if self.finished is not None:
            raise EnvironmentFault("finish: got a second Finish, expected one")
        self.finished = {"answer": action.answer, "citations": list(action.citations)}

    def snapshot(self) -> bytes:
        """Canonical JSON bytes of the state."""
        return canonical_bytes(
            {
                "task": self.task.identity(),
                "calls": self.calls,
                "read": self.read,
                "listed": self.listed,
                "finished": self.finished,
            }
        )

    def state_hash(self) -> str:
        """SHA-256 of ``snapshot``."""
        return sha256_hex(self.snapshot())

    def fork(self) -> EvidenceSession:
        """An independent copy of the state."""
        return restore_session(self.world, self.task, self.snapshot())


def restore_session(world: World, task: Task, snapshot: bytes) -> EvidenceSession:
    """A session with exactly the state of ``snapshot``; refuses the snapshot of another task."""
    state = parse_canonical(snapshot)
    if not isinstance(state, dict) or set(state) != {"task", "calls", "read", "listed", "finished"}:
        raise EnvironmentFault("snapshot: got other fields, expected task, calls, read, listed, finished")
    if state["task"] != task.identity():
        raise EnvironmentFault(f"snapshot.task: got {state['task']}, expected {task.identity()}")
    session = EvidenceSession(world, task)
    session.calls, session.read, session.listed = state["calls"], state["read"], state["listed"]
    session.finished = state["finished"]
    return session


def replay_session(world: World, task: Task, actions: Sequence[ToolAction]) -> EvidenceSession:
    """A session after ``actions``."""
    session = EvidenceSession(world, task)
    for action in actions:
        session.step(action)
    return session
