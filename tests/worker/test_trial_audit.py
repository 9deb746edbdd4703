"""Step 10 of verify plays trees, blocks and the draw of a tried group again, without any test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evidence.report import UNAVAILABLE, NotChecked, StepLog, VerifyReport
from runs.actions.documents import store_document
from tests.engine import trial_world as world
from tests.engine.trial_world import BREAK_C, MEND_A, SUBMIT, Blobs, episode
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.trials import TRIALS, GroupTrials
from workbench.contracts.wire import parse_record, record_bytes
from workbench.management.commands.verify import _verdict
from worker import audit
from worker.engine.trials import run_group_trials

pytestmark = pytest.mark.django_db
VERSION = world.environment().version


def replayed(**changes: Any) -> dict[str, tuple[Any, Any]]:
    """What the replay names of a group whose first intervention (or the record itself) says something else."""
    record, store = world.group([episode(0, [MEND_A, BREAK_C, SUBMIT])], VERSION), Blobs()
    spec = world.specification(record, store, VERSION, mode="select")
    made = parse_record(GroupTrials, run_group_trials(spec, world.environment(), store).record_json.encode())
    whole = {name: changes.pop(name) for name in ("fail_to_pass", "unavailable", "seed") if name in changes}
    first = made.interventions[0]
    if changes.pop("hides", False):  # only the drawn block is named: the draw among the others leaves no trace
        changes["blocks"] = tuple(block for block in first.blocks if block.decision == first.selected)
    made = replace(made, interventions=(replace(first, **changes),), **whole)
    store_document(TRIALS, made.uid, record_bytes(made))
    found = audit._tried(record, world.TASK, world.environment())
    return {what: (expected, got) for _, what, expected, got in found}


def test_an_honest_group_replays() -> None:
    assert replayed() == {}


def test_what_differs_is_named() -> None:
    """A tree that the recorded actions do not lead to."""
    assert list(replayed(final_tree_sha256="0" * 64)) == ["intervention final_tree_sha256"]


def test_a_block_that_was_hidden_from_the_draw_is_named() -> None:
    assert list(replayed(hides=True)) == ["intervention blocks"]


def test_lists_of_another_task_are_named() -> None:
    assert replayed(fail_to_pass=("add",)) == {"trials fail_to_pass": (("add", "double"), ("add",))}


def test_a_group_that_was_never_tried_or_could_not_be_is_not_replayed() -> None:
    record = world.group([episode(0, [SUBMIT])], VERSION)
    assert list(audit._tried(record, world.TASK, world.environment())) == []
    assert replayed(unavailable="job errored", hides=True) == {}


def test_an_environment_without_artefacts_is_named() -> None:
    from worker.environments.evidence_search.environment import EvidenceSearch

    record, store = world.group([episode(0, [MEND_A, SUBMIT])], VERSION), Blobs()
    result = run_group_trials(world.specification(record, store, VERSION), world.environment(), store)
    made = parse_record(GroupTrials, result.record_json.encode())
    store_document(TRIALS, made.uid, result.record_json.encode())
    ((_, what, _, got),) = audit._tried(record, world.TASK, EvidenceSearch({}))
    assert (what, got) == ("trials", "evidence_search")


def test_what_cannot_be_computed_here_is_named_and_what_came_before_stands() -> None:
    """A difference that was found before the sandbox was missed, and why the rest was not checked."""

    def found() -> Any:
        yield "uid", "initial_state_sha256", "a", "b"
        raise EnvironmentFault("trial: sandbox: got no bwrap")

    assert list(audit._tolerant("uid", "replay", found())) == [
        ("uid", "initial_state_sha256", "a", "b"),
        ("uid", "replay", "computed again", NotChecked("trial: sandbox: got no bwrap")),
    ]


def test_recorded_actions_that_lead_elsewhere_are_a_problem_and_no_gap() -> None:
    """Trees need no sandbox: what they do not lead to is a disagreement."""
    record, store = world.group([episode(0, [MEND_A, SUBMIT])], VERSION), Blobs()
    result = run_group_trials(world.specification(record, store, VERSION), world.environment(), store)
    store_document(TRIALS, parse_record(GroupTrials, result.record_json.encode()).uid, result.record_json.encode())
    first = record.trajectories[0]
    turn = replace(first.turns[0], state_after_sha256="0" * 64)
    broken = replace(record, trajectories=(replace(first, turns=(turn, *first.turns[1:])),))
    ((_, what, _, got),) = audit._tried(broken, world.TASK, world.environment())
    assert what == "trials" and "0" * 64 in str(got) and not isinstance(got, NotChecked)


def test_a_report_with_a_gap_is_neither_verified_nor_at_fault() -> None:
    report = VerifyReport({10: "replay"})
    log = StepLog(report, 10)
    for severity, got in ((UNAVAILABLE, "no sandbox"), (UNAVAILABLE, "no sandbox")):
        log.problem("runs_trajectory", "uid", "replay", expected="computed again", got=got, severity=severity)
    assert not report.ok and report.faults == [] and report.as_json()["steps"][0]["unavailable"] == 2
    assert _verdict(report) == "NOT verified: 2 of it could not be checked on this machine"
    log.problem("runs_trajectory", "uid", "reward", expected=1, got=2)
    assert _verdict(report) == "NOT verified" and len(report.faults) == 1
