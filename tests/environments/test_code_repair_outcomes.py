"""Reward, success, premature submission and trees of repairs: by hand, and in the sandbox on real episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.environments.repairs import (
    ENVIRONMENT,
    SUBMIT,
    TEST,
    broken_files,
    edit,
    gold,
    gold_edits,
    write_all,
)
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.records import BUDGET_EXHAUSTED, FINISH, POLICY_ERROR
from workbench.contracts.rewards import utility_of
from worker.engine.counterfactual import edit_blocks, eligible_blocks
from worker.environments.base import FinishAction, Task, ToolAction, artefacts_of
from worker.environments.code_repair import environment as module
from worker.environments.code_repair.environment import CodeRepair
from worker.environments.code_repair.reward import compute_reward, is_repaired
from worker.environments.conformance.episodes import Episode, play
from worker.environments.evidence_search.environment import EvidenceSearch
from worker.sandbox.base import SandboxFault
from worker.verifiers.trial import Observed, TrialReport, tree_sha256

LISTS = (("f1", "f2", "f3", "f4"), ("p1", "p2"))
TASK = ENVIRONMENT.tasks()[0]


def report(passed: str, *, complete: bool = True) -> TrialReport:
    """A report in which the named tests pass and the others fail."""
    names = [*LISTS[0], *LISTS[1]]
    observed = tuple(
        Observed(name, "PASSED", None, "") if name in passed.split() else Observed(name, "FAILED", "timeout", "")
        for name in names
    )
    unknown = None if complete else "the driver ended"
    return TrialReport("v/1", "0" * 64, complete, observed, unknown, 0, None, "", "", 0.0, 0.0, 0.0, {})


@pytest.mark.parametrize(
    ("passed", "terminal", "utility", "total", "success"),
    [
        ("f1 f2 f3 f4 p1 p2", FINISH, 1.0, 1.0, True),
        ("f1 f2 f3 f4 p1 p2", BUDGET_EXHAUSTED, 1.0, 1.0, True),  # the tree that was reached is judged
        ("f1 f2 f3 f4 p1 p2", POLICY_ERROR, 1.0, 0.0, False),  # min(0, 1)
        ("f1 p1 p2", FINISH, 0.25, 0.25, False),
        ("f1 p1 p2", POLICY_ERROR, 0.25, 0.0, False),
        ("f1 f2 f3 f4 p1", FINISH, 0.0, 0.0, False),  # 1 - 1
        ("f1 p1", FINISH, -0.75, -0.75, False),  # 1/4 - 1
        ("f1 p1", POLICY_ERROR, -0.75, -0.75, False),  # min(0, -0.75)
        ("", FINISH, -1.0, -1.0, False),
        ("p1 p2", FINISH, 0.0, 0.0, False),
    ],
)
def test_reward_and_success_by_hand(passed: str, terminal: str, utility: float, total: float, success: bool) -> None:
    found = compute_reward(report(passed), LISTS, terminal)
    assert (found.reward_id, found.version, found.gate) == ("code_repair", "1.0.0", 1.0)
    assert found.total == pytest.approx(total) and utility_of(found) == pytest.approx(utility)
    assert is_repaired(report(passed), LISTS, terminal) is success
    detail = found.components[0].detail
    assert detail["observed"]["f1"] == ("PASSED" if "f1" in passed else "FAILED:timeout")
    assert (detail["verifier"], detail["tree_sha256"]) == ("v/1", "0" * 64)
    assert [part.name for part in found.components] == ["fail_to_pass", "regression", "format_error"]


def test_an_incomplete_report_is_no_reward_and_no_failure() -> None:
    for judge in (compute_reward, is_repaired):
        with pytest.raises(EnvironmentFault, match="trial: the driver ended"):
            judge(report("f1", complete=False), LISTS, FINISH)


def outcome(task: Task, script: Sequence[ToolAction | FinishAction], **settings: int) -> tuple[Episode, float, bool]:
    played = play(ENVIRONMENT, task, script, **settings)  # type: ignore[arg-type]
    record = ENVIRONMENT.reward(task, played.turns, played.terminal)
    assert record.components[0].detail["tree_sha256"] == tree_sha256(final_tree(task, played))
    return played, record.total, ENVIRONMENT.success(task, played.turns, played.terminal)


def final_tree(task: Task, played: Episode) -> dict[str, bytes]:
    trees, contents = ENVIRONMENT.trees(task, played.turns)
    return {path: contents[sha256] for path, sha256 in trees[-1].items()}


def test_real_episodes_from_repair_to_ruin() -> None:
    """The gold edits repair; one of them is a part; without a submission the tree counts; a format error forfeits."""
    edits, first = gold_edits(TASK), broken_files(TASK)[0]
    assert len(edits) >= 2
    played, total, success = outcome(TASK, [TEST, *edits, TEST, SUBMIT])
    assert (total, success, played.terminal) == (1.0, True, FINISH)
    assert not ENVIRONMENT.is_premature(TASK, played.turns)
    played, total, success = outcome(TASK, [*edits[:1], SUBMIT])
    assert 0 < total < 1 and not success
    played, total, success = outcome(TASK, [*edits, TEST], max_decisions=len(edits) + 1)
    assert (total, success, played.terminal) == (1.0, True, BUDGET_EXHAUSTED)
    played, total, success = outcome(TASK, edits)
    assert (total, success, played.terminal) == (0.0, False, POLICY_ERROR)
    whole = edit(edits=[action.arguments for action in edits])
    assert outcome(TASK, [whole, SUBMIT])[1:] == (1.0, True)
    played, total, success = outcome(TASK, [write_all({first: b"raise SystemExit(0)\n"}), SUBMIT])
    assert total < 1 and not success
    played, total, success = outcome(TASK, [write_all(dict.fromkeys(gold(TASK), b"")), SUBMIT])
    assert (total, success) == (-1.0, False)


def test_submitting_without_a_change_is_premature() -> None:
    path = broken_files(TASK)[0]
    same = edit(path=path, text=TASK.initial_state["files"][path])
    for script in ([SUBMIT], [TEST, SUBMIT], [same, SUBMIT], [edit(path="none.py", line=1, text=""), SUBMIT]):
        played, total, success = outcome(TASK, script)
        assert ENVIRONMENT.is_premature(TASK, played.turns) and total == 0.0 and not success
    unfinished = play(ENVIRONMENT, TASK, [TEST])
    assert not ENVIRONMENT.is_premature(TASK, unfinished.turns)


def test_trees_are_those_before_each_decision_and_the_final_one() -> None:
    """Tests, reads, a refused edit and an injected failure change nothing; one call may change two files."""
    first, second, *_ = gold_edits(TASK)
    both = edit(edits=[{"path": "n.py", "text": "N = 1\n"}, {"path": "tests/t.py", "text": "T = 1\n"}])
    refused = edit(path="none.py", line=1, text="")
    played = play(ENVIRONMENT, TASK, [first, TEST, refused, both, second, SUBMIT], injected=(4,))
    trees, contents = ENVIRONMENT.trees(TASK, played.turns)
    assert len(trees) == len(played.turns) + 1 == 7
    assert trees[0] == {path: sha256_hex(text.encode()) for path, text in TASK.initial_state["files"].items()}
    assert trees[1] == trees[2] == trees[3] != trees[0] and trees[4] == trees[5] == trees[6] != trees[3]
    assert all(sha256_hex(data) == sha256 for sha256, data in contents.items())
    assert {sha256 for tree in trees for sha256 in tree.values()} == set(contents)
    assert [(block.decision, block.paths) for block in edit_blocks(trees)] == [
        (0, (first.arguments["path"],)),
        (3, ("n.py", "tests/t.py")),
    ]
    assert [block.decision for block in eligible_blocks(trees, ENVIRONMENT.is_test_path)] == [0, 3]
    tests_only = play(ENVIRONMENT, TASK, [edit(path="test_x.py", text="T = 1\n"), SUBMIT])
    only = ENVIRONMENT.trees(TASK, tests_only.turns)[0]
    assert len(edit_blocks(only)) == 1 and not eligible_blocks(only, ENVIRONMENT.is_test_path)


def test_a_record_that_says_another_state_is_refused() -> None:
    played = play(ENVIRONMENT, TASK, [gold_edits(TASK)[0], SUBMIT])
    for field in ("state_before_sha256", "state_after_sha256"):
        turns = (replace(played.turns[0], **{field: "1" * 64}), *played.turns[1:])  # type: ignore[arg-type]
        with pytest.raises(EnvironmentFault, match=r"turn 0: got state .* expected 1{64} as recorded"):
            ENVIRONMENT.trees(TASK, turns)
        with pytest.raises(EnvironmentFault, match="turn 0"):
            ENVIRONMENT.reward(TASK, turns, FINISH)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/a.py", True),
        ("test/a.txt", True),
        ("a/tests/b/c.py", True),
        ("test_a.py", True),
        ("a/b_test.py", True),
        ("conftest.py", True),
        ("a.py", False),
        ("latest/a.py", False),
        ("contest.py", False),
        ("test_a.txt", False),
    ],
)
def test_test_paths(path: str, expected: bool) -> None:
    assert ENVIRONMENT.is_test_path(path) is expected


def test_artefacts_are_a_part_that_an_environment_has_or_has_not() -> None:
    assert artefacts_of(ENVIRONMENT) is ENVIRONMENT and artefacts_of(EvidenceSearch({})) is None
    assert ENVIRONMENT.lists(TASK) == (tuple(TASK.hidden["fail_to_pass"]), tuple(TASK.hidden["pass_to_pass"]))
    assert ENVIRONMENT.verifier == "hidden_calls/2"


def test_every_reward_is_a_trial_of_its_own_and_success_reads_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rewards of one tree: two trials. A sandbox that fails is nobody's result; success alone runs one trial."""
    environment, trials = CodeRepair({}), []
    real = module.run_trial

    def counted(sandbox: object, files: Mapping[str, bytes], tests: object) -> TrialReport:
        trials.append(dict(files))
        return real(sandbox, files, tests)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "run_trial", counted)
    played = play(ENVIRONMENT, TASK, [SUBMIT])
    assert environment.reward(TASK, played.turns, FINISH) == environment.reward(TASK, played.turns, FINISH)
    assert len(trials) == 2
    assert environment.success(TASK, played.turns, FINISH) is False and len(trials) == 2
    assert CodeRepair({}).success(TASK, played.turns, FINISH) is False and len(trials) == 3

    def broken() -> object:
        raise SandboxFault("no sandbox here")

    monkeypatch.setattr(module, "get_sandbox", broken)
    with pytest.raises(EnvironmentFault, match="trial: no sandbox here"):
        environment.reward(TASK, played.turns, FINISH)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"seeds": 1}, "expected only"),
        ({"seed": 0}, "config.seed: got 0, expected a positive"),
        ({"seed": True}, "config.seed: got True"),
        ({"max_decisions": "14"}, "config.max_decisions"),
    ],
)
def test_a_configuration_that_it_does_not_know_is_refused(config: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        CodeRepair(config)
