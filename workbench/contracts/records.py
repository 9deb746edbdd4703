"""Records that cross a boundary: engine -> worker -> database, and database -> verify and pages.

Hashed content: no time, host, process id, database id or path stands in any of them. ``None``
always means "not measured" or "does not apply", as each docstring says; it is never a zero.
Times, hosts and durations travel beside them in ``Timing``, which nothing hashes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

VALID, INFRASTRUCTURE_INVALID = "valid", "infrastructure_invalid"
FINISH, POLICY_ERROR, BUDGET_EXHAUSTED = "finish", "policy_error", "budget_exhausted"
TOOL, UNPARSEABLE = "tool", "unparseable"  # action kinds beside FINISH
OK, ERROR, TIMEOUT = "ok", "error", "timeout"  # Observation states
REALIZED, UNREACHED = "realized", "scheduled_but_unreached"
PREFLIGHT, TRAIN, EVALUATE = "preflight", "train", "evaluate"  # purposes of a collection
SIGNAL, ALL_RIGHT, ALL_WRONG, ALL_EQUAL = "signal", "zero_all_right", "zero_all_wrong", "zero_equal"


@dataclass(frozen=True)
class ToolCallRecord:
    """A parsed ToolAction. ``ordinal`` counts logical tool calls of the trajectory from 0.

    ``executed`` is False only for the one unmatched final action of a spent budget;
    ``backend_called`` is False where the failure schedule short-circuited the call.
    """

    ordinal: int
    tool: str
    arguments: dict[str, Any]
    executed: bool
    backend_called: bool
    is_repeat: bool  # same tool and arguments as an earlier executed call of this trajectory
    is_productive: bool | None  # brought something new that the task needs; None when not executed


@dataclass(frozen=True)
class ObservationRecord:
    """What the policy saw after a call. ``retryable`` is None unless ``status`` is a failure."""

    status: str  # ok | error | timeout
    retryable: bool | None
    injected: bool
    text: str
    facts: dict[str, Any]  # environment's own structured facts (document ids returned, for example)


@dataclass(frozen=True)
class TurnRecord:
    """One policy decision. ``observation`` is None after Finish, a policy error, or an unexecuted call."""

    decision: int
    parent_decision: int | None
    branch: str
    capture_sha256: str
    prompt_tokens: int
    generated_tokens: int
    policy_tokens: int
    action_kind: str  # tool | finish | unparseable
    parse_error: str | None
    think_text: str | None
    action_text: str
    tool_call: ToolCallRecord | None
    finish: dict[str, Any] | None  # answer and citations of a legal Finish
    observation: ObservationRecord | None
    policy_version: int
    state_before_sha256: str
    state_after_sha256: str


@dataclass(frozen=True)
class RewardComponent:
    """One stored part of a reward. ``value`` None with state ``not_measured`` is no zero."""

    name: str
    weight: float
    value: float | None
    points: float | None  # weight * value; None where value is None
    state: str  # measured | not_measured
    detail: dict[str, Any]


@dataclass(frozen=True)
class RewardRecord:
    """Reward breakdown; ``total`` follows from the components by ``rewards.reward_total``."""

    reward_id: str
    version: str
    gate: float
    components: tuple[RewardComponent, ...]
    total: float


@dataclass(frozen=True)
class InjectionRecord:
    """One entry of the failure schedule for this trajectory, by logical tool-call ordinal."""

    ordinal: int
    state: str  # realized | scheduled_but_unreached
    decision: int | None  # the decision that met it; None where unreached


@dataclass(frozen=True)
class InvariantVerdict:
    """One of the four invariants: 1 replay_ids, 2 one_version, 3 causal_order, 4 terminal_agreement."""

    name: str
    holds: bool
    checked: int
    failing_decision: int | None
    failing_token: int | None  # index in the trajectory's full token sequence
    detail: str


@dataclass(frozen=True)
class OutcomeFacts:
    """Outcome fields of a trajectory (spec: rollout and capture). ``None``: does not apply."""

    finished: bool
    parser_valid: bool
    premature_finish: bool | None  # None unless finished
    tool_depth: int  # executed tool calls
    repeat_calls: int
    productive_calls: int
    failures_seen: int
    exposed: bool  # at least one policy-visible failure
    recovered: bool | None  # a successful result after a failure; None without a failure
    fatal_start: int | None  # decision index of the first of three consecutive failures
    fatal_confirmed: int | None  # decision index of the third
    continued_after_fatal: bool | None  # None without Fatal
    unmatched_final_action: bool


@dataclass(frozen=True)
class TrajectoryRecord:
    """One slot. An infrastructure-invalid trajectory has no reward, no facts, and says why."""

    uid: str
    slot: int
    seed: str
    task_uid: str
    failure_profile: str
    status: str  # valid | infrastructure_invalid
    invalid_reason: str | None
    terminal: str | None  # finish | policy_error | budget_exhausted; None when invalid
    turns: tuple[TurnRecord, ...]
    injections: tuple[InjectionRecord, ...]
    facts: OutcomeFacts | None
    reward: RewardRecord | None
    success: bool | None
    success_definition: str
    invariants: tuple[InvariantVerdict, ...]
    initial_state_sha256: str
    final_state_sha256: str | None


@dataclass(frozen=True)
class Identities:
    """Everything that a number was made under. Two records that differ here are never averaged silently."""

    base_model: str
    adapter: str  # checkpoint (adapter) sha256
    tokenizer: str
    formatter: str
    environment: str
    harness: str
    runtime: str
    reward: str
    task_set: str
    policy_version: int


@dataclass(frozen=True)
class GroupRecord:
    """The G trajectories of one task under one policy version; also K evaluation repeats of one task.

    ``ordinal`` counts groups of a run and purpose from 0. ``condition`` and ``split`` say where an
    evaluation cell belongs; for training groups condition is ``train``.
    ``mean``, ``sigma`` (population, divide by G) and ``advantages_G`` are None for an ineligible
    group and for evaluation cells, which train nothing.
    """

    uid: str
    run_uid: str
    plan_sha256: str
    purpose: str  # preflight | train | evaluate
    condition: str  # train | standard | stress
    split: str
    ordinal: int
    task_uid: str
    task_sha256: str
    family: str
    failure_profile: str
    sampling: dict[str, Any]
    identities: Identities
    trajectories: tuple[TrajectoryRecord, ...]
    eligible: bool
    ineligible_reason: str | None
    signal: str | None  # signal | zero_all_right | zero_all_wrong | zero_equal; None when ineligible
    mean: float | None
    sigma: float | None
    advantage_kind: str | None
    advantages_G: tuple[float, ...] | None


@dataclass(frozen=True)
class CaptureRef:
    """Where a capture lies: ``offset`` and ``length`` of its trajectory's frame in the group file."""

    capture_sha256: str
    trajectory_uid: str
    decision: int
    offset: int
    length: int


