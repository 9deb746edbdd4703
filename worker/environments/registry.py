"""Environments and rewards by id, entry point or dotted path, and the hash of the code that they consist of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.records import RewardRecord, TurnRecord

from . import loading
from .base import Environment, Reward, Task
from .code import CodeIdentity, code_identity, module_files, module_of

BUILT_IN = {
    "code_repair": "worker.environments.code_repair.environment:CodeRepair",
    "evidence_search": "worker.environments.evidence_search.environment:EvidenceSearch",
}
ENVIRONMENT_MEMBERS = (
    "id", "version", "tasks", "instructions", "tools", "reset", "restore", "replay", "injected_failure", "reward",
    "success", "success_definition", "is_premature", "demonstrations", "state_label",
)  # fmt: skip
REWARD_MEMBERS = ("id", "version", "score")


class RewardRules(Protocol):
    """What scores the trajectories of a plan: the environment's own rules or a reward from outside."""

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord: ...


class _Outside:
    """A ``Reward`` behind the method name that stages and ``verify`` call."""

    def __init__(self, rules: Reward):
        self.rules = rules

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        return self.rules.score(task, turns, terminal)


def environment_names() -> list[str]:
    """Ids that a plan may name: bundled ones and those of installed distributions."""
    return sorted({*BUILT_IN, *loading.entry_point_names(loading.ENVIRONMENTS)})


def is_bundled(id_or_dotted_path: str) -> bool:
    """Whether the environment is part of the product."""
    return environment_path(id_or_dotted_path) in BUILT_IN.values()


def environment_path(id_or_dotted_path: str) -> str:
    """``package.module:Class`` behind an id or a path. Raises ``EnvironmentFault`` listing the known ids."""
    path = BUILT_IN.get(id_or_dotted_path)
    path = path or loading.entry_point_path(loading.ENVIRONMENTS, id_or_dotted_path) or id_or_dotted_path
    module_name, separator, class_name = path.partition(":")
    if not separator:
        module_name, _, class_name = path.rpartition(".")
    if not loading.is_dotted_path(f"{module_name}:{class_name}"):
        known = ", ".join(environment_names())
        raise EnvironmentFault(
            f"environment: got {id_or_dotted_path!r}, expected one of [{known}] or a dotted path package.module:Class"
        )
    return f"{module_name}:{class_name}"


def get_environment(id_or_dotted_path: str, config: dict[str, Any]) -> Environment:
    """Build an environment from its id (``evidence_search``), an entry point's name or ``package.module:Class``.

    Raises ``EnvironmentFault`` naming the id where nothing loads under it, where the class lacks a
    member of the interface, or where the configuration is refused.
    """
    what = f"environment {id_or_dotted_path!r}"
    kind = loading.load_object(environment_path(id_or_dotted_path), "environment")
    kind = loading.require_members(kind, ENVIRONMENT_MEMBERS, what)
    try:
        return cast(Environment, kind(config))
    except (TypeError, ValueError, KeyError) as error:
        raise EnvironmentFault(f"{what}: its configuration was refused: {error}") from error


def is_outside_reward(reward_id: str) -> bool:
    """Whether an id names rules from outside, whether they load or not: an entry point or a dotted path."""
    return loading.entry_point_path(loading.REWARDS, reward_id) is not None or loading.is_dotted_path(reward_id)


def outside_reward(reward_id: str) -> Reward | None:
    """The reward that an entry point or a dotted path names; None where the id is an environment's own.

    Raises ``EnvironmentFault`` where a path loads nothing or the class lacks a member.
    """
    if not is_outside_reward(reward_id):
        return None
    path = loading.entry_point_path(loading.REWARDS, reward_id)
    kind = loading.load_object(path or reward_id, "reward")
    kind = loading.require_members(kind, REWARD_MEMBERS, f"reward {reward_id!r}")
    try:
        return cast(Reward, kind())
    except (TypeError, ValueError) as error:
        raise EnvironmentFault(f"reward {reward_id!r}: it takes no argument; got {error}") from error


def reward_rules(environment: Environment, reward_id: str | None) -> RewardRules:
    """What scores under a plan: the outside reward of that id, else the environment's own rules."""
    outside = outside_reward(reward_id) if reward_id is not None else None
    return environment if outside is None else _Outside(outside)


def record_id(reward_id: str) -> str:
    """The ``reward_id`` that records carry under a plan's reward: a class behind a path has an id of its own."""
    outside = outside_reward(reward_id)
    return reward_id if outside is None else outside.id


def environment_code(environment: Environment) -> CodeIdentity:
    """Distribution, version and files of an environment's code."""
    return code_identity(type(environment))


def environment_code_sha256(environment: Environment) -> str:
    """Digest of ``environment_code``: every file of the environment's package by relative name.

    A class that lies beside this registry, or outside any package, consists of its own file alone.
    """
    return environment_code(environment).sha256()


def reward_code(environment: Environment, reward_id: str | None = None) -> CodeIdentity | None:
    """Code of an outside reward; None where the environment's own rules apply."""
    outside = outside_reward(reward_id) if reward_id is not None else None
    return None if outside is None else code_identity(type(outside))


def reward_code_sha256(environment: Environment, reward_id: str | None = None) -> str:
    """Hash of an outside reward's code, or of the module that holds the environment's own rules.

    Own rules: ``reward.py`` of the package, else the class's own file.
    """
    outside = reward_code(environment, reward_id)
    if outside is not None:
        return outside.sha256()
    module = module_of(type(environment))
    folder, files = module_files(module)
    rules = folder / "reward.py"
    return sha256_hex((rules if rules in files else Path(str(module.__file__))).read_bytes())
