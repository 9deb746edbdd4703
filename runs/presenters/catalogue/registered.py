"""Environments and models: what is registered here, read without running it, and what frozen plans have bound."""

from __future__ import annotations

import ast
import functools
import json
import re
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Count

from runs.models import Checkpoint, RewardComponent, Trajectory
from runs.presenters.catalogue.bound import Bound
from workbench.contracts.canonical import digest, sha256_hex

GROUP, REWARDS, MODELS = "workbench.environments", "workbench.rewards", "workbench.models"


@dataclass(frozen=True)
class Registration:
    """How an id is found. ``code_sha256``: of the files that lie here now; None where they were not read."""

    id: str
    target: str
    source: str  # built_in | entry_point | bound
    distribution: str
    version: str
    code_sha256: str | None


@dataclass(frozen=True)
class EnvironmentView:
    """An environment with the plans that bound it."""

    registration: Registration
    bound: list[Bound]
    identities: list[tuple[str, str, str, list[Bound]]]  # version, code hash, success definition, plans
    rewards: list[tuple[str, str, str]]  # id, version, code hash
    components: list[RewardComponent]
    task_sets: list[str]


def registrations() -> list[Registration]:
    """Built-in environments, then those of installed packages. Nothing of them is imported."""
    found = [
        Registration(name, target, "built_in", "workbench", "", _code_of(target))
        for name, target in _built_in().items()
    ]
    return found + installed(GROUP)


def installed(group: str) -> list[Registration]:
    """What installed packages register in a group of entry points."""
    found = []
    for point in sorted(entry_points(group=group), key=lambda item: item.name):
        package = point.dist
        name, version = (package.name, package.version) if package is not None else ("", "")
        found.append(Registration(point.name, point.value, "entry_point", name, version, None))
    return found


@functools.lru_cache(maxsize=1)
def _built_in() -> dict[str, str]:
    """``BUILT_IN`` of the registry's source: this process reads it and never loads an environment."""
    source = settings.BASE_DIR / "worker" / "environments" / "registry.py"
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == "BUILT_IN" for target in targets):
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    return {}


def _code_of(target: str) -> str | None:
    """The hash that a freeze would bind now: over every source file of the environment's package."""
    module = target.partition(":")[0]
    place = Path(settings.BASE_DIR, *module.split(".")).with_suffix(".py")
    folder = place.parent
    try:
        return digest(
            [[p.relative_to(folder).as_posix(), sha256_hex(p.read_bytes())] for p in sorted(folder.rglob("*.py"))]
        )
    except OSError:
        return None


def environments(bound: list[Bound]) -> list[EnvironmentView]:
    """Everything registered, then what plans bound under other names."""
    known = registrations()
    names = {item.id for item in known}
    other = sorted({item.facts.environment_id for item in bound} - names)
    known += [Registration(name, name, "bound", "", "", None) for name in other]
    return [_environment(item, [one for one in bound if one.facts.environment_id == item.id]) for item in known]


def _environment(registration: Registration, bound: list[Bound]) -> EnvironmentView:
    identities: dict[tuple[str, str, str], list[Bound]] = {}
    rewards: dict[tuple[str, str, str], None] = {}
    for item in bound:
        facts = item.facts
        about = tuple(str(facts.environment.get(key) or "") for key in ("version", "code_sha256", "success_definition"))
        identities.setdefault(about, []).append(item)  # type: ignore[arg-type]
        rewards[tuple(str(facts.reward.get(key) or "") for key in ("id", "version", "code_sha256"))] = None  # type: ignore[index]
    return EnvironmentView(
        registration, bound, [(*key, plans) for key, plans in identities.items()], list(rewards), _components(bound),
        sorted({item.facts.task_set for item in bound if item.facts.task_set}),
    )  # fmt: skip


def _components(bound: list[Bound]) -> list[RewardComponent]:
    """Reward components as the newest valid trajectory of these plans has them."""
    versions = [item.version.pk for item in bound]
    row = Trajectory.objects.filter(group__plan_version__in=versions, status="valid").order_by("-pk").first()
    return list(row.reward_components.order_by("pk").select_related("trajectory")) if row is not None else []


@dataclass
class ModelView:
    """One policy as it was bound, with what uses it."""

    model: str
    dtype: str
    adaptation: dict[str, Any]
    formatter: str
    identity: dict[str, Any]
    bound: list[Bound] = field(default_factory=list)
    checkpoints: int = 0


def models(bound: list[Bound]) -> list[ModelView]:
    """Policies that plans bound, equal ones together."""
    found: dict[str, ModelView] = {}
    for item in bound:
        policy, identity = item.facts.policy, item.facts.identity
        key = json.dumps([policy, {k: v for k, v in identity.items()}], sort_keys=True)
        view = found.setdefault(
            key, ModelView(policy["model"], policy["dtype"], policy["adaptation"], item.facts.formatter, identity)
        )
        view.bound.append(item)
    pairs = Checkpoint.objects.filter(run__plan_version__in=[item.version.pk for item in bound])
    trained = dict(pairs.values_list("run__plan_version").annotate(n=Count("pk")).order_by())
    for view in found.values():
        view.checkpoints = sum(trained.get(item.version.pk, 0) for item in view.bound)
    return list(found.values())


@dataclass(frozen=True)
class Fit:
    """The memory estimate of a profile: terms in MiB, the sum, and the size that it has to fit into."""

    profile: str
    assumed: str
    terms: list[tuple[str, int]]
    total: int
    limit: int


def fit() -> Fit | None:
    """The estimate that ``docs/models.md`` states; None where the document is absent or says nothing of it."""
    try:
        text = (settings.BASE_DIR / "docs" / "models.md").read_text(encoding="utf-8")
    except OSError:
        return None
    head = re.search(r"^## Memory of `([^`]+)`: computed, not measured\n+(.*?)(?=^\|)", text, re.M | re.S)
    if head is None:
        return None
    table = text[head.end() :].split("\n\n", 1)[0]
    terms, total, limit = [], 0, 0
    for name, size in re.findall(r"^\| (.+?) \| \**([\d,]+)\** \|$", table, re.M):
        whole = re.search(r"of ([\d,]+)", name)
        if name.startswith("**") and whole:
            total, limit = int(size.replace(",", "")), int(whole.group(1).replace(",", ""))
        else:
            terms.append((name, int(size.replace(",", ""))))
    said = re.search(r"At [^.]*?(?=:\n|$)", " ".join(head.group(2).split()))
    return (
        Fit(head.group(1), said.group(0).rstrip(":") if said else "", terms, total, limit) if terms and total else None
    )
