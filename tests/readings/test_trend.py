"""Trends: by hand, against SciPy, and invariants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from runs.metrics import codec
from runs.readings.signals import line_of
from runs.readings.trend import FALLING, FLAT, RISING, SHORT, trend


def test_eight_rising_values_by_hand() -> None:
    """n = 8, all 28 pairs rise: S = 28, var = 8 x 7 x 21 / 18 = 65.333, z = 27 / 8.0829 = 3.3404; slope 0.5."""
    found = trend(np.arange(8), np.arange(8) * 0.5)
    assert (found.direction, found.n) == (RISING, 8) and found.z == pytest.approx(3.3404, abs=1e-4)
    assert found.slope == 0.5 and (found.first, found.last) == (0.25, 3.25)


def test_seven_values_say_nothing() -> None:
    assert trend(np.arange(7), np.arange(7.0)).direction == SHORT


def test_a_small_change_is_flat_however_clear() -> None:
    assert trend(np.arange(20), np.arange(20) * 1e-4, least_change=0.01).direction == FLAT


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=8, max_size=60))
def test_score_and_slope_agree_with_scipy(values: list[int]) -> None:
    """Kendall's S from SciPy's tau-b, and Theil-Sen; the sign turns with the series."""
    y, x = np.array(values, np.float64), np.arange(len(values))
    found = trend(x, y)
    assert found.slope == pytest.approx(stats.theilslopes(y, x)[0])
    back = trend(x, -y)
    assert back.z == pytest.approx(-(found.z or 0.0)) and {found.direction, back.direction} in (
        {FLAT},
        {RISING, FALLING},
    )
    if len(set(values)) > 1:
        p = stats.kendalltau(x, y).statistic
        assert np.sign(p) == np.sign(found.z) or abs(found.z or 0.0) < 0.2


def test_line_takes_whole_shards_and_weighs_them() -> None:
    """Step 0: shards 0.2 of 10 and 0.5 of 20 give 0.4; the group's own point and the NaN are no shard's value."""
    points = codec.Points(
        step=np.array([0, 0, 0, 1, 2]), time_ms=np.zeros(5, np.int64), value=np.array([0.2, 0.5, 9.0, 0.7, 0.0]),
        flag=np.array([0, 0, 0, 0, codec.NAN], np.uint8), count=np.array([10, 20, 4, -1, 5]),
        subject=["", "", "g", "", ""],
    )  # fmt: skip
    found = line_of("l3.reward_mean/1", "train", "train", {}, points)
    assert found.steps.tolist() == [0, 1] and found.values.tolist() == pytest.approx([0.4, 0.7]) and found.dropped == 1
