"""What frozen plans have bound: the only way to a task set, an environment or a model, which belong to no study."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runs.access import Principal
from runs.actions.plans import plan_body
from runs.models import PlanVersion, Study, TaskSet
from runs.tasksets import bound_task_set, visible_versions
from runs.tasksets import visible_task_sets as task_sets


@dataclass(frozen=True)
class Facts:
    """The parts of a frozen body that the catalogue reads."""

    policy: dict[str, Any]  # as the plan says it
    identity: dict[str, Any]  # as it was bound: hashes, parameters
    environment: dict[str, Any]
    environment_id: str
    config: dict[str, Any]
    reward: dict[str, Any]
    task_set: str
    splits: dict[str, int]
    formatter: str


@dataclass(frozen=True)
class Bound:
    """A frozen version that the reader may see, with what it bound."""

    version: PlanVersion
    facts: Facts

    @property
    def study(self) -> Study:
        """The study that it belongs to."""
        return self.version.plan.study


@functools.lru_cache(maxsize=4096)
def _facts(sha256: str) -> Facts:
    """Facts of the body with this hash: equal for ever, so that each body is parsed once a process."""
    version = PlanVersion.objects.filter(sha256=sha256).order_by("pk")[:1].get()
    body = plan_body(version)
    plan, bound = body["plan"], body["bindings"]
    policy, task_set = bound.get("policy") or {}, bound.get("task_set") or {}
    return Facts(
        policy=plan["policy"],
        identity=policy,
        environment=bound.get("environment") or {},
        environment_id=plan["environment"]["id"],
        config=plan["environment"]["config"],
        reward={**plan["reward"], **(bound.get("reward") or {})},
        task_set=bound_task_set(sha256),
        splits={name: len(tasks) for name, tasks in task_set.get("splits", {}).items()},
        formatter=str(policy.get("formatter") or bound.get("formatter") or plan["policy"]["formatter"]),
    )


def bound_versions(principal: Principal) -> list[Bound]:
    """Every frozen version of a visible study, newest last."""
    return [Bound(row, _facts(row.sha256)) for row in visible_versions(principal)]


def users_of(bound: Iterable[Bound], task_set: str) -> list[Bound]:
    """Versions that bound a task set."""
    return [item for item in bound if item.facts.task_set == task_set]


def visible_task_sets(principal: Principal, bound: list[Bound]) -> list[TaskSet]:
    """Task sets that the reader may see, in the order of the pages."""
    rows = task_sets(principal, (item.facts.task_set for item in bound))
    return list(rows.order_by("environment", "version", "pk"))
