"""The conformance suite: what passes, and for each rule an environment that breaks it and is named for it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.own.example import CAREFUL, ENVIRONMENT
from workbench.contracts.errors import EnvironmentFault
from worker.environments.conformance import content
from worker.environments.conformance.examine import CHECKS, examine, require
from worker.environments.conformance.processes import children_ended
from worker.environments.conformance.subject import Subject

BROKEN = {
    "Lenient": ("configuration", "no_such_setting"),
    "OddSchema": ("tools", "dependentRequired"),
    "NoTrainSplit": ("tasks", "a train split"),
    "UnknownSplit": ("tasks", "'development', expected one of train"),
    "OneTaskTwice": ("tasks", "task again in test: got the same task as"),
    "Shuffled": ("tasks", "equal tasks in equal order"),
    "Leaks": ("hidden", r"hidden.orders\[0\].units = '\d\d' in it"),
    "RandomReset": ("reset", "it is not deterministic"),
    "TextObservation": ("steps", "got str, expected Observation"),
    "RetryableSuccess": ("steps", "retryable: got True"),
    "NotJson": ("steps", "facts: .*expected plain JSON values"),
    "Forgetful": ("snapshots", "expected the state of the snapshot"),
    "SharedFork": ("forks", "a call on the fork that changed its session"),
    "Skips": ("replays", "expected the stepped state"),
    "FinalFailure": ("failures", "expected a retryable failure"),
    "NeverEnds": ("budget", "after Finish: got accepted"),
    "OnlyTotal": ("reward", "expected every component stored"),
    "WrongTotal": ("reward", "expected gate \\* clip"),
    "Remembers": ("reward", "another reward the second time"),
    "EasyWin": ("outcomes", "True without a Finish"),
    "NoOrders": ("demonstrations", "none that calls order"),
    "Modest": ("demonstrations", "undemonstrated: got order"),
    "Garbled": ("demonstrations", "got 0% legal"),
    "GlobalRandom": ("purity", "a changed global state"),
    "HashOrder": ("purity", r"another process .*: instructions\(\): got .*, expected .* as here"),
    "StateOfProcess": ("purity", r"another process .*: task .*, script 1: state_label\(\): got \"pid \d+"),
    "Asserts": ("outcomes", r"AssertionError: assert session is None \(broken.py:\d+ in state_label\)"),
}
QUICK = ("hidden", "reset", "steps", "reward", "tasks", "tools")


def checks_of(*names: str) -> list:
    """Checks by name, in the order of the suite."""
    return [item for item in CHECKS if item[0].__name__ in names]


@pytest.mark.parametrize("name", ["evidence_search", ENVIRONMENT])
def test_bundled_environment_and_example_pass_every_check(name: str) -> None:
    report = examine(Subject(name, {}))
    assert report.ok, report.failures()
    assert [item.name for item in report.results] == [check.__name__ for check, _ in CHECKS]


def test_an_outside_reward_is_examined_in_place_of_the_environments_own() -> None:
    report = examine(Subject(ENVIRONMENT, {}, CAREFUL), checks_of("reward"))
    assert report.ok and report.results[0].detail.startswith("inventory.careful 1: ")


@pytest.mark.parametrize(("name", "check", "message"), [(name, *rest) for name, rest in BROKEN.items()])
def test_each_broken_rule_is_found_by_its_check(name: str, check: str, message: str) -> None:
    """The check fails on the broken class, with the message; the same check passes on the sound one."""
    (found,) = examine(Subject(f"tests.own.broken:{name}", {}), checks_of(check)).results
    assert found.ok is False
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(found.detail)


def test_a_failed_foundation_leaves_the_rest_unreached() -> None:
    report = examine(Subject("tests.own.broken:UnknownSplit", {}))
    states = {item.name: item.ok for item in report.results}
    assert states["tasks"] is False and states["reset"] is None and not report.ok


@pytest.mark.parametrize("name", [name for name, (check, _) in BROKEN.items() if check in QUICK])
def test_an_inspection_refuses_what_the_quick_checks_find(name: str) -> None:
    with pytest.raises(EnvironmentFault, match=BROKEN[name][1]):
        require(f"tests.own.broken:{name}", {}, "inventory.reward", "1")


def test_an_inspection_takes_the_example_and_refuses_another_reward_version() -> None:
    require(ENVIRONMENT, {}, "inventory.reward", "1")
    require("evidence_search", {}, "evidence_search.reward", "2.1")
    for name, reward in ((ENVIRONMENT, "inventory.reward"), ("evidence_search", "evidence_search.reward")):
        with pytest.raises(EnvironmentFault, match=r"reward.version: got .*, expected 9, as the plan says"):
            require(name, {}, reward, "9")
    with pytest.raises(EnvironmentFault, match=r"reward.id: got inventory.reward, expected other.reward"):
        require(ENVIRONMENT, {}, "other.reward", "1")


def test_a_class_without_the_interface_is_named_and_never_called() -> None:
    report = examine(Subject("tests.own.broken:Partial", {}))
    assert not report.ok and "without instructions, tools, reset" in report.results[0].detail
    for name in ("subprocess:Popen", "os:system"):
        assert "expected" in examine(Subject(name, {"args": 1})).results[0].detail


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_children_of_a_forking_environment_do_not_outlive_the_check(tmp_path: Path) -> None:
    """Each step forks a child that would live for an hour; here and in the second process all are gone at the end."""
    pids = tmp_path / "pids"
    started = time.monotonic()
    with children_ended():
        report = examine(Subject("tests.own.broken:Forks", {"pids": str(pids)}), checks_of("steps", "purity"))
    assert report.ok, report.failures()
    assert time.monotonic() - started < 60
    born = [int(line) for line in pids.read_text().split()]
    assert len(born) > 4 and not [pid for pid in born if alive(pid)]


def test_a_process_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "SECONDS", 0.01)
    (found,) = examine(Subject(ENVIRONMENT, {}), checks_of("purity")).results
    assert found.ok is False and "got no end within 0.01 seconds" in found.detail
