"""What a trace says of each token is computed again: a wrong mask, value, ratio or loss is named."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evidence.checks.traces import check_trace_values
from evidence.report import StepLog, VerifyReport
from workbench.contracts.records import StepRecord, TrajectoryCredit, UpdateRecord
from workbench.tracefile import Trace

OBJECTIVE = {"credit": "fatal_suffix", "aggregation": "trajectory_balanced", "fixed_length": None,
             "clip_low": 0.2, "clip_high": 0.2}  # fmt: skip
OLD = np.array([-0.5, -0.25, -1.0], np.float32)


def _trace(**changes: Any) -> Trace:
    """Three tokens of decisions 0, 1, 2; Fatal from decision 1: one token is kept. Ratio 1 throughout."""
    values: dict[str, Any] = {
        "decisions": array("i", [0, 1, 2]), "old_logprobs": array("f", OLD), "new_logprobs": array("f", OLD),
        "ratios": array("f", [1.0] * 3), "clipped": array("B", [0] * 3), "entropies": array("f", [0.5] * 3),
        "is_credited": array("B", [1, 0, 0]), "advantages": array("f", [-0.75, 0.0, 0.0]),
    }  # fmt: skip
    return Trace("t", 0, 0.75, None, **{**values, **changes})


def _problems(trace: Trace | None, objective: dict[str, Any] = OBJECTIVE, **step: Any) -> set[tuple[str, str]]:
    """Problems of one update of one trajectory; its loss is -(1 * -0.75) / 1 = 0.75."""
    credit = TrajectoryCredit("t", "g", -0.75, 3, 1, 2, True, 1, None, None)
    record = replace(StepRecord(0, 0, 0, 0.75, 1.0, 0.1, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1, 2, 1), **step)
    update = UpdateRecord(
        "u", "r", "p", 0, 0, "a", "b", None, "o", ("g",), ("g",), "d", "l", objective, {"minibatches": 1}, (credit,),
        (record,), (), None, False, None, None,
    )  # fmt: skip
    report = VerifyReport({6: "captures"})
    frames = {} if trace is None else {(0, "t"): trace}
    check_trace_values(StepLog(report, 6), update, frames, OLD, {"t": [0, 1, 2]})
    return {(item.table.removeprefix("runs_"), item.column) for item in report.problems}


def test_a_right_trace_has_no_problem() -> None:
    assert _problems(_trace()) == set()


def test_a_wrong_mask_is_found() -> None:
    """A token behind the start of the Fatal is trained."""
    found = _problems(_trace(is_credited=array("B", [1, 1, 0])))
    assert ("traceframe", "is_credited") in found and ("updatestep", "trained_tokens") in found


def test_the_rule_decides_the_mask() -> None:
    """The same trace under vanilla: every token should be trained."""
    found = _problems(_trace(), {**OBJECTIVE, "credit": "vanilla"})
    assert {
        ("traceframe", "is_credited"),
        ("traceframe", "advantages"),
        ("trajectorycredit", "trained_tokens"),
    } <= found


def test_a_clamped_advantage_is_zero_on_the_kept_prefix() -> None:
    """One-sided clamp: the negative advantage becomes 0, and the loss with it."""
    clamp = {**OBJECTIVE, "credit": "one_sided_clamp"}
    assert ("traceframe", "advantages") in _problems(_trace(), clamp)
    assert _problems(_trace(advantages=array("f", [0.0] * 3)), clamp, loss=0.0) == set()


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"decisions": array("i", [0, 0, 2])}, "decisions"),
        ({"advantages": array("f", [0.75, 0.0, 0.0])}, "advantages"),
        ({"old_logprobs": array("f", [-0.4, -0.25, -1.0])}, "old_logprobs"),
        ({"new_logprobs": array("f", [-0.4, -0.25, -1.0])}, "new_logprobs"),
        ({"ratios": array("f", [1.1, 1.0, 1.0])}, "ratios"),
        ({"clipped": array("B", [1, 0, 0])}, "clipped"),
    ],
)
def test_a_wrong_value_is_found(changes: dict[str, Any], column: str) -> None:
    assert ("traceframe", column) in _problems(_trace(**changes))


@pytest.mark.parametrize("step", [{"loss": 0.7501}, {"masked_tokens": 1}, {"kl_k3": 0.01}, {"entropy": 0.6}])
def test_a_wrong_sum_of_a_step_is_found(step: dict[str, Any]) -> None:
    assert ("updatestep", next(iter(step))) in _problems(_trace(), **step)


def test_a_missing_frame_is_found() -> None:
    assert ("traceframe", "frame_sha256") in _problems(None)
