"""The total of a reward from its components: by hand, and as the independent check of ``verify`` computes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.contracts.records import RewardComponent, RewardRecord
from workbench.contracts.rewards import reward_total, utility_of


def part(weight: float, value: float | None, name: str = "part") -> RewardComponent:
    points = None if value is None else weight * value
    return RewardComponent(name, weight, value, points, "not_measured" if value is None else "measured", {})


@pytest.mark.parametrize(
    ("gate", "parts", "expected"),
    [
        (1.0, [part(1.0, 0.5), part(-1.0, 1.0)], -0.5),  # 0.5 - 1, lowest -1
        (1.0, [part(1.0, 0.0), part(-1.0, 1.0), part(-1.0, 1.0)], -1.0),  # -2 is below -1
        (1.0, [part(1.0, 0.0), part(-0.25, 3.0)], -0.25),  # -0.75 is below the sum of negative weights
        (1.0, [part(1.0, 1.0), part(1.0, 1.0)], 1.0),  # 2 is above 1
        (1.0, [part(1.0, -0.5)], 0.0),  # no negative weight: nothing below 0
        (0.0, [part(1.0, 1.0)], 0.0),
        (0.5, [part(1.0, 0.5), part(-1.0, 1.0)], -0.25),
        (1.0, [part(1.0, 0.25), part(-1.0, None)], 0.25),
        (1.0, [part(1.0, -0.5), part(-1.0, None)], 0.0),  # what was not measured lowers nothing
        (1.0, [], 0.0),
    ],
)
def test_totals_by_hand(gate: float, parts: list[RewardComponent], expected: float) -> None:
    assert reward_total(gate, parts) == pytest.approx(expected, abs=1e-12)


NUMBERS = st.floats(-2, 2, allow_nan=False)


@given(st.lists(st.tuples(st.floats(0, 2), NUMBERS), max_size=5), st.floats(0, 1))
def test_without_a_negative_weight_it_is_the_range_from_0_to_1(pairs: list[tuple[float, float]], gate: float) -> None:
    parts = [part(weight, value) for weight, value in pairs]
    assert reward_total(gate, parts) == pytest.approx(gate * min(1.0, max(0.0, sum(w * v for w, v in pairs))))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([part(1.0, 0.5, "fail_to_pass"), part(-1.0, 1.0, "regression"), part(-1.0, 0.5, "format_error")], -0.5),
        ([part(1.0, 0.75, "fail_to_pass"), part(-1.0, 0.0, "regression")], 0.75),
        ([part(1.0, 0.75, "fail_to_pass")], None),
        ([part(1.0, None, "fail_to_pass"), part(-1.0, 0.0, "regression")], None),
        ([part(1.0, 0.5, "evidence")], None),
    ],
)
def test_utility_is_that_of_the_first_two_parts(parts: list[RewardComponent], expected: float | None) -> None:
    found = utility_of(RewardRecord("r", "1", 1.0, tuple(parts), 0.0))
    assert found == expected
