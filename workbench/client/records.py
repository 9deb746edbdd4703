"""What the API says, as frozen dataclasses. None means "not measured" or "does not apply", never 0.

``workbench.client.reading`` builds them out of JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Study:
    """A line of research."""

    uid: str
    slug: str
    title_en: str
    title_zh: str
    summary_en: str
    summary_zh: str
    visibility: str
    created_at: datetime


@dataclass(frozen=True)
class Progress:
    """Jobs done of those expected, and what runs now."""

    state: str
    phase: str
    done: int
    expected: int
    now: list[Any]


@dataclass(frozen=True)
class Actor:
    """Who did it."""

    uid: str
    kind: str
    name: str


@dataclass(frozen=True)
class Receipt:
    """One link of a receipt chain."""

    stream: str
    seq: int
    sha256: str
    prev: str
    kind: str
    subject: str | None
    actor: Actor
    at: datetime
    body: dict[str, Any]


@dataclass(frozen=True)
class Stream:
    """Head of a receipt chain."""

    stream: str
    seq: int
    sha256: str


@dataclass(frozen=True)
class Group:
    """Trajectories of one task under one policy version; ``sigma`` is the population value."""

    uid: str
    run: str | None
    purpose: str
    condition: str
    split: str
    ordinal: int
    task: str
    task_key: str
    failure_profile: str
    policy_version: int
    eligible: bool
    ineligible_reason: str | None
    signal: str | None
    mean: float | None
    sigma: float | None
    identities: dict[str, Any]
    record_sha256: str
    capture_blob_sha256: str
    capture_blob_bytes: int


@dataclass(frozen=True)
class RewardComponent:
    """One stored part of a reward."""

    name: str
    weight: float
    value: float | None
    points: float | None
    state: str
    detail: dict[str, Any]


@dataclass(frozen=True)
class Observation:
    """What the policy saw after its call."""

    status: str
    retryable: bool | None
    injected: bool
    text: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call; ``observation`` None: the last action of a spent budget, never executed."""

    tool: str
    arguments: dict[str, Any]
    executed: bool
    backend_called: bool
    is_repeat: bool | None
    is_productive: bool | None
    observation: Observation | None


@dataclass(frozen=True)
class Turn:
    """One decision."""

    decision: int
    branch: str
    capture_sha256: str | None
    prompt_tokens: int
    generated_tokens: int
    policy_tokens: int
    action_kind: str
    parse_error: str | None
    think_text: str | None
    action_text: str
    finish: dict[str, Any] | None
    state_before: str
    state_after: str
    policy_version: int
    call: Call | None


@dataclass(frozen=True)
class Trajectory:
    """One slot of a group; outcome members are None where it is infrastructure-invalid."""

    uid: str
    group: str
    run: str | None
    task_key: str
    purpose: str
    condition: str
    slot: int
    seed: str
    status: str
    invalid_reason: str | None
    terminal: str | None
    success: bool | None
    reward: float | None
    advantage: float | None
    finished: bool | None
    exposed: bool | None
    recovered: bool | None
    fatal_start: int | None
    fatal_confirmed: int | None
    tool_depth: int | None
    repeat_calls: int | None
    generated_tokens: int
    policy_tokens: int
    prompt_tokens: int
    grade: str


@dataclass(frozen=True)
class TrajectoryDetail(Trajectory):
    """A trajectory with everything that was stored of it but its tokens."""

    success_definition: str
    initial_state_sha256: str
    final_state_sha256: str | None
    injections: list[Any]
    invariants: list[Any]
    reward_components: list[RewardComponent]
    turns: list[Turn]


@dataclass(frozen=True)
class Capture:
    """Where a captured model call lies, and how many tokens it holds."""

    capture_sha256: str
    trajectory: str
    group: str
    decision: int
    branch: str
    prompt_tokens: int
    generated_tokens: int
    policy_tokens: int
    policy_version: int
    blob_sha256: str
    offset: int
    length: int


@dataclass(frozen=True)
class Evaluation:
    """One evaluation item: (checkpoint, condition, split, task, repeat). ``run`` None: the parent."""

    uid: str
    plan: str
    run: str | None
    checkpoint_sha256: str
    condition: str
    split: str
    task_key: str
    repeat: int
    trajectory: str
    status: str
    success: bool | None
    reward: float | None


@dataclass(frozen=True)
class Rate:
    """n of N; ``of`` 0: no case, which is no 0 %."""

    n: int
    of: int


@dataclass(frozen=True)
class Cell:
    """Evaluation of one checkpoint at one condition and split. ``run``, ``arm``, ``seed`` None: the parent."""

    checkpoint_sha256: str
    run: str | None
    arm: str | None
    seed: str | None
    condition: str
    split: str
    planned: int
    stored: int
    reward: float | None
    tool_depth: float | None
    rates: dict[str, Rate]


@dataclass(frozen=True)
class SeriesDefinition:
    """A series that a run may have."""

    key: str
    title: str
    unit: str
    axis: str
    layer: str


@dataclass(frozen=True)
class Series(SeriesDefinition):
    """Every stored point of a series; ``y`` None: the metric does not exist there."""

    x: list[float]
    y: list[float | None]


@dataclass(frozen=True)
class TaskSet:
    """The tasks of one environment version."""

    uid: str
    environment: str
    version: str
    sha256: str
    count: int


@dataclass(frozen=True)
class Task:
    """One problem. ``hidden`` None: not asked for by itself, or not shown to you."""

    uid: str
    key: str
    split: str
    family: str
    prompt: str
    task_sha256: str
    initial_state: dict[str, Any]
    tools: list[str]
    hidden: dict[str, Any] | None = None


@dataclass(frozen=True)
class Checked:
    """What keeps a document from being frozen, as far as a document alone can tell."""

    valid: bool
    problems: list[Fault]


@dataclass(frozen=True)
class Fault:
    """One fault of a document."""

    field: str
    got: str
    expected: str


@dataclass(frozen=True)
class Preview:
    """What a freeze would store; ``bindings`` with the code's identities stand in ``body``."""

    sha256: str
    bytes: int
    body: dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """Members of two plan documents that are not equal, as [path, here, there]."""

    against: str
    equal: bool
    differences: list[list[Any]]


@dataclass(frozen=True)
class Me:
    """The caller. ``studies``: what may be done in each visible one.

    ``account_site_admin``: what the account is; ``site_admin``: whether these credentials may act as one.
    """

    user: str | None
    site_admin: bool
    studies: dict[str, list[str]]
    account_site_admin: bool = False
