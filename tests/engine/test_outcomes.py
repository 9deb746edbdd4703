"""Fatal, injections, invariants and eligibility, by hand.

A letter is a turn: s success, f failure, F Finish, p parse error, u unmatched final ToolAction.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.contracts.records import (
    ALL_EQUAL,
    ALL_RIGHT,
    ALL_WRONG,
    BUDGET_EXHAUSTED,
    FINISH,
    INFRASTRUCTURE_INVALID,
    POLICY_ERROR,
    REALIZED,
    SIGNAL,
    UNREACHED,
    VALID,
    ObservationRecord,
    RewardRecord,
    ToolCallRecord,
    TrajectoryRecord,
    TurnRecord,
)
from worker.engine.outcomes import (
    eligibility,
    fatal_decisions,
    injection_records,
    outcome_facts,
    relation_fault,
    signal_kind,
)


def turns(pattern: str, injected: tuple[int, ...] = ()) -> list[TurnRecord]:
    found, ordinal = [], 0
    for decision, letter in enumerate(pattern):
        call = observation = None
        if letter in "sfu":
            executed, hit = letter != "u", ordinal in injected
            call = ToolCallRecord(
                ordinal, "look", {"key": "a"}, executed, executed and not hit, False, executed or None
            )
            ordinal += 1
            if executed:
                status = "ok" if letter == "s" else "timeout"
                observation = ObservationRecord(status, None if letter == "s" else True, hit, "text", {})
        kind = {"F": "finish", "p": "unparseable"}.get(letter, "tool")
        found.append(
            TurnRecord(
                decision,
                decision - 1 if decision else None,
                "main",
                f"{decision:064d}",
                5,
                2,
                2,
                kind,
                "no action" if letter == "p" else None,
                None,
                letter,
                call,
                {"answer": ""} if letter == "F" else None,
                observation,
                0,
                "s",
                "s",
            )
        )
    return found


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("fffF", (0, 2)),  # confirmed by the third failure
        ("ffF", (None, None)),  # two are not enough
        ("ffsfF", (None, None)),  # broken by a success
        ("ffsfffF", (3, 5)),  # the count starts again after it
        ("sffff", (1, 3)),  # later failures move nothing
        ("ffp", (None, None)),  # a parser error never counts
        ("ffu", (None, None)),  # nor does the unmatched final action
        ("fffu", (0, 2)),  # and it undoes nothing
    ],
)
def test_fatal(pattern: str, expected: tuple[int | None, int | None]) -> None:
    assert fatal_decisions(turns(pattern)) == expected


def test_facts_of_a_recovered_fatal() -> None:
    """s f f f s F: depth 5, three failures, Fatal 1 to 3, continued, recovered by the call at 4."""
    facts = outcome_facts(turns("sfffsF"), FINISH, False)
    assert (facts.tool_depth, facts.failures_seen, facts.fatal_start, facts.fatal_confirmed) == (5, 3, 1, 3)
    assert facts.continued_after_fatal is True and facts.recovered is True and facts.exposed
    assert facts.finished and facts.premature_finish is False


def test_facts_that_do_not_apply_are_none() -> None:
    """s u, budget spent: no failure, so neither recovery nor Fatal; not finished, so not premature."""
    facts = outcome_facts(turns("su"), BUDGET_EXHAUSTED, True)
    assert (facts.recovered, facts.fatal_start, facts.continued_after_fatal, facts.premature_finish) == (None,) * 4
    assert facts.unmatched_final_action and facts.tool_depth == 1 and facts.parser_valid


def test_fatal_without_another_decision_did_not_continue() -> None:
    assert outcome_facts(turns("fff"), BUDGET_EXHAUSTED, None).continued_after_fatal is False


def test_injections_are_matched_by_tool_call_ordinal() -> None:
    """Scheduled 0, 1, 3; calls 0 to 2 happen: 0 and 1 realized at their decisions, 3 unreached."""
    records = injection_records((0, 1, 3), turns("ffsF", injected=(0, 1)))
    assert [(item.ordinal, item.state, item.decision) for item in records] == [
        (0, REALIZED, 0),
        (1, REALIZED, 1),
        (3, UNREACHED, None),
    ]


def test_unmatched_final_action_realizes_nothing() -> None:
    """Ordinal 1 is emitted on the last decision and never executed: scheduled_but_unreached."""
    assert injection_records((1,), turns("su"))[0].state == UNREACHED


def test_relation_admits_one_unmatched_action_of_a_spent_budget() -> None:
    assert relation_fault(turns("ssu"), BUDGET_EXHAUSTED) is None
    fault = relation_fault(turns("ssu"), FINISH)
    assert fault is not None and fault[0] == 2 and "where the budget ends" in fault[1]
    fault = relation_fault(turns("sus"), BUDGET_EXHAUSTED)
    assert fault is not None and fault[0] == 1


def test_relation_names_the_first_break() -> None:
    broken = turns("ss")
    broken[1] = replace(broken[1], observation=None)
    assert relation_fault(broken, BUDGET_EXHAUSTED) == (
        1,
        "Observation: got executed=True, expected one Observation a call",
    )
    broken = turns("ss")
    broken[0] = replace(broken[0], tool_call=replace(broken[0].tool_call, ordinal=4))  # type: ignore[type-var]
    fault = relation_fault(broken, BUDGET_EXHAUSTED)
    assert fault is not None and "tool call ordinal: got 4, expected 0" in fault[1]


def slot(number: int, total: float | None = 0.5, **changes: object) -> TrajectoryRecord:
    reward = None if total is None else RewardRecord("r", "1", 1.0, (), total)
    base = TrajectoryRecord(
        f"t{number}",
        number,
        "1",
        "task",
        "control",
        VALID,
        None,
        FINISH,
        tuple(turns("sF")),
        (),
        outcome_facts(turns("sF"), FINISH, False),
        reward,
        True,
        "d/1",
        (),
        "state",
        "state",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_complete_group_is_eligible() -> None:
    assert eligibility([slot(0), slot(1)], 2) == (True, None)


def test_policy_failure_is_a_valid_outcome() -> None:
    """A policy error has reward 0 and does not reject its group; infrastructure does."""
    failed = slot(1, 0.0, terminal=POLICY_ERROR, turns=tuple(turns("p")))
    assert eligibility([slot(0), failed], 2)[0]
    broken = slot(1, None, status=INFRASTRUCTURE_INVALID, invalid_reason="environment: down", terminal=None)
    assert eligibility([slot(0), broken], 2) == (False, "slot 1: infrastructure_invalid (environment: down)")


def test_incomplete_group_is_never_shrunk() -> None:
    assert eligibility([slot(0)], 2) == (False, "incomplete: got 1 trajectories, expected 2")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (slot(1, float("nan")), "slot 1: got no finite reward"),
        (slot(1, turns=()), "slot 1: got no turn"),
        (slot(1, initial_state_sha256="other"), "initial state: got 2 values"),
        (slot(1, reward=RewardRecord("r", "2", 1.0, (), 0.5)), "reward version: got 2 values"),
    ],
)
def test_one_bad_slot_rejects_the_group(bad: TrajectoryRecord, reason: str) -> None:
    eligible, found = eligibility([slot(0), bad], 2)
    assert not eligible and found is not None and found.startswith(reason)


def test_kinds_of_zero_variance() -> None:
    assert signal_kind(0.1, [True, False]) == SIGNAL
    assert signal_kind(0.0, [True, True]) == ALL_RIGHT
    assert signal_kind(0.0, [False, False]) == ALL_WRONG
    assert signal_kind(1e-12, [True, False]) == ALL_EQUAL
