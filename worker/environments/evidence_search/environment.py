"""The environment class: ties corpus, tasks, sessions, reward and demonstrations together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from workbench.contracts.records import TIMEOUT, RewardRecord, TurnRecord
from worker.environments.base import (
    Demonstration,
    FinishAction,
    Observation,
    Session,
    Task,
    Thought,
    ToolAction,
    ToolSpec,
)

from . import demonstrate, reward, thoughts
from .lexicon import FAMILIES
from .session import EvidenceSession, replay_session, restore_session
from .tasks import build_tasks, split_entities
from .world import World

RECOVERY_INSTRUCTION = (
    "If the latest observation is retryable and budget remains, do not finish for that alone; "
    "retry or change the query or source."
)

TOOL_SPECS = (
    ToolSpec(
        "search",
        "Two documents of a source that match the query best. A notice is shown by its heading only.",
        {
            "type": "object",
            "properties": {
                "source": {"type": "string", "enum": list(FAMILIES)},
                "query": {"type": "string", "minLength": 1, "maxLength": 80},
            },
            "required": ["source", "query"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(
        "open",
        "Read one document by its id.",
        {
            "type": "object",
            "properties": {"id": {"type": "string", "pattern": "^[0-9]{3}$"}},
            "required": ["id"],
            "additionalProperties": False,
        },
    ),
)

DEFAULTS: dict[str, int] = {"world_seed": 11, "max_decisions": 7}


class EvidenceSearch:
    """Find facts about made-up medicines in three source families, and cite the documents.

    ``config``: ``world_seed`` (which corpus) and ``max_decisions`` (what the demonstrations count
    down from; a plan's own budget is the runtime's). Raises ``ValueError`` for anything else.
    """

    id = "evidence_search"
    version = "1.0.0"

    def __init__(self, config: dict[str, Any]) -> None:
        unknown = sorted(set(config) - set(DEFAULTS))
        if unknown:
            raise ValueError(f"config: got {unknown}, expected only {sorted(DEFAULTS)}")
        merged = {**DEFAULTS, **config}
        for name, value in merged.items():
            if type(value) is not int or value < 1:
                raise ValueError(f"config.{name}: got {value!r}, expected a positive integer")
        self.config = merged
        entities = [name for names in split_entities(merged["world_seed"]).values() for name in names]
        self.world = World.build(merged["world_seed"], entities)
        self._tasks = build_tasks(self.world, merged["world_seed"])

    def tasks(self) -> Sequence[Task]:
        """All tasks, split by split; see ``tasks`` for what varies between splits."""
        return self._tasks

    def instructions(self) -> str:
        """System text shared by every task and every arm."""
        return f"Cite retrieved ids. {RECOVERY_INSTRUCTION}"

    def tools(self) -> Sequence[ToolSpec]:
        """The two tools: ``search`` and ``open``."""
        return TOOL_SPECS

    def reset(self, task: Task) -> Session:
        """A fresh episode. Refuses a task of another corpus."""
        self._check(task)
        return EvidenceSession(self.world, task)

    def restore(self, task: Task, snapshot: bytes) -> Session:
        """The episode whose state is ``snapshot``."""
        self._check(task)
        return restore_session(self.world, task, snapshot)

    def replay(self, task: Task, actions: Sequence[ToolAction]) -> Session:
        """The episode after ``actions``."""
        self._check(task)
        return replay_session(self.world, task, actions)

    def _check(self, task: Task) -> None:
        expected = self.world.sha256
        got = task.initial_state.get("corpus_sha256")
        if got != expected:
            raise ValueError(f"task.initial_state.corpus_sha256: got {got}, expected {expected}")

    def injected_failure(self, action: ToolAction, calls_left: int) -> Observation:
        """The retryable time-out of the failure schedule; equal for every tool, so it leaks nothing."""
        return Observation(TIMEOUT, demonstrate.timeout_text(calls_left), retryable=True)

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        """Reward v2.1; see ``reward.compute_reward``."""
        return reward.compute_reward(task, turns, terminal)

    def success(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> bool:
        """See ``reward.is_success``."""
        return reward.is_success(task, turns, terminal)

    def success_definition(self) -> str:
        """Definition id of ``success``."""
        return reward.SUCCESS_DEFINITION

    def is_premature(self, task: Task, turns: Sequence[TurnRecord]) -> bool:
        """See ``reward.is_premature``."""
        return reward.is_premature(task, turns)

    def demonstrations(self, seed: int) -> Iterator[Demonstration]:
        """Scripted noisy episodes in fresh random worlds, endless."""
        return demonstrate.demonstrations(seed, self.config["max_decisions"])

    def state_label(self, session: Session) -> str:
        """Needed documents retrieved so far and calls made: ``read 1/2 after 3``."""
        assert isinstance(session, EvidenceSession)
        needed = {item["id"] for item in session.task.hidden["documents"]}
        return demonstrate.state_name(len(needed & set(session.read)), len(needed), len(session.calls))

    def read_thought(self, task: Task, session: Session, text: str) -> Thought | None:
        """See ``thoughts.read``."""
        assert isinstance(session, EvidenceSession)
        return thoughts.read(session, text)

    def paraphrase_thought(self, task: Task, session: Session, text: str) -> str | None:
        """See ``thoughts.paraphrase``."""
        return thoughts.paraphrase(text)

    def corrupt_thought(self, task: Task, session: Session, text: str, seed: str) -> str | None:
        """See ``thoughts.corrupt``."""
        assert isinstance(session, EvidenceSession)
        return thoughts.corrupt(session, text, seed)

    def action_label(self, action: ToolAction | FinishAction) -> str:
        """See ``thoughts.action_label``."""
        return thoughts.action_label(action)
