"""The check of a reward's total, written apart from the engine's, says what the engine's says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.checks.numbers import reward_total as checked
from workbench.contracts.records import RewardComponent, RewardRecord
from workbench.contracts.rewards import reward_total

NUMBERS = st.floats(-2, 2, allow_nan=False)
PARTS = st.lists(st.tuples(NUMBERS, st.one_of(st.none(), NUMBERS)), max_size=5)


@given(PARTS, st.floats(0, 1))
def test_both_say_the_same(parts: list[tuple[float, float | None]], gate: float) -> None:
    components = tuple(
        RewardComponent(f"part {number}", weight, value, None if value is None else weight * value, "", {})
        for number, (weight, value) in enumerate(parts)
    )
    item = SimpleNamespace(reward=RewardRecord("r", "1", gate, components, 0.0))
    assert checked(item) == pytest.approx(reward_total(gate, components), abs=1e-12)  # type: ignore[arg-type]


def test_without_a_reward_there_is_no_total() -> None:
    assert checked(SimpleNamespace(reward=None)) is None  # type: ignore[arg-type]
