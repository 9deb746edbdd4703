"""Job specifications that the worker hands to the engine, and what comes back.

Everything that a job needs stands in its specification or in the content-addressed store, so the
engine opens no database. Producer: ``worker.handoff``. Consumer: ``worker.runner`` and the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .records import CaptureRef, MetricRecord


@dataclass(frozen=True)
class PolicyRef:
    """Which policy: a model profile and the adapter's bytes in the store.

    ``model`` is a profile name (``embedded-evidence-search``) or a local/hub model id;
    ``adapter_sha256`` None means the parent itself with a freshly initialised adapter.
    ``adaptation``: {"kind": "lora", "rank", "alpha", "targets", "seed"} or {"kind": "full"}.
    ``profile``: code of an own model profile as the plan binds it (code_sha256, distribution, version,
    files); empty for every other model.
    """

    model: str
    base_model_sha256: str
    tokenizer_sha256: str
    adapter_sha256: str | None
    policy_version: int
    dtype: str  # float32 | bfloat16 | nf4
    adaptation: dict[str, Any]
    formatter: str  # compact | chat
    profile: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SlotSpec:
    """One trajectory to collect."""

    trajectory_uid: str
    slot: int
    seed: str


@dataclass(frozen=True)
class GroupSpec:
    """One group (or one evaluation cell) to collect. ``injected_ordinals``: from the failure schedule."""

    group_uid: str
    ordinal: int
    task_uid: str
    failure_profile: str
    injected_ordinals: tuple[int, ...]
    slots: tuple[SlotSpec, ...]


@dataclass(frozen=True)
class EnvironmentRef:
    """Environment with its task set: ``task_set_sha256`` names a blob of canonical JSON tasks.

    ``code``: distribution, version and hash of each file, so that a refusal can name what changed.
    """

    environment: str  # id in the registry, or a dotted path
    version: str
    code_sha256: str
    config: dict[str, Any]
    task_set_sha256: str
    code: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CollectSpec:
    """``collect_shard`` and ``evaluate_shard``: at most 32 rows, composition and order from the plan."""

    run_uid: str
    plan_sha256: str
    purpose: str
    condition: str
    split: str
    policy: PolicyRef
    environment: EnvironmentRef
    reward: dict[str, Any]  # {"id", "version"}; of a reward from outside also code_sha256 and code
    sampling: dict[str, Any]  # temperature, top_p, top_k, max_new_tokens
    max_decisions: int
    advantage: dict[str, Any] | None  # {"kind", "eps"}; None for evaluation
    runtime: str
    groups: tuple[GroupSpec, ...]


@dataclass(frozen=True)
class CollectedGroup:
    """One collected group: canonical ``GroupRecord`` text and its capture file."""

    record_json: str  # text of the canonical bytes of a GroupRecord
    record_sha256: str
    capture_blob_sha256: str
    capture_blob_bytes: int
    captures: tuple[CaptureRef, ...]


@dataclass(frozen=True)
class CollectResult:
    """Answer to ``CollectSpec``. ``timing`` holds seconds and counts and is never hashed."""

    groups: tuple[CollectedGroup, ...]
    metrics: tuple[MetricRecord, ...]
    timing: dict[str, float]


@dataclass(frozen=True)
class UpdateGroup:
    """One group handed to an update: its record and where its captures lie.

    ``trials_json``: canonical text of its ``GroupTrials``; None where the group has no trials.
    """

    record_json: str
    record_sha256: str
    capture_blob_sha256: str
    captures: tuple[CaptureRef, ...]
    trials_json: str | None = None
    trials_sha256: str | None = None


@dataclass(frozen=True)
class UpdateSpec:
    """``apply_update``: one optimizer batch under the adapter that sampled it.

    ``objective``: advantage, advantage_eps, aggregation, fixed_length, clip_low, clip_high, credit,
    zero_variance, kl_beta, edit_weight, edit_cap. ``optimizer``: name, learning_rate, betas, eps,
    weight_decay, grad_clip, epochs, minibatches, micro_batch (trajectories in one forward), length_buckets.
    ``reference_adapter_sha256``: checkpoint that the divergence is measured to; None measures none.
    """

    run_uid: str
    plan_sha256: str
    update_uid: str
    batch: int
    first_step: int
    policy: PolicyRef
    optimizer_sha256: str | None
    objective: dict[str, Any]
    optimizer: dict[str, Any]
    runtime: str
    groups: tuple[UpdateGroup, ...]
    reference_adapter_sha256: str | None = None


@dataclass(frozen=True)
class UpdateResult:
    """Answer to ``UpdateSpec``: canonical ``UpdateRecord`` text; blobs already lie in the store."""

    record_json: str
    record_sha256: str
    adapter_blob_bytes: int
    optimizer_blob_bytes: int
    metrics: tuple[MetricRecord, ...]
    timing: dict[str, float]


@dataclass(frozen=True)
class DescribeSpec:
    """Ask the engine to build (or find) a model profile and say what it is. ``reward``: {"id", "version"} or empty."""

    model: str
    dtype: str
    adaptation: dict[str, Any]
    formatter: str
    environment: str
    environment_config: dict[str, Any]
    reward: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DescribeResult:
    """What a plan binds at freeze. ``task_set_sha256`` names a blob: canonical JSON list of all tasks.

    ``parent_adapter_sha256`` is the initial adapter, written to the store: every run starts there.
    ``verifier``: id with version of what tries the environment's artefacts; None where it keeps none.
    ``code``: {"environment", "reward", "profile"}, each distribution, version, files and code_sha256, or
    None where nothing of the kind comes from outside the product.
    """

    base_model_sha256: str
    tokenizer_sha256: str
    parent_adapter_sha256: str
    parent_adapter_bytes: int
    vocabulary_sha256: str  # blob: canonical JSON list, index = token id, item = the token's text
    parameters: int
    trainable_parameters: int
    runtime: str
    runtime_facts: dict[str, Any]
    formatter: str
    environment: str
    environment_version: str
    success_definition: str
    environment_code_sha256: str
    reward_code_sha256: str
    harness_code_sha256: str
    task_set_sha256: str
    warm_start: dict[str, Any]  # recipe hash, sampled validity, reward, copy accuracy, cached or built
    code: dict[str, Any] = field(default_factory=dict)
    verifier: str | None = None
