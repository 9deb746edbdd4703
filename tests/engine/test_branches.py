"""Continuations from one recorded state: the proof, determinism, the end of an episode, and other states refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.conftest import TinyWorld
from workbench.contracts.branches import (
    AFTER,
    BEFORE,
    BranchRecord,
    BranchSpec,
    branch_seed,
    branch_uid,
    mean_reward,
    parse_branch,
    point_of,
    turn_value,
)
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import EngineFault, EnvironmentFault
from workbench.contracts.jobs import CollectedGroup, CollectSpec
from workbench.contracts.records import GroupRecord, TrajectoryRecord
from workbench.contracts.wire import parse_record, record_bytes
from worker.engine import train
from worker.engine.branches import branch


@pytest.fixture
def world(make_world: Callable[..., TinyWorld]) -> TinyWorld:
    return make_world()


def collected(world: TinyWorld) -> tuple[CollectSpec, CollectedGroup, GroupRecord, TrajectoryRecord]:
    """A group of the random policy, and its longest trajectory."""
    collect = world.collect_spec(groups=1, slots=8, injected=(0,))
    found = train.collect(collect, world.store, cache_dir=world.cache_dir).groups[0]
    record = parse_record(GroupRecord, found.record_json.encode())
    return collect, found, record, max(record.trajectories, key=lambda item: len(item.turns))


def spec_of(world: TinyWorld, decision: int, count: int = 4, **changes: Any) -> BranchSpec:
    collect, found, _, base = collected(world)
    assert len(base.turns) >= 2, "the random policy of this seed makes no longer episode"
    decision = decision % len(base.turns)
    ref = next(item for item in found.captures if item.capture_sha256 == base.turns[decision].capture_sha256)
    values: dict[str, Any] = {
        "uid": branch_uid(base.uid, decision, 1), "trajectory_uid": base.uid, "decision": decision, "ordinal": 1,
        "count": count, "seed": branch_seed(base.uid, decision, 1), "record_json": found.record_json,
        "record_sha256": found.record_sha256, "capture_blob_sha256": found.capture_blob_sha256, "capture": ref,
        "group": collect.groups[0], "policy": collect.policy, "environment": collect.environment,
        "reward": collect.reward, "sampling": collect.sampling, "max_decisions": collect.max_decisions,
        "runtime": collect.runtime,
    }  # fmt: skip
    return BranchSpec(**{**values, **changes})


def run(world: TinyWorld, spec: BranchSpec) -> BranchRecord:
    return parse_branch(branch(spec, world.store, cache_dir=world.cache_dir).record_json.encode())


def test_all_continuations_start_in_the_recorded_state(world: TinyWorld) -> None:
    """One hash four ways, before the decision and after it; the snapshot that was restored is kept."""
    spec = spec_of(world, 0)
    found = run(world, spec)
    turn = parse_record(GroupRecord, spec.record_json.encode())
    base = next(item for item in turn.trajectories if item.uid == spec.trajectory_uid)
    for name, recorded in ((BEFORE, base.turns[0].state_before_sha256), (AFTER, base.turns[0].state_after_sha256)):
        point = point_of(found, name)
        assert {point.recorded_state_sha256, point.replayed_state_sha256, point.restored_state_sha256} == {recorded}
        assert {item.start_state_sha256 for item in point.continuations} == {recorded}
        assert [item.index for item in point.continuations] == [0, 1, 2, 3]
        assert sha256_hex(world.store.get(point.snapshot_sha256)) == point.snapshot_sha256
        assert all(item.actions and item.reward is not None for item in point.continuations)
        assert len({item.seed for item in point.continuations}) == 4
    before, after = (mean_reward(point_of(found, name), found.reward)[0] for name in (BEFORE, AFTER))
    assert before is not None and after is not None and turn_value(found) == after - before
    assert point_of(found, BEFORE).prompt_sha256 != point_of(found, AFTER).prompt_sha256


def test_the_same_specification_gives_the_same_bytes_and_another_seed_others(world: TinyWorld) -> None:
    spec = spec_of(world, 0)
    first, again = (branch(spec, world.store, cache_dir=world.cache_dir) for _ in range(2))
    assert first.record_sha256 == again.record_sha256
    other = run(world, replace(spec, seed=branch_seed(spec.trajectory_uid, 0, 2)))
    assert point_of(other, BEFORE).continuations != point_of(run(world, spec), BEFORE).continuations


def test_the_last_turn_has_nothing_to_go_on_from(world: TinyWorld) -> None:
    """After it stands the trajectory's own reward, counted once."""
    found = run(world, spec_of(world, -1))
    after = point_of(found, AFTER)
    assert after.terminal is not None and after.continuations == () and after.prompt_sha256 is None
    assert mean_reward(after, found.reward) == (found.reward, 1)
    assert len(point_of(found, BEFORE).continuations) == 4


def test_a_record_whose_actions_lead_elsewhere_is_refused(world: TinyWorld) -> None:
    """The state of the decision was changed in the record, hash and all."""
    spec = spec_of(world, 1)
    record = parse_record(GroupRecord, spec.record_json.encode())
    trajectories = []
    for item in record.trajectories:
        turns = list(item.turns)
        if item.uid == spec.trajectory_uid:
            turns[1] = replace(turns[1], state_before_sha256="0" * 64)
        trajectories.append(replace(item, turns=tuple(turns)))
    data = record_bytes(replace(record, trajectories=tuple(trajectories)))
    forged = replace(spec, record_json=data.decode(), record_sha256=sha256_hex(data))
    with pytest.raises(EnvironmentFault, match="by replaying, expected 0000"):
        run(world, forged)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 0}, "count: got 0"),
        ({"count": 17}, "count: got 17"),
        ({"decision": 99}, "decision: got 99"),
        ({"trajectory_uid": "none"}, "expected one of a valid trajectory"),
        ({"record_sha256": "0" * 64}, "record_sha256"),
        ({"runtime": "other"}, "runtime"),
    ],
)
def test_what_cannot_be_done_as_specified_is_refused(world: TinyWorld, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineFault, match=message):
        run(world, replace(spec_of(world, 0), **changes))
