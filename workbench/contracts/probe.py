"""What a reasoning probe is asked for, and what it brings back: every sample, its texts and its verdicts.

A probe asks one checkpoint: does the think segment decide the action? It plays a fixed task set, then
changes the think segment at chosen decisions (delete, corrupt, paraphrase, and random tokens as control),
forces the changed text, and lets the policy go on under the noise of the untouched continuation. Each
number of the L6 metrics can be computed again from a ``ProbeRecord``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .jobs import CollectSpec, PolicyRef
from .records import Identities, MetricRecord

PROBE = "probe"  # purpose of its rollouts, phase of its metrics, kind of its document
CONDITION = "standard"  # no failure is injected into a probe
FACTUAL, DELETE, CORRUPT, PARAPHRASE, RANDOM = "factual", "delete", "corrupt", "paraphrase", "random"
INTERVENTIONS = (DELETE, CORRUPT, PARAPHRASE, RANDOM)  # FACTUAL is what they are compared with
MEASURED, UNAVAILABLE, FAILED = "measured", "unavailable", "failed"
READ, UNREADABLE, ABSENT = "read", "unreadable", "absent"  # states of a think segment, beside the last two above


@dataclass(frozen=True)
class ProbeSpec:
    """One probe of one checkpoint. ``collect``: the N factual rollouts of each task, as slots of its group.

    ``batch``: optimizer batches before this checkpoint. ``decisions``: most decisions of a task's first
    rollout at which the think segment is changed. ``rows``: rows of one pass through the sampler.
    """

    uid: str
    batch: int
    decisions: int
    rows: int
    settings: dict[str, Any]  # the plan's probe section
    collect: CollectSpec

    @property
    def runtime(self) -> str:
        """Runtime identity under which it is computed."""
        return self.collect.runtime

    @property
    def policy(self) -> PolicyRef:
        """The checkpoint's policy."""
        return self.collect.policy


@dataclass(frozen=True)
class ProbeResult:
    """Answer to ``ProbeSpec``: canonical ``ProbeRecord`` text. ``timing`` is never hashed."""

    record_json: str
    record_sha256: str
    metrics: tuple[MetricRecord, ...]
    timing: dict[str, float]


@dataclass(frozen=True)
class ProbeTurn:
    """One decision of a sample. ``generated_ids`` is the whole turn; its first ``forced`` ids were given."""

    decision: int
    generated_ids: tuple[int, ...]
    forced: int
    think_text: str | None
    action_text: str
    action: dict[str, Any] | None  # canonical action (``action_value``); None where unparseable
    parse_error: str | None
    observation: str | None


@dataclass(frozen=True)
class ProbeSample:
    """One generated trajectory, or the rest of one. ``answer``: final answer of a legal Finish, else None.

    ``success`` by the environment's definition; None where the sample is infrastructure-invalid.
    """

    state: str  # valid | infrastructure_invalid
    invalid_reason: str | None
    terminal: str | None
    turns: tuple[ProbeTurn, ...]
    answer: dict[str, Any] | None
    success: bool | None


@dataclass(frozen=True)
class ProbeRepeat:
    """One factual rollout of a task."""

    repeat: int
    seed: str
    sample: ProbeSample


@dataclass(frozen=True)
class ProbeStatement:
    """One fact that a think segment states. ``holds``: the environment's ground truth; None: not checkable."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class ProbeThought:
    """One think segment of a factual rollout, read by the environment.

    ``state``: read, unreadable (of no form that the environment knows), absent (no think segment),
    unavailable (this environment reads none) or failed (its code raised); ``reason`` says why.
    Labels are the environment's coarse names of what the segment intends and what was done.
    ``agrees``: the action is the one that the segment states; None where it states none.
    """

    repeat: int
    decision: int
    state: str
    reason: str | None
    think_label: str | None
    action_label: str | None
    agrees: bool | None
    statements: tuple[ProbeStatement, ...]


@dataclass(frozen=True)
class ProbeTrial:
    """One intervention at one decision. ``think_text`` and ``think_ids``: what stood in the segment's place.

    ``states_action``: the action that the text states, by the environment; None where it states none
    or cannot be read. ``sample`` is None unless ``state`` is measured; ``reason`` says why not.
    """

    intervention: str
    state: str  # measured | unavailable | failed
    reason: str | None
    think_text: str | None
    think_ids: tuple[int, ...]
    states_action: dict[str, Any] | None
    sample: ProbeSample | None


@dataclass(frozen=True)
class ProbedDecision:
    """A decision of a task's first rollout at which the think segment was changed.

    ``noise_token``: noise counter at which every trial's action starts, that of the untouched action.
    """

    decision: int
    noise_token: int
    trials: tuple[ProbeTrial, ...]  # FACTUAL first, then INTERVENTIONS in their order


@dataclass(frozen=True)
class ProbeTask:
    """Everything that was generated for one task."""

    task_uid: str
    task_sha256: str
    family: str
    repeats: tuple[ProbeRepeat, ...]
    thoughts: tuple[ProbeThought, ...]
    decisions: tuple[ProbedDecision, ...]


@dataclass(frozen=True)
class Unavailable:
    """A part of the probe that this environment or formatter does not allow, with the reason."""

    part: str
    reason: str


@dataclass(frozen=True)
class ProbeCost:
    """What the probe generated beside training and evaluation. Tokens as the sampler counted them."""

    factual: int  # trajectories
    regenerated: int  # trajectories
    policy_tokens: int
    ingested_tokens: int


@dataclass(frozen=True)
class ProbeRecord:
    """One probe of one checkpoint. ``run_uid``: the execution's uid where the parent was probed."""

    uid: str
    run_uid: str
    plan_sha256: str
    batch: int
    split: str
    settings: dict[str, Any]
    sampling: dict[str, Any]
    max_decisions: int
    identities: Identities
    tasks: tuple[ProbeTask, ...]
    unavailable: tuple[Unavailable, ...]
    cost: ProbeCost


def next_action(sample: ProbeSample) -> dict[str, Any] | None:
    """Canonical action of a sample's first decision; None where it was unparseable."""
    return sample.turns[0].action


def same_action(first: ProbeSample, second: ProbeSample) -> bool:
    """Whether two samples begin with one action. Unparseable ones are the same where their texts are."""
    left, right = next_action(first), next_action(second)
    if left is None and right is None:
        return first.turns[0].action_text == second.turns[0].action_text
    return left == right
