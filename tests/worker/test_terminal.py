"""The summary of a study as text: which way differences go, what is counted, one sign between two facts."""

from __future__ import annotations

from typing import Any

import pytest

from runs.actions.closure import endpoint_results
from tests.runs.test_statistics_aggregate import build, item
from worker.terminal import compared, summary_text

# By task: parent 0.2 and 0.4, V 0.25 and 0.5, F 0.5 and 0.75. F − V is 0.25, V − parent 0.075, F − parent 0.325.
REWARDS = {None: (0.2, 0.4), "V": (0.25, 0.5), "F": (0.5, 0.75)}
RUN = {
    "arm": "V", "seed": "17", "state": "completed", "groups": 8, "eligible": 7, "with_signal": 5, "batches": 4,
    "updates": 8, "masked_tokens": 0, "reason": "budget spent",
}  # fmt: skip


def endpoint(kind: str) -> dict[str, Any]:
    return {
        "id": f"reward-{kind}", "metric": "reward", "condition": "standard", "split": "test",
        "definition": "mean reward", "unit": "reward", "direction": "none", "margin": None, "equivalence": None,
        "interval": 0.95,
        "compare": {"kind": kind, "arms": ["V", "F"]},
    }  # fmt: skip


def results() -> list[dict[str, Any]]:
    items = [item(f"t{n}", reward=value, arm=arm) for arm, values in REWARDS.items() for n, value in enumerate(values)]
    found = build(items, endpoints=[endpoint("pair"), endpoint("parent")], strict_pairs=[["V", "F"]])
    return endpoint_results(found)


def summary(**given: Any) -> dict[str, Any]:
    return {
        "plan": "small", "state": "closed", "reason": "", "plan_sha256": "ab", "runs": [], "evaluation": [],
        "endpoints": [], "closure": None, "wall_s": 1.0, **given,
    }  # fmt: skip


def test_a_difference_is_named_the_way_it_is_computed() -> None:
    found = {compared(result): result["difference"] for result in results()}
    assert found == pytest.approx({"F − V": 0.25, "V − parent": 0.075, "F − parent": 0.325})
    text = summary_text(summary(endpoints=results()))
    assert "  reward-pair F − V: +0.2500 [" in text and "  reward-parent V − parent: +0.0750 [" in text
    assert "V-F" not in text


def test_batches_and_optimizer_steps_are_told_apart() -> None:
    one = {**RUN, "batches": 1, "updates": 1, "masked_tokens": 1, "reason": ""}
    text = summary_text(summary(runs=[RUN, one], reason="every run ended"))
    assert text.splitlines()[0] == "small: closed; every run ended"
    assert (
        "  V seed 17: completed; 8 groups, 7 eligible, 5 with signal; 4 batches, 8 optimizer steps; 0 tokens masked; "
        "budget spent\n"
    ) in text
    assert "; 1 batch, 1 optimizer step; 1 token masked\n" in text and "updates" not in text
