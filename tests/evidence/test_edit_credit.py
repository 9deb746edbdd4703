"""verify computes credit from edits again, from the trials that an update names, and says what differs."""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.db import transaction

from evidence.checks.edit_credit import check_edit_credit, term_of
from evidence.checks.rebuilt import expected_values
from evidence.checks.traces import check_trace_values
from evidence.report import StepLog, VerifyReport
from runs.actions.documents import store_document
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.records import (
    EditCreditRecord,
    MetricRecord,
    StepRecord,
    TrajectoryCredit,
    UpdateRecord,
)
from workbench.contracts.trials import TRIALS, GroupTrials, InterventionRecord, trials_uid
from workbench.contracts.wire import record_bytes
from workbench.tracefile import Trace
from worker.engine.edit_credit import edit_credit

GROUP = str(uuid.UUID(int=1))
DECISIONS = {"t": [0, 0, 0, 1, 1, 2, 2, 2, 2, 2]}  # L = 10; decision 1 has m = 2
OBJECTIVE = {"aggregation": "trajectory_balanced", "fixed_length": None, "clip_low": 0.2, "clip_high": 0.2,
             "edit_weight": 0.4, "edit_cap": 0.25}  # fmt: skip
KINDS = {"B": "edit_broadcast", "M": "edit_localised", "E": "edit_terminal"}
# lambda D L / m = 0.4 * 0.25 * 5 = 0.5, cap 0.25: s = 1/2. M: 0.25 on two tokens; B: 0.05 on ten. E: 0.4 * 0.5 * 5 = 1.
TERMS = {
    "B": EditCreditRecord("B", "applied", 1, 10, 2, 0.25, 0.5, True, 0.5, 0.5, 0.025),
    "M": EditCreditRecord("M", "applied", 1, 10, 2, 0.25, 0.5, True, 0.5, 0.5, 0.125),
    "E": EditCreditRecord("E", "applied", 1, 10, 2, None, None, True, 0.5, 0.5, 0.125),
}
ADDED = {"B": [0.05] * 10, "M": [0.0] * 3 + [0.25] * 2 + [0.0] * 5, "E": [0.0] * 3 + [0.25] * 2 + [0.0] * 5}


def intervention(**changes: Any) -> InterventionRecord:
    """Turn 1 chosen; U 0.75 with it and 0.5 without."""
    base = InterventionRecord(
        "t", 0, "available", None, (), 1, 10, 2, None, None, None, None, None, 0.75, 0.5, 0.25, 0, 0, 0, 0
    )
    return replace(base, **changes)


def trials(*items: InterventionRecord) -> GroupTrials:
    return GroupTrials(
        trials_uid(GROUP), GROUP, "r", "p", 0, "train", "v/1", "1", {"mode": "execute"}, ("a",), (), None, None,
        items, (),
    )  # fmt: skip


def update(arm: str, term: EditCreditRecord | None, named: dict[str, str], **changes: Any) -> UpdateRecord:
    credit = TrajectoryCredit("t", GROUP, 0.5, 10, 10, 0, False, None, None, None, edit=term)
    objective = {**OBJECTIVE, "credit": KINDS.get(arm, "vanilla")}
    base = UpdateRecord(
        "u", "r", "p", 0, 0, "a", "b", None, "o", (GROUP,), (GROUP,), "d", "l", objective, {"minibatches": 1},
        (credit,), (), (), None, False, None, None, trials=named,
    )  # fmt: skip
    return replace(base, **changes)


@pytest.fixture
def stored(db: None) -> Callable[..., dict[str, str]]:
    """Stores a trials document; what an update that read it names."""

    def store(*items: InterventionRecord) -> dict[str, str]:
        data = record_bytes(trials(*items))
        with transaction.atomic():
            store_document(TRIALS, trials_uid(GROUP), data)
        return {GROUP: sha256_hex(data)}

    return store


def found(record: UpdateRecord) -> tuple[set[tuple[str, str]], Any]:
    report = VerifyReport({6: "captures"})
    terms = check_edit_credit(StepLog(report, 6), record, DECISIONS)
    return {(item.table.removeprefix("runs_"), item.column) for item in report.problems}, terms


@pytest.mark.parametrize("arm", ["B", "M", "E"])
def test_right_credit_has_no_problem(stored: Callable[..., dict[str, str]], arm: str) -> None:
    problems, terms = found(update(arm, TERMS[arm], stored(intervention())))
    assert problems == set()
    assert terms["t"] == pytest.approx(ADDED[arm])


@pytest.mark.parametrize("field", ["signed_mass", "l1_mass", "squared_mass", "shrinkage", "difference", "capped",
                                   "selected", "tokens", "selected_tokens", "status", "arm"])  # fmt: skip
def test_each_forged_field_is_named(stored: Callable[..., dict[str, str]], field: str) -> None:
    value = getattr(TERMS["M"], field)
    forged: Any = "other" if isinstance(value, str) else not value if isinstance(value, bool) else value + 1
    problems, _ = found(update("M", replace(TERMS["M"], **{field: forged}), stored(intervention())))
    assert problems == {("trajectorycredit", f"edit.{field}")}


