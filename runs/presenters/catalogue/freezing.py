"""What a freeze binds, what it lets loose, and what it can detect: computed from the body that would be stored."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from django.utils.translation import gettext as _

from runs.presenters.plans import Contract, Field
from workbench.contracts import layout
from workbench.contracts.canonical import canonical_bytes, digest, sha256_hex
from workbench.contracts.records import PREFLIGHT, TRAIN
from workbench.contracts.spec import compare_arms

POWER = 0.8
_HASH = re.compile(r"[0-9a-f]{64}")
_SHARES = frozenset(
    {"success", "finish", "policy_failure", "premature_finish_all", "budget_exhausted", "repeat_any", "fatal"}
    | {"continued_after_fatal_all", "exposed", "recovery_all"}
)


@dataclass(frozen=True)
class Identity:
    """One bound identity: a hash, or a word where it has no hash."""

    name: Any
    sha256: str | None
    text: str


@dataclass(frozen=True)
class PairView:
    """A strict pair, field by field; ``undeclared`` and ``inert`` fields refuse the freeze."""

    contract: Contract
    undeclared: tuple[str, ...]
    inert: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the freeze accepts it."""
        return not self.undeclared and not self.inert


@dataclass(frozen=True)
class Expected:
    """How much work a plan asks for if every gate is met and nothing is repeated."""

    runs: int
    updates: int
    groups: int
    trajectories: int
    items: int
    captures: int
    jobs: int


@dataclass(frozen=True)
class Detectable:
    """An endpoint with what it rests on. ``difference`` None: its spread is not known before the run."""

    endpoint: dict[str, Any]
    tasks: int
    items: int
    difference: float | None


@dataclass(frozen=True)
class Bytes:
    """The canonical bytes that would be, or were, stored."""

    sha256: str
    size: int


def bytes_of(body: dict[str, Any]) -> Bytes:
    """Hash and size of a body's canonical bytes."""
    data = canonical_bytes(body)
    return Bytes(sha256_hex(data), len(data))


def identities(body: dict[str, Any]) -> list[Identity]:
    """Everything that is bound beside the document, as far as the body has it."""
    bound = body["bindings"]
    policy, environment, reward = (bound.get(name) or {} for name in ("policy", "environment", "reward"))
    task_set, warm = bound.get("task_set") or {}, bound.get("warm_start") or {}
    parts = body["plan"]
    count = sum(len(tasks) for tasks in task_set.get("splits", {}).values())
    rows = [
        (_("base model"), policy.get("base_model_sha256"), parts["policy"]["model"]),
        (_("tokenizer"), policy.get("tokenizer_sha256"), ""),
        (_("parent adapter"), policy.get("parent_adapter_sha256"), ""),
        (_("vocabulary"), policy.get("vocabulary_sha256"), ""),
        (_("formatter"), None, policy.get("formatter") or bound.get("formatter") or parts["policy"]["formatter"]),
        (_("warm start"), warm.get("recipe_sha256"), ""),
        (
            _("environment"),
            environment.get("code_sha256"),
            f"{parts['environment']['id']} {environment.get('version', '')} {_owner(environment.get('code'))}",
        ),
        (_("success"), None, environment.get("success_definition") or ""),
        (
            _("reward"),
            reward.get("code_sha256"),
            f"{parts['reward']['id']} {parts['reward']['version']} {_owner(reward.get('code'))}",
        ),
        (_("model profile"), (policy.get("profile") or {}).get("code_sha256"), _owner(policy.get("profile"))),
        (_("harness"), bound.get("harness"), ""),
        (_("runtime"), None, str(bound.get("runtime") or "")),
        (_("task set"), task_set.get("sha256"), _("%(n)d tasks") % {"n": count}),
        (_("dependencies"), bound.get("dependency_lock"), ""),
        (_("failure schedule"), digest(body["failure_schedule"]), ""),
    ]
    rows += _files(environment.get("code"), reward.get("code"), policy.get("profile"))
    return [_identity(name, sha, str(text).strip()) for name, sha, text in rows if sha or str(text).strip()]


def _owner(code: dict[str, Any] | None) -> str:
    """Distribution and version that brought some code; nothing for what is bundled or not installed."""
    return f"({code['distribution']} {code['version']})" if code and code.get("distribution") else ""


def _files(*codes: dict[str, Any] | None) -> list[tuple[Any, str | None, Any]]:
    """Each file of code from installed distributions, once: environment, reward and profile may share a package."""
    found = {
        (code["distribution"], name): sha
        for code in codes
        if code and code.get("distribution")
        for name, sha in code["files"].items()
    }
    return [(name, sha, f"({owner})") for (owner, name), sha in sorted(found.items())]


def _identity(name: Any, sha256: str | None, text: str) -> Identity:
    """A word that is itself a hash is shown as one."""
    return Identity(name, text, "") if sha256 is None and _HASH.fullmatch(text) else Identity(name, sha256, text)


