"""Records that are intact but of something else than the frozen plan asks for are named."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.verify import verify
from tests.runs.builders import World
from workbench.contracts import layout

pytestmark = pytest.mark.django_db


def _columns(world: World) -> set[tuple[str, str]]:
    report = verify(store=world.store, steps={2})
    return {(item.table, item.column) for item in report.faults}


def test_what_the_plan_asks_for_has_no_problem(world: World) -> None:
    assert _columns(world) == set()


def test_other_seeds_and_another_failure_profile_are_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "slot_seed", lambda *parts: "7")
    assert _columns(world) == {("runs_group", "seeds")}
    monkeypatch.setattr(layout, "profile_of", lambda cycle, ordinal: "control")
    assert ("runs_group", "failure_profile") in _columns(world)


def test_another_objective_and_other_sampling_are_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan's arm says otherwise than the records."""
    true = layout.arm_of

    def other(body: dict[str, Any], key: str) -> dict[str, Any]:
        arm = true(body, key)
        config = {**arm["config"], "objective": {**arm["config"]["objective"], "credit": "fatal_suffix"}}
        sampling = {**config["rollout"]["sampling"], "temperature": 0.5}
        return {**arm, "config": {**config, "rollout": {**config["rollout"], "sampling": sampling}}}

    monkeypatch.setattr(layout, "arm_of", other)
    assert {("runs_updatebatch", "objective"), ("runs_group", "sampling")} <= _columns(world)


def test_a_run_that_the_plan_does_not_ask_for_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "run_uid", lambda version, arm, seed: f"{arm}:{seed}")
    assert ("runs_run", "uid") in _columns(world)