@dataclass(frozen=True)
class MetricRecord:
    """One measured value. ``value`` None: the metric does not exist here (say, no failure seen).

    ``labels`` are part of the series identity; ``count`` is the denominator; ``subject_uid`` the
    group, trajectory or update behind the point.
    """

    definition: str
    phase: str  # preflight | train | standard | stress
    split: str
    labels: dict[str, str]
    value: float | None
    count: int | None
    policy_version: int
    update: int | None
    trajectories: int | None
    generated_tokens: int | None
    subject_uid: str | None


@dataclass(frozen=True)
class StepRecord:
    """One optimizer step. Shares are over the policy tokens that the step trained, ``trained_tokens``."""

    step: int  # optimizer steps of the run before this one
    epoch: int
    minibatch: int
    loss: float
    grad_norm: float
    update_norm: float
    relative_update_norm: float
    clip_low_share: float
    clip_high_share: float
    ratio_max_deviation: float  # max |rho - 1|; exactly 0 at the first step of a batch
    kl_k1: float
    kl_k3: float
    entropy: float
    trained_tokens: int
    masked_tokens: int  # policy tokens that the credit rule removed
    trajectories: int  # N, the denominator of the loss


@dataclass(frozen=True)
class EditCreditRecord:
    """Credit from one retained edit, added to the advantage of a trajectory (arms B, M, E).

    ``status``: applied, or why the term is 0 (format_error, no_eligible_block, no_original_utility, trial_incomplete,
    no_selected_token); ``difference`` None: not known, or not read (arm E); ``shrinkage`` None: none was computed.
    Masses are sums of the added coefficients over the policy tokens: signed, absolute, squared.
    """

    arm: str  # B | M | E
    status: str
    selected: int | None  # decision of the chosen block
    tokens: int
    selected_tokens: int
    difference: float | None
    shrinkage: float | None
    capped: bool
    signed_mass: float
    l1_mass: float
    squared_mass: float