def pair_views(plan: dict[str, Any]) -> list[PairView]:
    """Every strict pair of a completed document, whether it holds or not."""
    found = []
    for pair in plan["strict_pairs"]:
        try:
            check = compare_arms(plan, pair["arms"][0], pair["arms"][1], pair["treatment"])
        except KeyError:  # an arm that does not exist is one of the draft's own problems
            continue
        equal: dict[str, list[Field]] = {}
        for path, value in check.equal:
            equal.setdefault(path.split(".")[0], []).append(Field(path, value, value, True))
        different = [Field(path, a, b, False) for path, a, b in check.different]
        contract = Contract(check.arms, list(check.treatment), different, equal, len(check.equal))
        found.append(PairView(contract, check.undeclared, check.inert))
    return found


def _available(body: dict[str, Any], split: str, wanted: int) -> int:
    return min(wanted, len(layout.split_tasks(body, split)))


def _batches(config: dict[str, Any]) -> int:
    """Batches until the budget of batches or of steps is spent."""
    steps = config["optimizer"]["epochs"] * config["optimizer"]["minibatches"]
    return min(config["budget"]["batches"], math.ceil(config["budget"]["max_steps"] / steps))


def expected(body: dict[str, Any]) -> Expected:
    """Runs, updates, groups, trajectories, evaluation items, captures at most, and jobs."""
    plan = body["plan"]
    per_checkpoint = len(plan["evaluation"]["conditions"]) * plan["evaluation"]["repeats"] * sum(
        _available(body, item["split"], item["tasks"]) for item in plan["evaluation"]["splits"]
    )  # fmt: skip
    shards = sum(layout.evaluation_shard_count(body, split) for _condition, split in layout.evaluation_grid(body))
    probe = plan["preflight"]["groups"] if plan["preflight"] else 0
    probe_rows = probe * plan["rollout"]["group_size"]
    probe_jobs = -(-probe // max(1, plan["runtime"]["shard_rows"] // plan["rollout"]["group_size"]))
    runs = updates = groups = rows = 0
    captures = (probe_rows + per_checkpoint) * plan["rollout"]["max_decisions"]
    for arm in body["arms"]:
        config, seeds = arm["config"], len(arm["seeds"])
        batches, rollout = _batches(config), config["rollout"]
        of_arm = seeds * batches * rollout["groups_per_batch"]
        runs, updates, groups = runs + seeds, updates + seeds * batches, groups + of_arm
        rows += of_arm * rollout["group_size"]
        captures += (of_arm * rollout["group_size"] + seeds * per_checkpoint) * rollout["max_decisions"]
    items = (runs + 1) * per_checkpoint
    reasoning = sum(len(arm["seeds"]) * len(layout.probe_batches(body, arm["config"])) for arm in body["arms"])
    tried = probe if layout.trial_settings(body, PREFLIGHT, None) else 0
    for arm in body["arms"]:
        if layout.trial_settings(body, TRAIN, arm["key"]):
            tried += len(arm["seeds"]) * _batches(arm["config"]) * arm["config"]["rollout"]["groups_per_batch"]
    jobs = probe_jobs + 2 * updates + (runs + 1) * shards + reasoning + (plan["probe"] is not None) + tried + 1
    return Expected(runs, updates, groups + probe, rows + probe_rows, items, captures, jobs)


def detectable(body: dict[str, Any]) -> list[Detectable]:
    """Each endpoint with the smallest difference of a share that its sample could tell from nothing.

    (z at the interval's level + z at 80 % power) x the standard error that independent items have at a
    share of one half. Tasks that differ in how they respond make it larger, so it is a lower bound.
    """
    plan, found = body["plan"], []
    repeats = plan["evaluation"]["repeats"]
    wanted = {item["split"]: item["tasks"] for item in plan["evaluation"]["splits"]}
    seeds = {arm["key"]: len(arm["seeds"]) for arm in body["arms"]}
    for endpoint in plan["endpoints"]:
        tasks = _available(body, endpoint["split"], wanted.get(endpoint["split"], 0))
        compared = [seeds.get(key, 0) for key in endpoint["compare"]["arms"]]
        sizes = [tasks * repeats * count for count in compared]
        if endpoint["compare"]["kind"] == "parent":
            sizes.append(tasks * repeats)
        value = None
        if endpoint["metric"] in _SHARES and sizes and min(sizes) > 0:
            normal, level = NormalDist(), endpoint["interval"]
            error = math.sqrt(sum(0.25 / size for size in sizes))
            value = (normal.inv_cdf(0.5 + level / 2) + normal.inv_cdf(POWER)) * error
        found.append(Detectable(endpoint, tasks, sum(sizes), value))
    return found


def summary(body: dict[str, Any]) -> dict[str, Any]:
    """Everything that the freeze page shows of a body."""
    schedule = body["failure_schedule"]
    return {
        "body": body,
        "stored": bytes_of(body),
        "identities": identities(body),
        "pairs": pair_views(body["plan"]),
        "expected": expected(body),
        "detectable": detectable(body),
        "schedule": schedule,
        "splits": {name: len(tasks) for name, tasks in body["bindings"]["task_set"]["splits"].items()},
        "policy": body["bindings"]["policy"],
    }
