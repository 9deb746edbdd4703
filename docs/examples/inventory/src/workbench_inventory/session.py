"""One episode: the calls made so far, and the Finish. The warehouse itself never changes."""

from __future__ import annotations

from typing import Any

from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.errors import EnvironmentFault
from worker.environments.base import FinishAction, Observation, Task, ToolAction

from .world import Warehouse


class StockSession:
    """State = executed calls and the Finish; everything else follows from them."""

    def __init__(self, warehouse: Warehouse, task: Task):
        self.warehouse, self.task = warehouse, task
        self.calls: list[dict[str, Any]] = []
        self.finished: dict[str, Any] | None = None

    def step(self, action: ToolAction) -> Observation:
        """Execute a call. Raises ``EnvironmentFault`` after a Finish: the backend takes nothing any more."""
        if self.finished is not None:
            raise EnvironmentFault("step: got a call after Finish, expected none")
        call = {"tool": action.tool, "arguments": dict(action.arguments)}
        status, text = getattr(self.warehouse, action.tool)(**action.arguments)
        needed = action.arguments["item"] in {need["item"] for need in self.task.hidden["orders"]}
        is_productive = status == "ok" and needed and call not in self.calls
        self.calls.append(call)
        return Observation(status, text, None if status == "ok" else False, is_productive)

    def finish(self, action: FinishAction) -> None:
        """Record the Finish."""
        if self.finished is not None:
            raise EnvironmentFault("finish: got a second Finish, expected one")
        self.finished = {"answer": action.answer, "citations": list(action.citations)}

    def snapshot(self) -> bytes:
        """Canonical JSON of the state, bound to its task."""
        return canonical_bytes({"task": self.task.identity(), "calls": self.calls, "finished": self.finished})

    def state_hash(self) -> str:
        """SHA-256 of the snapshot."""
        return sha256_hex(self.snapshot())

    def fork(self) -> StockSession:
        """An independent copy."""
        return restore(self.warehouse, self.task, self.snapshot())


def restore(warehouse: Warehouse, task: Task, snapshot: bytes) -> StockSession:
    """The session whose state is ``snapshot``; refuses the snapshot of another task."""
    state = parse_canonical(snapshot)
    if state["task"] != task.identity():
        raise EnvironmentFault(f"snapshot.task: got {state['task']}, expected {task.identity()}")
    session = StockSession(warehouse, task)
    session.calls, session.finished = state["calls"], state["finished"]
    return session
