"""Thinning of chart series: extremes and non-finite values stay."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.presenters.series import DEFINITIONS, MAX_POINTS, ChartView, change_of, thin
from runs.templatetags.ui import fixed, format_number


def test_few_points_are_left_alone() -> None:
    points = [(float(i), float(i), "") for i in range(10)]
    assert thin(points).points == points
    assert thin(points).sampler == "none"


def test_absent_and_non_finite_points_are_all_kept() -> None:
    points = [(float(i), None if i % 500 == 0 else math.sin(i), "nan" if i % 1000 == 0 else "") for i in range(5000)]
    found = thin(points)
    assert sum(p[1] is None for p in found.points) == 10
    assert found.stored == 5000 and found.shown == len(found.points) < 1000


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(MAX_POINTS + 1, 4000), spike=st.integers(0, MAX_POINTS))
def test_minimum_and_maximum_survive(seed: int, size: int, spike: int) -> None:
    """A walk of any length with one spike anywhere: its extremes, the spike among them, are drawn."""
    rng = random.Random(seed)
    values = [rng.gauss(0, 1) for _ in range(size)]
    values[spike] = 1e9
    found = thin([(float(i), value, "") for i, value in enumerate(values)])
    shown = [p[1] for p in found.points]
    assert 1e9 in shown and min(values) in shown
    assert [p[0] for p in found.points] == sorted(p[0] for p in found.points)
    assert len(shown) <= MAX_POINTS + 4


def test_change_over_groups_compares_means_of_twelve() -> None:
    """Twelve times 0.2, then twelve times 0.5: +0.3. Twenty-three groups say nothing; steps compare the ends."""
    assert change_of([0.2] * 12 + [0.5] * 12, True) == pytest.approx(0.3)
    assert change_of([0.2] * 12 + [0.5] * 11, True) is None
    assert change_of([1.0, 5.0, 4.0], False) == 3.0 and change_of([1.0], False) is None


@pytest.mark.parametrize(
    ("last", "change", "shown"),
    [
        (0.3012, -0.0256, "0.301 −0.026"),  # once 0.3 −2.56e−02
        (0.011992, -0.009063, "0.0120 −0.0091"),  # once 0.011992 −0.009063
        (12.345, 0.5, "12.3 +0.5"),
        (25.0, -8.333, "25.0 −8.3"),
        (1234.5, 10.0, "1,234 +10"),
        (0.0, 0.0, "0.00 +0.00"),
        (0.25, None, "0.250 —"),
        (3e-5, -0.5, "3.00e−05 −0.500"),
    ],
)
def test_a_value_and_its_change_have_three_figures_between_them(last: float, change: float | None, shown: str) -> None:
    view = ChartView(DEFINITIONS["grad_norm"], last, change, False, 9)
    assert f"{format_number(last, view.digits)} {fixed(change, view.digits)}" == shown