def test_unavailable_is_no_difference_of_zero(stored: Callable[..., dict[str, str]]) -> None:
    named = stored(intervention(status="trial_incomplete", without_utility=None, difference=None))
    withheld = EditCreditRecord("M", "trial_incomplete", 1, 10, 2, None, None, False, 0.0, 0.0, 0.0)
    assert found(update("M", withheld, named))[0] == set()
    zero = replace(withheld, status="applied", difference=0.0, shrinkage=1.0)
    assert found(update("M", zero, named))[0] == {
        ("trajectorycredit", "edit.status"), ("trajectorycredit", "edit.difference"),
        ("trajectorycredit", "edit.shrinkage"),
    }  # fmt: skip


def test_the_terminal_arm_is_the_same_for_another_difference(stored: Callable[..., dict[str, str]]) -> None:
    named = stored(intervention(without_utility=-0.25, difference=1.0))
    assert found(update("E", TERMS["E"], named))[0] == set()


def test_other_or_missing_trials_are_named(stored: Callable[..., dict[str, str]]) -> None:
    stored(intervention())
    column = f"trials.{GROUP}"
    assert ("updatebatch", column) in found(update("M", TERMS["M"], {GROUP: "0" * 64}))[0]
    assert ("updatebatch", column) in found(update("M", TERMS["M"], {}))[0]
    assert ("trajectorycredit", "edit") in found(update("M", TERMS["M"], {}))[0]


def test_an_update_without_its_terms_is_named(stored: Callable[..., dict[str, str]]) -> None:
    assert found(update("M", None, stored(intervention())))[0] == {("trajectorycredit", "edit")}


def test_the_plain_arm_has_no_terms(db: None) -> None:
    assert found(update("O", None, {})) == (set(), None)
    assert found(update("O", TERMS["M"], {}))[0] == {("trajectorycredit", "edit")}


def test_a_group_that_is_counted_as_trained_by_edits_needs_rows_and_mass(stored: Callable[..., dict[str, str]]) -> None:
    record = update("M", TERMS["M"], stored(intervention()), edit_only_group_uids=(GROUP,))
    assert found(record)[0] == {("updatebatch", "edit_only_group_uids")}  # no row says that it has no variance


@pytest.mark.parametrize("arm", ["B", "M", "E"])
@pytest.mark.parametrize("difference", [0.25, -1.5, 0.0, None])
@pytest.mark.parametrize("selected", [None, 0, 1, 7])
def test_two_writings_of_the_equations_agree(arm: str, difference: float | None, selected: int | None) -> None:
    """The engine's and verify's, over signs, missing D, no selection and a selected turn without tokens."""
    if difference is not None and selected is None:
        return  # a D has a block
    status = "available" if difference is not None else "trial_incomplete"
    item = intervention(selected=selected, difference=difference, status=status)
    credit = TrajectoryCredit("t", GROUP, -0.7, 10, 10, 0, False, None, None, None)
    expected, added = term_of(arm, credit, np.asarray(DECISIONS["t"]), item, OBJECTIVE)
    read = None if arm == "E" else difference
    missing = selected is None if arm == "E" else read is None
    made = edit_credit(
        arm, advantage=-0.7, decisions_T=DECISIONS["t"], selected=selected, difference=read,
        unavailable=status if missing else None, weight=0.4, cap=0.25,
    )  # fmt: skip
    assert made.coefficients_T == pytest.approx(added.tolist(), abs=1e-15)
    for name in ("status", "tokens", "selected_tokens", "difference", "capped"):
        assert getattr(made, name) == getattr(expected, name), name
    for name in ("signed_mass", "l1_mass", "squared_mass", "shrinkage"):
        assert getattr(made, name) == pytest.approx(getattr(expected, name), abs=1e-12), name


def test_a_trace_must_show_advantage_plus_term() -> None:
    """Ratio 1: the loss is minus the mean of advantage plus term, -(0.5 * 10 + 0.5) / 10."""
    old = np.full(10, -0.5, np.float32)

    def problems(advantages: list[float]) -> set[str]:
        trace = Trace(
            "t", 0, -0.55, None, array("i", DECISIONS["t"]), array("f", old), array("f", old), array("f", [1.0] * 10),
            array("B", [0] * 10), array("f", [0.5] * 10), array("B", [1] * 10), array("f", advantages),
        )  # fmt: skip
        step = StepRecord(0, 0, 0, -0.55, 1.0, 0.1, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 10, 0, 1)
        record = update("M", TERMS["M"], {}, steps=(step,))
        report = VerifyReport({6: "captures"})
        terms = {"t": np.array(ADDED["M"])}
        check_trace_values(StepLog(report, 6), record, {(0, "t"): trace}, old, DECISIONS, terms)
        return {item.column for item in report.problems}

    assert problems([0.5 + value for value in ADDED["M"]]) == set()
    assert "advantages" in problems([0.5] * 10)


def test_metrics_of_edits_are_rebuilt_from_the_record() -> None:
    record = update("M", TERMS["M"], {}, edit_only_group_uids=(GROUP,))

    def value(name: str, **labels: str) -> Any:
        item = MetricRecord(f"l3.{name}/1", "train", "train", {"arm": "M", **labels}, 0, 1, 0, 0, None, None, "u")
        return expected_values(item, record)

    assert value("edit_signed_mass") == value("edit_l1_mass") == [(0.5, 1)]
    assert value("edit_squared_mass") == [(0.125, 1)] and value("edit_shrinkage") == [(0.5, 1)]
    assert value("edit_capped_share") == value("edit_nonzero_share") == value("edit_only_groups") == [(1.0, 1)]
    assert value("edit_selected_share") == [(0.2, 1)]
    assert value("edit_unavailable_share", reason="format_error") == [(0.0, 1)]
