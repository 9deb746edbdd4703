"""The environment interface: reset, step, snapshot, fork, replay, state hash, tasks.

An environment also supplies the demonstrations and the text that an embedded policy is warm-started
on, its reward and its success definition. Pure Python and deterministic: no clock, no global random
state, no network. A backend that breaks raises ``EnvironmentFault``; a policy's mistake never does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, cast, runtime_checkable

from workbench.contracts.canonical import derive_uid, digest
from workbench.contracts.records import RewardRecord, TurnRecord
from worker.verifiers.trial import TrialReport


@dataclass(frozen=True)
class ToolSpec:
    """A tool of the action grammar. ``parameters``: JSON Schema object (used for strict parsing and chat templates)."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One problem. Identity = hash of prompt, initial state, hidden reference and allowed actions."""

    key: str  # natural key within its task set
    split: str  # train | validation | test | out_of_distribution | anchor
    family: str
    prompt: str
    initial_state: dict[str, Any]
    hidden: dict[str, Any]  # reference; never part of any prompt or Observation by itself
    tools: tuple[str, ...]

    def identity(self) -> str:
        """``task_sha256``: what makes this task this task (not its key, not its split)."""
        return self._identity

    @cached_property
    def _identity(self) -> str:
        """Computed once: every state hash of a session holds it."""
        return digest(
            {
                "prompt": self.prompt,
                "initial_state": self.initial_state,
                "hidden": self.hidden,
                "tools": list(self.tools),
            }
        )

    def uid(self, task_set: str) -> str:
        """Uid under a task set (its environment id and version)."""
        return str(derive_uid(None, f"task:{task_set}:{self.identity()}"))


@dataclass(frozen=True)
class ToolAction:
    """A parsed call: legal tool, arguments that satisfy its schema."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class FinishAction:
    """The final answer with what it cites."""

    answer: str
    citations: tuple[str, ...]


@dataclass(frozen=True)
class Observation:
    """Result of an executed call, as the policy sees it. ``status``: ok | error | timeout."""

    status: str
    text: str
    retryable: bool | None = None  # None where status is ok
    is_productive: bool = False
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DemonstrationTurn:
    """One scripted decision: what the policy writes (think and action text), then the Observation text."""

    think: str
    action: str
    observation: str | None


@dataclass(frozen=True)
class Demonstration:
    """One scripted episode for the warm start. ``coverage`` names the behaviours that occur in it.

    ``states``: what ``state_label`` says before each of its decisions; empty where a script does not know it,
    and then no share of visited states outside the demonstrations is measured.
    """

    prompt: str
    turns: tuple[DemonstrationTurn, ...]
    coverage: tuple[str, ...]
    states: tuple[str, ...] = ()


@runtime_checkable
class Session(Protocol):
    """One running episode. Pure state: equal action sequences give equal state hashes."""

    def step(self, action: ToolAction) -> Observation: ...

    def finish(self, action: FinishAction) -> None: ...

    def state_hash(self) -> str: ...

    def snapshot(self) -> bytes:
        """Canonical JSON bytes of the state."""
        ...

    def fork(self) -> Session: ...


class Environment(Protocol):
    """One class, registered under an id; see ``worker.environments.registry``."""

    id: str
    version: str

    def __init__(self, config: dict[str, Any]) -> None: ...

    def tasks(self) -> Sequence[Task]: ...

    def instructions(self) -> str:
        """System text shared by every task and every arm (recovery instruction included)."""
        ...

    def tools(self) -> Sequence[ToolSpec]: ...

    def reset(self, task: Task) -> Session: ...

    def restore(self, task: Task, snapshot: bytes) -> Session: ...

    def replay(self, task: Task, actions: Sequence[ToolAction]) -> Session: ...

    def injected_failure(self, action: ToolAction, calls_left: int) -> Observation:
        """The policy-visible retryable timeout of the failure schedule; the backend is not called."""
        ...

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        """Reward of a finished episode from its recorded turns alone, so that anyone can recompute it."""
        ...

    def success(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> bool: ...

    def success_definition(self) -> str:
        """Definition id, version included (``evidence_search.success/1``)."""
        ...

    def is_premature(self, task: Task, turns: Sequence[TurnRecord]) -> bool:
        """Finished with insufficient evidence: a cited or needed document was not retrieved."""
        ...

    def demonstrations(self, seed: int) -> Iterator[Demonstration]: ...

    def state_label(self, session: Session) -> str:
        """Coarse name of a state, for coverage of demonstrations and exploration metrics."""
        ...


@dataclass(frozen=True)
class Statement:
    """One fact that a think segment states. ``holds`` by the ground truth; None where it cannot be checked."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Thought:
    """A think segment as the environment reads it. ``label``: coarse kind of what it intends.

    ``action``: the action that it states, None where it states none.
    """

    label: str
    action: ToolAction | FinishAction | None
    statements: tuple[Statement, ...]


class Thoughts(Protocol):
    """Optional part of an environment: what a think segment says. Without it the probes that need it are unavailable.

    ``session`` is the episode before the decision; none of these changes it. ``seed``: decimal string.
    """

    def read_thought(self, task: Task, session: Session, text: str) -> Thought | None:
        """What the segment says; None where it is of no form that the environment knows."""
        ...

    def paraphrase_thought(self, task: Task, session: Session, text: str) -> str | None:
        """Other words for the same; None where there are none."""
        ...

    def corrupt_thought(self, task: Task, session: Session, text: str, seed: str) -> str | None:
        """A segment of the same form that states something else, so that another action follows from it."""
        ...

    def action_label(self, action: ToolAction | FinishAction) -> str:
        """Coarse kind of an action, in the same names as ``Thought.label``."""
        ...


class Artefacts(Protocol):
    """Optional part of an environment: an episode leaves a tree of files, which hidden tests judge.

    Without it no edit can be removed and tested again. A tree is {path: sha256 of the content}.
    """

    verifier: str  # id with version

    def trees(self, task: Task, turns: Sequence[TurnRecord]) -> tuple[list[dict[str, str]], dict[str, bytes]]:
        """Trees before each decision and the final one (one more than turns), and every content by its hash.

        Rebuilt by applying the recorded edits; no test runs. Raises ``EnvironmentFault`` where a recorded state
        differs.
        """
        ...

    def is_test_path(self, path: str) -> bool:
        """Whether a path holds tests: a block of nothing else is no repair."""
        ...

    def trial(self, task: Task, files: Mapping[str, bytes]) -> TrialReport:
        """The hidden tests on a tree in a fresh sandbox, never a verdict of before."""
        ...

    def lists(self, task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Ids of the fail-to-pass and of the pass-to-pass tests."""
        ...


ARTEFACT_MEMBERS = ("verifier", "trees", "is_test_path", "trial", "lists")


def artefacts_of(environment: object) -> Artefacts | None:
    """The environment as one that leaves artefacts; None where it lacks a member of that part."""
    return cast(Artefacts, environment) if all(hasattr(environment, name) for name in ARTEFACT_MEMBERS) else None


THOUGHT_MEMBERS = ("read_thought", "paraphrase_thought", "corrupt_thought", "action_label")


class Reward(Protocol):
    """Reward rules from outside an environment, registered under a name or named by a dotted path in a plan.

    One class without constructor arguments. ``id`` and ``version`` stand in every record that it makes.
    """

    id: str
    version: str

    def score(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        """Reward of a finished episode from its recorded turns alone, with every component stored.

        ``terminal``: finish | policy_error | budget_exhausted. ``total``: ``contracts.rewards.reward_total``.
        """
        ...
