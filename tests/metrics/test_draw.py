"""What a chart draws: within the data's range, with first, last, lowest and highest; the same for the same window."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.metrics import codec
from runs.metrics.draw import EXACT, M4, Drawn, draw

VALUES = st.lists(st.floats(width=32), min_size=1, max_size=400)


def points_of(values: list[float] | np.ndarray) -> codec.Points:
    array = np.asarray(values, np.float64)
    flag = codec.flags_of(array)
    return codec.Points(np.arange(len(array)), np.arange(len(array)), np.where(flag == 0, array, 0.0), flag)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.sampled_from([12, 16, 40]), st.integers(0, 400), st.integers(0, 400))
def test_extremes_ends_and_marks_are_always_drawn(values: list[float], limit: int, start: int, stop: int) -> None:
    points = points_of(values)
    found = draw(points, points.step, start=start, stop=stop, limit=limit)
    inside = [step for step in range(len(values)) if start <= step <= stop]
    finite = [step for step in inside if np.isfinite(values[step])]
    assert found.stored == len(inside) and sorted(found.marks.tolist()) == [s for s in inside if s not in finite]
    assert set(found.finite.tolist()) <= set(finite) and len(found.finite) <= limit
    if finite:
        drawn = points.value[found.finite]
        assert {finite[0], finite[-1]} <= set(found.finite.tolist())
        assert (drawn.min(), drawn.max()) == (min(values[s] for s in finite), max(values[s] for s in finite))
        assert found.sampler == (M4 if len(finite) > limit else EXACT)
    again = draw(points, points.step, start=start, stop=stop, limit=limit)
    assert again.finite.tolist() == found.finite.tolist()


def test_a_million_points_keep_their_one_spike() -> None:
    generator = np.random.default_rng(3)
    values = generator.random(1_000_000)
    place = int(generator.integers(1, 999_999))
    values[place] = 9.0
    found: Drawn = draw(points_of(values), np.arange(1_000_000), limit=2000)
    assert place in found.finite and found.stored == 1_000_000 and found.shown <= 2000


@pytest.mark.parametrize("limit", [0, 8, 14, -12])
def test_a_limit_that_cannot_hold_the_ends_is_refused(limit: int) -> None:
    points = points_of([1.0])
    with pytest.raises(ValueError, match="limit: got"):
        draw(points, points.step, limit=limit)
