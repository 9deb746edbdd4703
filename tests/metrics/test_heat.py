"""Distributions over time: every trajectory in one cell, or counted as without the quantity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.models import Run
from runs.presenters.layers.heat import COLUMNS, ROWS, _binned, heat_of

VALUE = st.floats(-5, 5, width=32)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1000), VALUE), min_size=1, max_size=80))
def test_every_value_lies_in_the_cell_of_its_step_and_size(rows: list[tuple[int, float]]) -> None:
    steps, values = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], np.float64)
    heat = _binned("reward", steps, values, 0)
    counts = np.array(heat.counts)
    assert counts.sum() == len(rows) == heat.stored and counts.shape[1] <= COLUMNS and counts.shape[0] == ROWS
    for step, value in rows:
        column = (step - heat.steps[0]) // heat.width
        row = [i for i in range(ROWS) if heat.edges[i] <= value <= heat.edges[i + 1]]
        assert any(counts[i][column] for i in row)


def test_lengths_get_whole_cells() -> None:
    """Lengths 3, 3, 5 at step 0 and 4 at step 1: edges 3, 4, 5, 6."""
    heat = _binned("length", np.array([0, 0, 0, 1]), np.array([3.0, 3.0, 5.0, 4.0]), 2)
    assert heat.edges == (3.0, 4.0, 5.0, 6.0) and heat.counts == ((2, 0), (0, 1), (1, 0)) and heat.without == 2


@pytest.mark.django_db
def test_a_run_without_trajectories_is_empty_and_a_wrong_quantity_refused(run: Run) -> None:
    assert heat_of(run, "reward").stored == 0 and heat_of(run, "reward").counts == ()
    with pytest.raises(ValueError, match="quantity: got"):
        heat_of(run, "mood")