@dataclass(frozen=True)
class TrajectoryCredit:
    """What the credit rule did to one trajectory of an update. ``edit`` None: the arm adds no credit from edits."""

    trajectory_uid: str
    group_uid: str
    advantage: float
    policy_tokens: int
    trained_tokens: int
    masked_tokens: int
    clamp_actionable: bool  # Fatal, kept prefix, negative advantage: the one-sided clamp would act
    fatal_start: int | None
    engine_drift_mean: float | None  # mean |sampler - recomputed| log-probability
    engine_drift_max: float | None
    edit: EditCreditRecord | None = None


@dataclass(frozen=True)
class SegmentEntropy:
    """Mean exact entropy (nats) of the trained tokens of one segment at one step."""

    step: int
    segment: str
    entropy: float
    tokens: int


@dataclass(frozen=True)
class UpdateMeasures:
    """What an update measured beside its loss. ``kl_*_reference``: of the policy that sampled the batch to
    ``reference_adapter``, over ``reference_tokens`` policy tokens of two trajectories; None
    where the specification names no reference.
    """

    reference_adapter: str | None
    reference_tokens: int
    kl_k1_reference: float | None
    kl_k3_reference: float | None
    segment_entropies: tuple[SegmentEntropy, ...]


@dataclass(frozen=True)
class TraceRef:
    """Frame of the update trace of one (step, trajectory) in the batch's trace file."""

    step: int
    trajectory_uid: str
    frame_sha256: str
    offset: int
    length: int


@dataclass(frozen=True)
class UpdateRecord:
    """One optimizer batch: the transaction's inputs and outputs. ``skipped`` says why nothing was trained.

    A skipped batch keeps its parent adapter: output equals input and ``steps`` is empty.
    """

    uid: str
    run_uid: str
    plan_sha256: str
    batch: int
    policy_version: int  # before the update
    adapter_before: str
    adapter_after: str
    optimizer_before: str | None  # None: fresh optimizer
    optimizer_after: str | None
    group_uids: tuple[str, ...]  # every group of the batch, in order
    trained_group_uids: tuple[str, ...]
    capture_digest: str  # digest of the ordered capture hashes that were trained on
    old_logprobs_sha256: str | None  # blob with float32 values, trained trajectories in order
    objective: dict[str, Any]
    optimizer: dict[str, Any]
    credits: tuple[TrajectoryCredit, ...]
    steps: tuple[StepRecord, ...]
    traces: tuple[TraceRef, ...]
    trace_blob_sha256: str | None
    clipping_inert: bool  # one inner step per batch: the ratio is 1 throughout
    skipped: str | None  # no_eligible_group | no_signal | no_credit | non_finite
    note: str | None
    measures: UpdateMeasures | None = None  # None: skipped, or written before these were measured
    edit_only_group_uids: tuple[str, ...] = ()  # trained groups without variance: credit from edits alone
    trials: dict[str, str] = field(default_factory=dict)  # group uid -> hash of the trials record that was read
