"""Advantages by hand: population statistics over the whole group."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.contracts.errors import EngineFault
from worker.engine.advantage import group_advantages


def test_grpo_divides_by_population_sigma() -> None:
    """r = 1, 0, 0, 1: mu = 0.5, var = (4 * 0.25) / 4 = 0.25, sigma = 0.5; A = +-0.5 / 0.5 = +-1 at eps 0.

    With divisor G - 1 sigma would be 0.577 and A 0.866.
    """
    found = group_advantages([1, 0, 0, 1], "grpo", 0.0)
    assert (found.mean, found.variance, found.sigma) == (0.5, 0.25, 0.5)
    assert found.advantages_G == (1.0, -1.0, -1.0, 1.0)


def test_eps_is_added_to_sigma() -> None:
    """r = 0, 1: sigma = 0.5; A = 0.5 / (0.5 + 0.5) = 0.5."""
    assert group_advantages([0, 1], "grpo", 0.5).advantages_G == (-0.5, 0.5)


def test_mean_centred_keeps_the_scale() -> None:
    """r = 0.2, 0.4, 0.9: mu = 0.5."""
    assert group_advantages([0.2, 0.4, 0.9], "mean_centred", 1e-6).advantages_G == pytest.approx((-0.3, -0.1, 0.4))


def test_leave_one_out_compares_with_the_others() -> None:
    """r = 0, 0, 0.9: for the last, 0.9 - 0 = 0.9; for the first, 0 - 0.45 = -0.45."""
    assert group_advantages([0, 0, 0.9], "leave_one_out", 1e-6).advantages_G == pytest.approx((-0.45, -0.45, 0.9))


@pytest.mark.parametrize("kind", ["grpo", "mean_centred", "leave_one_out"])
def test_zero_variance_is_exactly_zero(kind: str) -> None:
    """0.1 three times sums to 0.30000000000000004; the threshold of 1e-12 makes A exactly 0."""
    assert group_advantages([0.1, 0.1, 0.1], kind, 0.0).advantages_G == (0.0, 0.0, 0.0)


def test_variance_just_above_the_threshold_is_signal() -> None:
    """r = 0, 4e-6: var = 4e-12 > 1e-12, sigma = 2e-6."""
    assert group_advantages([0, 4e-6], "grpo", 0.0).advantages_G == pytest.approx((-1.0, 1.0))
    assert group_advantages([0, 1e-6], "grpo", 0.0).advantages_G == (0.0, 0.0)


def test_refusals_name_the_value() -> None:
    with pytest.raises(EngineFault, match="got 1 rewards, expected at least 2"):
        group_advantages([1.0], "grpo", 0.0)
    with pytest.raises(EngineFault, match="expected finite numbers"):
        group_advantages([1.0, math.nan], "grpo", 0.0)
    with pytest.raises(EngineFault, match="got 'gae'"):
        group_advantages([1.0, 0.0], "gae", 0.0)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.sampled_from(["grpo", "mean_centred", "leave_one_out"]))
def test_advantages_sum_to_zero(rewards: list[float], kind: str) -> None:
    found = group_advantages(rewards, kind, 1e-6)
    scale = max(1.0, *(abs(value) for value in found.advantages_G))
    assert abs(math.fsum(found.advantages_G)) < 1e-9 * scale * len(rewards)
