"""Hand-made episodes of ``evidence_search``: real sessions, recorded as the runtime records them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.contracts.records import (
    BUDGET_EXHAUSTED,
    FINISH,
    POLICY_ERROR,
    TOOL,
    UNPARSEABLE,
    ObservationRecord,
    ToolCallRecord,
    TurnRecord,
)
from worker.environments.base import FinishAction, Task, ToolAction
from worker.environments.evidence_search.environment import EvidenceSearch

ENVIRONMENT = EvidenceSearch({})
TIMED_OUT = "timed out"  # marks a call that the failure schedule answers
UNEXECUTED = "unexecuted"  # marks the one unmatched final call of a spent budget
ILLEGAL = "illegal"


def task_of(family: str, split: str = "train") -> Task:
    """The first task of a family."""
    return next(task for task in ENVIRONMENT.tasks() if task.family == family and task.split == split)


def needed(task: Task) -> list[dict[str, str]]:
    """The hidden references, in the order in which they are asked for."""
    documents: list[dict[str, str]] = task.hidden["documents"]
    return documents


def search(document: dict[str, str], source: str | None = None) -> ToolAction:
    """The search for a document, in its own source family or in another."""
    query = f"{document['entity']} {document['attribute']}"
    return ToolAction("search", {"source": source or document["family"], "query": query})


def read(document: dict[str, str]) -> ToolAction:
    """The open call for a document."""
    return ToolAction("open", {"id": document["id"]})


def finish(answer: str, *cited: str) -> FinishAction:
    """A Finish."""
    return FinishAction(answer, cited)


Step = FinishAction | ToolAction | tuple[ToolAction, str] | str


def play(task: Task, steps: Sequence[Step]) -> tuple[list[TurnRecord], str]:
    """Turns and terminal reason of an episode. A pair (action, mark) is a timed-out or unexecuted call."""
    session, turns, ordinal, terminal = ENVIRONMENT.reset(task), [], 0, BUDGET_EXHAUSTED
    for decision, step in enumerate(steps):
        action, mark = step if isinstance(step, tuple) else (step, None)
        call: ToolCallRecord | None = None
        seen: ObservationRecord | None = None
        end: dict[str, Any] | None = None
        before, kind = session.state_hash(), TOOL
        if isinstance(action, str):
            kind, terminal = UNPARSEABLE, POLICY_ERROR
        elif isinstance(action, FinishAction):
            kind, terminal = FINISH, FINISH
            session.finish(action)
            end = {"answer": action.answer, "citations": list(action.citations)}
        else:
            executed, injected = mark != UNEXECUTED, mark == TIMED_OUT
            productive = None
            if executed:
                result = ENVIRONMENT.injected_failure(action, 3) if injected else session.step(action)
                seen = ObservationRecord(result.status, result.retryable, injected, result.text, dict(result.facts))
                productive = result.is_productive
            call = ToolCallRecord(
                ordinal, action.tool, action.arguments, executed, executed and not injected, False, productive
            )
            ordinal += 1
        error = "illegal" if kind == UNPARSEABLE else None
        turns.append(
            TurnRecord(
                decision, decision - 1 if decision else None, "main", "0" * 64, 10, 5, 5, kind, error, "need", "{}",
                call, end, seen, 0, before, session.state_hash(),
            )
        )  # fmt: skip
    return turns, terminal
