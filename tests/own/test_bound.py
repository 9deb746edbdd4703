"""A job is held to the code that its plan binds; a draft is refused before anything is bound."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.own.example import CAREFUL, ENVIRONMENT, SOURCES
from workbench.contracts.errors import EngineFault, EnvironmentFault
from workbench.contracts.jobs import CollectSpec, DescribeSpec, EnvironmentRef, PolicyRef
from workbench.contracts.wire import from_wire, to_wire
from worker.engine import own
from worker.environments.code import CodeChanged
from worker.environments.registry import get_environment

LORA = {"kind": "lora", "rank": 4, "alpha": 8, "targets": ["q_proj"], "seed": "1"}
PROFILE = "workbench_inventory.model:TINY_CHAT"


def described(**changes: Any) -> DescribeSpec:
    """What an inspection of a plan on the example asks."""
    reward = {"id": CAREFUL, "version": "1"}
    spec = DescribeSpec(f"embedded-{ENVIRONMENT}", "float32", LORA, "compact", ENVIRONMENT, {}, reward)
    return replace(spec, **changes)


def collect(profile: bool = False) -> CollectSpec:
    """A shard of a plan that was frozen with the example as it is."""
    spec = described(model=PROFILE) if profile else described()
    code = own.described_code(spec, get_environment(ENVIRONMENT, {}))
    bound = code["profile"] or {}
    return CollectSpec(
        run_uid="r", plan_sha256="p", purpose="train", condition="train", split="train",
        policy=PolicyRef(spec.model, "b", "t", None, 0, "float32", LORA, "chat", bound),
        environment=EnvironmentRef(
            ENVIRONMENT, "1.0.0", code["environment"]["code_sha256"], {}, "s", code["environment"]
        ),
        reward={**spec.reward, "code_sha256": code["reward"]["code_sha256"], "code": code["reward"]},
        sampling={}, max_decisions=7, advantage=None, runtime="x", groups=(),
    )  # fmt: skip


@pytest.fixture
def restored(inventory: Path, tmp_path: Path) -> Any:
    """The example's package, put back after the test."""
    package = inventory / SOURCES / "workbench_inventory"
    shutil.copytree(package, tmp_path / "kept")
    yield package
    shutil.rmtree(package)
    shutil.copytree(tmp_path / "kept", package)


def test_unchanged_code_is_bound_with_its_reward_and_profile() -> None:
    spec = from_wire(CollectSpec, to_wire(collect(profile=True)))
    found = own.bound_code(spec)
    assert (found.reward_id, found.environment.id) == ("inventory.careful", "inventory")
    assert found.outside == {"reward": spec.reward["code_sha256"], "profile": spec.policy.profile["code_sha256"]}
    assert found.reward_sha256 == spec.reward["code_sha256"]


def test_the_products_own_environment_is_made_once_and_any_other_anew() -> None:
    """By configuration, however often it is named; and no more of them than may be kept."""
    own._KEPT.clear()
    first = EnvironmentRef("evidence_search", "1.0.0", "c", {"world_seed": 5}, "s", {})
    kept = own.environment_of(first)
    assert own.environment_of(replace(first, config={"world_seed": 5})) is kept
    assert own.environment_of(replace(first, config={"world_seed": 6})) is not kept
    for seed in range(7, 7 + own.MOST_KEPT):
        own.environment_of(replace(first, config={"world_seed": seed}))
        assert len(own._KEPT) <= own.MOST_KEPT
    assert own.environment_of(first) is not kept
    outside = replace(first, environment=ENVIRONMENT, config={})
    assert own.environment_of(outside) is not own.environment_of(outside)
    own._KEPT.clear()


def test_a_changed_file_is_named(restored: Path) -> None:
    spec = collect()
    with (restored / "world.py").open("a") as file:
        file.write("# a remark\n")
    with pytest.raises(CodeChanged, match=r"environment .*: world.py changed\. Put back what the plan binds"):
        own.bound_code(spec)


def test_code_that_no_longer_loads_is_a_change_too(restored: Path) -> None:
    spec = collect()
    (restored / "environment.py").write_text("raise RuntimeError('half saved')\n")
    with pytest.raises(CodeChanged, match=r"half saved.*the plan was frozen with code that loads"):
        own.bound_code(spec)


def test_a_changed_profile_stops_updates_as_well(restored: Path) -> None:
    spec = collect(profile=True)
    own.require_profile(spec.policy)
    (restored / "model.py").write_text((restored / "model.py").read_text().replace("rank=4", "rank=8"))
    with pytest.raises(CodeChanged, match=r"model .*: model.py changed"):
        own.require_profile(spec.policy)


def test_a_reward_that_is_gone_is_never_replaced_by_the_environments_own() -> None:
    spec = collect()
    with pytest.raises(CodeChanged, match="got nothing under this name"):
        own.bound_code(replace(spec, reward={**spec.reward, "id": "inventory.absent"}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "embedded-evidence-search"}, "policy.model: .*expected embedded-workbench_inventory"),
        ({"model": PROFILE}, "policy.formatter: got compact, expected chat"),
        ({"model": PROFILE, "formatter": "chat", "dtype": "nf4"}, "policy.dtype: got nf4, expected float32"),
        ({"model": "os:getcwd"}, "expected a ModelProfile"),
        ({"environment": "tests.own.broken:Leaks", "model": "embedded-tests.own.broken:Leaks"}, "hidden reference"),
        ({"reward": {"id": CAREFUL, "version": "2"}}, "reward.version: got 1, expected 2"),
    ],
)
def test_an_inspection_refuses(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    """Nothing is built before: a store of None would raise otherwise."""
    with pytest.raises((EngineFault, EnvironmentFault), match=said):
        own.inspect(described(**changes), None, cache_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_warm_start_says_at_once_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    own.require_fit(described())
    kind = type(get_environment(ENVIRONMENT, {}))
    tasks = get_environment(ENVIRONMENT, {}).tasks()
    monkeypatch.setattr(kind, "tasks", lambda self: [task for task in tasks if task.split != "validation"])
    with pytest.raises(EnvironmentFault, match="got 0 validation tasks, expected at least 32"):
        own.require_fit(described())
    monkeypatch.setattr(kind, "demonstrations", lambda self, seed: iter(()))
    with pytest.raises(EnvironmentFault, match="warm-started on them"):
        own.require_fit(described())
