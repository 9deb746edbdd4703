"""The run's sentence: losses, entropy, held-out evaluation, from plain numbers."""

from __future__ import annotations

import re

import pytest

from runs.presenters.evaluation import CellView, Rate
from runs.presenters.verdict import UNSTABLE, _held_out, _losses, capped, entropy_change, held_out_pairs, join_clauses
from runs.readings.fired import FiredWarning
from runs.readings.table import BY_ID


def _plain(text: object) -> str:
    return re.sub(r"<[^>]+>", "", str(text))


def _cell(n: int, of: int, planned: int, condition: str = "standard", split: str = "test") -> CellView:
    rates = {"success": Rate("success", "success", n, of), "recovered": Rate("recovered", "r", 0, of)}
    rates["recovered_exposed"] = Rate("recovered_exposed", "r", 0, 0)
    return CellView(condition, split, planned, of, rates, 0.5, 1.0)


def test_the_larger_loss_comes_first() -> None:
    """1 of 32 eligible groups (3 %) against 28 of 128 slots (22 %)."""
    assert (
        _plain(_losses(1, 32, 28, 128))
        == "22 % of slots kept no token after the cut and 3 % of eligible groups carried no signal"
    )
    assert _plain(_losses(16, 32, 28, 128)).startswith("50 % of eligible groups carried no signal and 22 %")


def test_a_loss_of_nothing_is_not_named() -> None:
    assert _plain(_losses(0, 32, 0, 128)) == "every eligible group carried signal"
    assert _plain(_losses(0, 32, 28, 128)) == "22 % of slots kept no token after the cut"
    assert _losses(0, 0, 0, 4) is None


def test_entropy_says_nothing_below_twelve_steps_or_within_the_spread() -> None:
    """Twelve steps: quarters of three. Means 1.0 and 0.5 with no spread differ; eleven steps say nothing.

    First quarter 0.8, 1.0, 1.2 has sample sd 0.2: a change of 0.1 stays within it, one of 0.5 does not.
    """

    def steps(values: list[float]) -> list[dict[str, float]]:
        return [{"entropy": value} for value in values]

    assert entropy_change(steps([1.0] * 9 + [0.5] * 3)) == (1.0, 0.5)
    assert entropy_change(steps([1.0] * 8 + [0.5] * 3)) is None
    assert entropy_change(steps([0.8, 1.0, 1.2] * 3 + [0.9] * 3)) is None
    found = entropy_change(steps([0.8, 1.0, 1.2] * 3 + [0.5] * 3))
    assert found is not None and found == pytest.approx((1.0, 0.5))


@pytest.mark.parametrize("n", [12, 15, 16])
def test_held_out_counts_stand_beside_the_parents_without_a_word(n: int) -> None:
    """Counts of one seed have no paired interval: below, equal and above read the same."""
    said = _plain(_held_out([_cell(n, 27, 27)], [_cell(15, 27, 27)]))
    assert said == f"success on the held-out test: {n}/27 under STANDARD (its parent 15/27)"


def test_every_condition_of_the_held_out_test_is_named() -> None:
    """13 of 16 against 11 under standard, 1 of 16 against 3 under stress: both are said, in the plan's order."""
    own, parent = [_cell(13, 16, 16), _cell(1, 16, 16, "stress")], [_cell(11, 16, 16), _cell(3, 16, 16, "stress")]
    assert _plain(_held_out(own, parent)) == (
        "success on the held-out test: 13/16 under STANDARD (its parent 11/16), 1/16 under STRESS (its parent 3/16)"
    )
    assert "STRESS" not in _plain(_held_out(own, parent[:1]))


def test_held_out_waits_for_full_cells_of_both() -> None:
    assert held_out_pairs([_cell(5, 20, 27)], [_cell(15, 27, 27)]) == []
    assert held_out_pairs([_cell(5, 27, 27)], [_cell(15, 20, 27)]) == []
    assert held_out_pairs([_cell(5, 27, 27)], []) == [] and _held_out([_cell(5, 27, 27)], []) is None
    assert held_out_pairs([_cell(5, 27, 27, split="ood")], [_cell(15, 27, 27, split="ood")]) == []
    assert len(held_out_pairs([_cell(5, 27, 27, "stress")], [_cell(15, 27, 27, "stress")])) == 1


def test_no_exposure_is_no_rate() -> None:
    """27 items, none exposed: recovery has no case, so the share is None, never 0."""
    assert _cell(5, 27, 27).recovery.of == 0 and _cell(5, 27, 27).recovery.share is None


def test_four_clauses_make_one_sentence() -> None:
    from django.utils.safestring import mark_safe

    assert join_clauses([mark_safe(c) for c in "abcd"]) == "a; b; c, and d."


@pytest.mark.parametrize(("rule", "stable"), [
    ("gradient_spike", False), ("narrow_mode", False), ("early_collapse", False), ("paths_collapse", False),
    ("uneven_calls", False), ("padding", True), ("all_wrong", True), (None, True),
])  # fmt: skip
def test_a_warning_of_stability_on_any_layer_takes_the_word_away(rule: str | None, stable: bool) -> None:
    fired = [] if rule is None else [FiredWarning(BY_ID[rule], (0, 7), {})]
    assert capped(True, "4 of 4 steps are finite", fired)[0] is stable
    assert capped(False, "step 1 holds a non-finite value", fired) == (False, "step 1 holds a non-finite value")


def test_every_named_warning_of_stability_exists_outside_the_first_layer() -> None:
    assert all(BY_ID[name].kind == "warning" and BY_ID[name].layer != "L1" for name in UNSTABLE)
