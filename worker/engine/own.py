"""Code from outside the product: what a plan binds of it, and the refusal of anything else.

An environment, a reward and a model profile may come from the user's own package. ``bound_world``
holds a job to the code that its plan names; ``inspect`` refuses a broken one before anything is bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.errors import EngineFault, EnvironmentFault
from workbench.contracts.jobs import CollectSpec, DescribeResult, DescribeSpec, EnvironmentRef, PolicyRef
from workbench.contracts.trials import TrialsSpec
from worker.environments.base import Environment
from worker.environments.code import CodeChanged, CodeIdentity, require_unchanged
from worker.environments.conformance import examine
from worker.environments.registry import (
    RewardRules,
    environment_code,
    environment_path,
    get_environment,
    is_bundled,
    record_id,
    reward_code,
    reward_code_sha256,
    reward_rules,
)

from . import profiles, warmstart
from .collect import Progress
from .policy import embedded_environment

MOST_KEPT = 4
_KEPT: dict[tuple[str, bytes], Environment] = {}


@dataclass(frozen=True)
class BoundCode:
    """Environment and reward of a job, their code held to the plan. ``reward_id``: as its records carry it."""

    environment: Environment
    rules: RewardRules
    reward_id: str
    reward_sha256: str
    outside: dict[str, str]  # identities that captures carry beside the usual ones


def _value(code: CodeIdentity) -> dict[str, Any]:
    return {"code_sha256": code.sha256(), **code.value()}


def described_code(spec: DescribeSpec, environment: Environment) -> dict[str, Any]:
    """The ``code`` of a description."""
    reward = reward_code(environment, spec.reward.get("id"))
    own = profiles.own_profile(spec.model)
    return {
        "environment": _value(environment_code(environment)),
        "reward": None if reward is None else _value(reward),
        "profile": None if own is None else _value(own[1]),
    }


def environment_of(ref: EnvironmentRef) -> Environment:
    """The environment that a job names.

    One of the product is made once a process for each configuration: it is deterministic, and what it keeps from one
    job to the next (text of visible tests, by tree and tests) it would find again. One from outside is made anew.
    """
    if not is_bundled(ref.environment):
        return get_environment(ref.environment, ref.config)
    key = (ref.environment, canonical_bytes(ref.config))
    if key not in _KEPT:
        if len(_KEPT) == MOST_KEPT:
            _KEPT.clear()
        _KEPT[key] = get_environment(ref.environment, ref.config)
    return _KEPT[key]


def bound_code(spec: CollectSpec | TrialsSpec) -> BoundCode:
    """Environment and reward of a job. Raises ``CodeChanged`` where their code, or a profile's, is not the plan's."""
    ref, reward_id = spec.environment, str(spec.reward["id"])
    require_profile(spec.policy)
    try:
        environment = environment_of(ref)
        code = reward_code(environment, reward_id)
    except EnvironmentFault as error:
        raise CodeChanged(f"{error}; the plan was frozen with code that loads") from error
    require_unchanged(
        f"environment {ref.environment!r}", {"code_sha256": ref.code_sha256, **ref.code}, environment_code(environment)
    )
    if environment.version != ref.version:
        raise EngineFault(f"environment.version: got {environment.version}, expected {ref.version}")
    outside = {}
    if "code_sha256" in spec.reward:
        if code is None:
            raise CodeChanged(
                f"reward {reward_id!r}: got nothing under this name, expected the reward that the plan binds"
            )
        require_unchanged(
            f"reward {reward_id!r}", {"code_sha256": spec.reward["code_sha256"], **spec.reward["code"]}, code
        )
        outside["reward"] = code.sha256()
    if spec.policy.profile:
        outside["profile"] = str(spec.policy.profile["code_sha256"])
    return BoundCode(
        environment,
        reward_rules(environment, reward_id),
        record_id(reward_id),
        reward_code_sha256(environment, reward_id),
        outside,
    )


def require_profile(policy: PolicyRef) -> None:
    """Raises ``CodeChanged`` where the plan's own model profile is not the one that is here."""
    if not policy.profile:
        return
    try:
        own = profiles.own_profile(policy.model)
    except EnvironmentFault as error:
        raise CodeChanged(f"{error}; the plan was frozen with code that loads") from error
    if own is None:
        raise CodeChanged(
            f"model {policy.model!r}: got nothing under this name, expected the profile that the plan binds"
        )
    require_unchanged(f"model {policy.model!r}", policy.profile, own[1])


def inspect(spec: DescribeSpec, store: Any, *, cache_dir: Path, progress: Progress | None = None) -> DescribeResult:
    """Describe what a draft names, after everything of it that comes from outside has passed its quick checks.

    Raises ``EnvironmentFault`` or ``EngineFault`` with every finding: a broken environment, reward or
    profile never gets as far as a frozen plan.
    """
    from .train import describe

    if progress is not None:
        progress({"stage": "code"})
    require_fit(spec)
    examine.require(spec.environment, spec.environment_config, spec.reward.get("id"), spec.reward.get("version"))
    return describe(spec, store, cache_dir=cache_dir, progress=progress)


def require_fit(spec: DescribeSpec) -> None:
    """Refuse a policy that cannot go with the environment or with the plan's policy section."""
    own = profiles.own_profile(spec.model)
    if own is not None:
        _require_profile_fields(spec, own[0])
    embedded = embedded_environment(spec.model)
    if embedded is None:
        return
    if environment_path(embedded) != environment_path(spec.environment):
        raise EngineFault(
            f"policy.model: got {spec.model!r}, which is warm-started on {embedded!r}, expected "
            f"embedded-{spec.environment} for this environment"
        )
    if not is_bundled(spec.environment):
        _require_warm_start(get_environment(spec.environment, spec.environment_config))


def _require_profile_fields(spec: DescribeSpec, profile: profiles.ModelProfile) -> None:
    pairs = (
        ("policy.dtype", spec.dtype, profile.dtype),
        ("policy.formatter", spec.formatter, profile.formatter),
        ("policy.adaptation.kind", spec.adaptation["kind"], profile.adaptation["kind"]),
    )
    for name, got, expected in pairs:
        if got != expected:
            raise EngineFault(f"{name}: got {got}, expected {expected}, as the model profile {spec.model!r} says")


def _require_warm_start(environment: Environment) -> None:
    """What the recipe needs: demonstrations, and enough validation tasks for its sampled gate."""
    if next(iter(environment.demonstrations(0)), None) is None:
        raise EnvironmentFault("demonstrations(): got none, expected some: the embedded policy is warm-started on them")
    for stage in (warmstart.STANDARD.probe, warmstart.STANDARD.stress):
        if stage is None:
            continue
        found = sum(task.split == stage.split for task in environment.tasks())
        if found < stage.prompts:
            raise EnvironmentFault(
                f"tasks(): got {found} {stage.split} tasks, expected at least {stage.prompts} for the warm start"
            )
