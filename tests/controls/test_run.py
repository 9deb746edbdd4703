"""Controls on the bundled environment in the sandbox; faults that are unknown; environments that have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from workbench.contracts.controls import KINDS, admission
from workbench.contracts.errors import EnvironmentFault
from worker.environments.base import Task
from worker.environments.code_repair.environment import CodeRepair
from worker.environments.controls import control_trees, patched, planned, run_controls
from worker.environments.registry import get_environment
from worker.verifiers.trial import TrialReport

NAME = "code_repair/1.0.0"


class Few(CodeRepair):
    """The bundled environment with its first anchor task."""

    def tasks(self) -> list[Task]:
        return [task for task in super().tasks() if task.split == "anchor"][:1]


@pytest.fixture(scope="module")
def environment() -> Few:
    return Few({})


def test_every_kind_behaves_as_it_must(environment: Few) -> None:
    found = list(run_controls(environment, NAME))
    slots = [slot for slot, _ in found]
    assert [slot.kind for slot in slots] == list(KINDS)
    assert all(slot.as_expected for slot in slots) and admission(slots) is True
    assert {slot.kind for slot in slots if slot.passed} == {"gold", "other_form"}
    assert all(slot.level["unisolated"] is False and slot.tests == len(slot.observed) for slot in slots)
    assert all(0 < timing.run_s <= timing.service_s for _, timing in found)
    again = [slot for slot, _ in run_controls(environment, NAME)]
    assert again == slots  # times stand beside, nothing in a slot is of a run


def test_no_op_is_the_task_and_empty_has_no_content(environment: Few) -> None:
    task = environment.tasks()[0]
    trees = control_trees(task)
    assert trees["no_op"] == {path: text.encode() for path, text in task.initial_state["files"].items()}
    assert set(trees["empty"].values()) == {b""} and trees["empty"].keys() == trees["no_op"].keys()
    assert trees["gold"] != trees["no_op"] and trees["step_removed"] not in (trees["gold"], trees["no_op"])


class Broken(Few):
    """Its sandbox does not work for one kind, and loses an observation in another."""

    def trial(self, task: Task, files: Mapping[str, bytes]) -> TrialReport:
        trees = control_trees(task)
        if dict(files) == trees["gold"]:
            raise EnvironmentFault("trial: sandbox: no control group")
        report = super().trial(task, files)
        if dict(files) == trees["empty"]:
            return replace(report, observed=report.observed[:-1], complete=False, unknown="the driver ended with 9")
        return report


def test_a_fault_of_the_sandbox_is_unknown_and_never_a_verdict() -> None:
    slots = {slot.kind: slot for slot, _ in run_controls(Broken({}), NAME)}
    gold, empty = slots["gold"], slots["empty"]
    assert gold.as_expected is None and "no control group" in str(gold.unknown) and gold.observed == ()
    assert gold.categories == ("unresolved", "expectation_mismatch")
    assert empty.as_expected is None and empty.categories == ("raw_pass", "report_binary", "partial_zero")
    assert admission(slots.values()) is None


class Leaky(Few):
    """Its verifier passes whatever stands there."""

    def trial(self, task: Task, files: Mapping[str, bytes]) -> TrialReport:
        return super().trial(task, control_trees(task)["gold"])


def test_a_verifier_that_passes_everything_is_found() -> None:
    slots = [slot for slot, _ in run_controls(Leaky({}), NAME)]
    assert [slot.kind for slot in slots if slot.as_expected is False] == [
        k for k, passes in KINDS.items() if not passes
    ]
    assert admission(slots) is False


def test_an_environment_without_artefacts_has_no_controls() -> None:
    with pytest.raises(EnvironmentFault, match="expected a verifier of trees"):
        list(run_controls(get_environment("evidence_search", {}), "evidence_search/1"))


def test_a_split_of_no_task_is_refused(environment: Few) -> None:
    with pytest.raises(EnvironmentFault, match=r"splits: got \['other'\], expected some of \['anchor'\]"):
        planned(environment, ["other"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": {}}, "no gold patch"),
        ({"initial_state": {"files": {}}}, "no files"),
        ({"hidden": {"gold": {"a.py": "x"}, "controls": {"magic": {}}}}, "expected some of"),
        ({"hidden": {"gold": {"nowhere.py": None}}}, "expected a file of the tree"),
    ],
)
def test_a_task_that_cannot_be_controlled_is_named(environment: Few, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EnvironmentFault, match=message):
        control_trees(replace(environment.tasks()[0], **changes))


def test_a_patch_replaces_adds_and_removes() -> None:
    assert patched({"a": "1", "b": "2"}, {"a": "3", "b": None, "c": "4"}) == {"a": b"3", "c": b"4"}
