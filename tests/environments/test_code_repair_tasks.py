"""The task set: splits, leakage, and agents that do nothing or leave nothing; references under the policy's tools."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.environments.repairs import ENVIRONMENT, SUBMIT, broken_files, gold_edits, write_all
from workbench.contracts.errors import EnvironmentFault
from worker.environments.base import FinishAction, Task, ToolAction
from worker.environments.code_repair.environment import CodeRepair
from worker.environments.code_repair.tasks import SPLIT_TASKS, tree_of
from worker.environments.conformance.episodes import play
from worker.environments.conformance.examine import examine, require
from worker.environments.conformance.subject import Subject
from worker.verifiers.trial import is_success

TASKS = ENVIRONMENT.tasks()
SAMPLE = [next(task for task in TASKS if task.split == split) for split in SPLIT_TASKS]


def test_splits_code_bases_and_identities() -> None:
    assert Counter(task.split for task in TASKS) == SPLIT_TASKS and len(TASKS) >= 24
    for split in SPLIT_TASKS:
        assert len({task.family.rpartition("_")[0] for task in TASKS if task.split == split}) == 4
    assert len({task.identity() for task in TASKS}) == len({task.key for task in TASKS}) == len(TASKS)
    funnel = ENVIRONMENT.funnel.as_json()
    assert funnel["kept"] == SPLIT_TASKS and funnel["proposed"] >= len(TASKS)


def test_no_split_holds_what_another_holds() -> None:
    """By hidden verification, by broken tree, and by what is broken and how, whatever the constants."""
    for part in (
        lambda task: str(task.hidden["tests"]),
        lambda task: str(task.initial_state["files"]),
        lambda task: "".join("#" if c.isdigit() else c for c in str(sorted(task.initial_state["files"].items()))),
    ):
        found = {split: {part(task) for task in TASKS if task.split == split} for split in SPLIT_TASKS}
        for split, items in found.items():
            for other in SPLIT_TASKS:
                assert split == other or not items & found[other], (split, other)


def test_what_a_task_holds() -> None:
    for task in TASKS:
        assert set(task.hidden) == {"tests", "fail_to_pass", "pass_to_pass", "gold", "controls"}
        assert {item["id"] for item in task.hidden["tests"]} == {
            *task.hidden["fail_to_pass"],
            *task.hidden["pass_to_pass"],
        }
        assert 2 <= len(broken_files(task)) <= 3 and len(gold_edits(task)) == len(broken_files(task))
        assert task.initial_state["visible"] and task.prompt.split(": ")[1].split() == sorted(
            task.initial_state["files"]
        )
        assert set(task.hidden["controls"]) == {"step_removed", "surface_only", "other_form"}
    with pytest.raises(KeyError):
        tree_of(TASKS[0], "no such control")


def test_another_seed_gives_other_tasks() -> None:
    other, again = CodeRepair({"seed": 8}), CodeRepair({"seed": 7})
    assert [task.identity() for task in again.tasks()] == [task.identity() for task in TASKS]
    assert not {task.identity() for task in other.tasks()} & {task.identity() for task in TASKS}


def won(task: Task, script: list[ToolAction | FinishAction]) -> bool:
    played = play(ENVIRONMENT, task, script)
    return ENVIRONMENT.success(task, played.turns, played.terminal)


def agents(task: Task) -> dict[str, bool]:
    """Whether each of three agents succeeds: one that does nothing, one that empties every file, the reference."""
    empty = write_all(dict.fromkeys(task.initial_state["files"], b""))
    return {
        "no-op": won(task, [SUBMIT]),
        "empty": won(task, [empty, SUBMIT]),
        "gold": won(task, [*gold_edits(task), SUBMIT]),
    }


def controls(task: Task) -> dict[str, bool | None]:
    lists = ENVIRONMENT.lists(task)
    kinds = ["gold", "empty", *task.hidden["controls"]]
    return {kind: is_success(ENVIRONMENT.trial(task, tree_of(task, kind)), *lists) for kind in kinds}


EXPECTED = {"no-op": False, "empty": False, "gold": True}
CONTROLS = {"gold": True, "empty": False, "step_removed": False, "surface_only": False, "other_form": True}


@pytest.mark.parametrize("task", SAMPLE, ids=lambda task: task.key)
def test_agents_and_controls_on_a_task_of_each_split(task: Task) -> None:
    assert agents(task) == EXPECTED and controls(task) == CONTROLS


@pytest.mark.slow
def test_agents_and_controls_on_every_task() -> None:
    """No-op and empty-artefact agents succeed on 0 % of the tasks, the reference under the policy's tools on all."""
    assert {task.key: agents(task) for task in TASKS} == {task.key: EXPECTED for task in TASKS}
    assert {task.key: controls(task) for task in TASKS} == {task.key: CONTROLS for task in TASKS}


def test_a_freeze_looks_at_id_and_version_of_the_reward_alone() -> None:
    require("code_repair", {}, "code_repair", "1.0.0")
    with pytest.raises(EnvironmentFault, match=r"expected 2\.0\.0, as the plan says"):
        require("code_repair", {}, "code_repair", "2.0.0")


@pytest.mark.slow
def test_it_passes_the_conformance_suite() -> None:
    report = examine(Subject("code_repair", {}))
    assert report.ok, report.failures()
