"""A formatter that forces think segments and an environment that reads them, over the tiny random model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.engine.support import CALLS, TinyEnvironment, TinyFormatter
from workbench.contracts import layout
from workbench.contracts.capture import SEGMENT_ACTION, SEGMENT_ANSWER, SEGMENT_THINK
from workbench.contracts.jobs import CollectSpec
from workbench.contracts.probe import ProbeSpec
from worker.engine.render import ParsedTurn
from worker.environments.base import FinishAction, Session, Statement, Task, Thought, ToolAction, ToolSpec

MARK, MARKS = ":", ":>!|"  # the first of ``MARKS`` ends a think segment; a forced one ends with ``MARK``


class ThinkingFormatter(TinyFormatter):
    """``think : action``; the last letter acts, so that a random model's turns are legal. Without a mark: no think."""

    name = "thinking"

    def force_think(self, think_ids: Sequence[int]) -> list[int]:
        return [*think_ids, self.table[MARK]]

    def read(self, generated_ids: Sequence[int], tools: Sequence[ToolSpec]) -> ParsedTurn:
        letters = [self.letters.get(token, "~") for token in generated_ids]
        cut = next((index + 1 for index, letter in enumerate(letters) if letter in MARKS), 0)
        think, body = "".join(letters[: cut - 1]) if cut else "", "".join(letters[cut:])
        action: ToolAction | FinishAction | None = None
        last = body.removesuffix(".")[-1:]
        if last in CALLS and last:
            action = ToolAction("look", {"key": last})
        elif last:
            action = FinishAction(last, ())
        rest = SEGMENT_ANSWER if isinstance(action, FinishAction) else SEGMENT_ACTION
        segments = (SEGMENT_THINK,) * cut + (rest,) * (len(letters) - cut)
        error = None if action is not None else "no action"
        return ParsedTurn(think or None, body, action, error, segments, (1,) * len(letters))


class ThinkingEnvironment(TinyEnvironment):
    """Reads a think segment by its first letter. ``config.thoughts``: what breaks when it is asked."""

    id = "tests.engine.probe_world:ThinkingEnvironment"

    def read_thought(self, task: Task, session: Session, text: str) -> Thought | None:
        if self.config.get("thoughts") == "read":
            raise ZeroDivisionError("a bug in reading")
        if text[0] not in CALLS:
            return None
        facts = (Statement("it is asked for", text[0] in task.prompt), Statement("unknown", None))
        return Thought("call", ToolAction("look", {"key": text[0]}), facts)

    def paraphrase_thought(self, task: Task, session: Session, text: str) -> str | None:
        return f"{text}z" if text[0] in CALLS else None

    def corrupt_thought(self, task: Task, session: Session, text: str, seed: str) -> str | None:
        if self.config.get("thoughts") == "same":
            return text
        session.step(ToolAction("look", {"key": "a"}))  # a copy: the episode itself must not see it
        return f"{CALLS[(CALLS.index(text[0]) + 1) % len(CALLS)]}{text[1:]}" if text[0] in CALLS else None

    def action_label(self, action: ToolAction | FinishAction) -> str:
        return "finish" if isinstance(action, FinishAction) else "call"


def probe_spec(collect: CollectSpec, *, repeats: int = 3, tasks: int = 4, decisions: int = 2, rows: int = 8
               ) -> ProbeSpec:  # fmt: skip
    """A probe of the world's first tasks, made as the worker makes it."""
    uid = layout.probe_uid(collect.run_uid, 2)
    uids = list(dict.fromkeys(group.task_uid for group in collect.groups))[:tasks]
    settings: dict[str, Any] = {"split": "train", "tasks": tasks, "repeats": repeats}
    body = {"plan": {"probe": settings}, "bindings": {"task_set": {"splits": {"train": [{"uid": u} for u in uids]}}}}
    groups = layout.probe_groups(body, collect.plan_sha256, uid)
    chosen = replace(collect, purpose="probe", condition="standard", advantage=None, groups=groups)
    return ProbeSpec(uid, 2, decisions, rows, settings, chosen)
