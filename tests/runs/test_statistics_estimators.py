"""Estimators and bootstrap, worked by hand and against brute-force references."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.statistics.bootstrap import (
    REPEATED_EVALUATIONS,
    Bootstrap,
    gap_interval,
    paired_interval,
    percentile_interval,
    resampled_means,
    spread,
    task_interval,
)
from runs.statistics.estimators import (
    Rate,
    count_rate,
    mean_rate,
    pass_at_k,
    pass_hat_k,
    task_pass_at_k,
    task_pass_hat_k,
)

SEED = "12345678901234567890"
numbers = st.floats(-1e6, 1e6, allow_nan=False)


def test_half_the_tasks_at_one_keeps_pass_at_3_at_one_half() -> None:
    """Two tasks always right, two always wrong: single 2/4; pass@3 = (1+1+0+0)/4, not 1-(1/2)^3 = 0.875."""
    tasks = [[True] * 3, [True] * 3, [False] * 3, [False] * 3]
    assert pass_at_k(tasks, 1).to_json() == {"numerator": 2.0, "denominator": 4, "value": 0.5, "note": None}
    assert pass_at_k(tasks, 3).value == 0.5
    assert pass_hat_k(tasks, 3).value == 0.5


def test_unbiased_estimators_by_hand() -> None:
    """n = 4, c = 2, k = 2: of 6 pairs 1 has no success and 1 has two: pass@2 = 5/6, pass^2 = 1/6."""
    assert task_pass_at_k(4, 2, 2) == 5 / 6
    assert task_pass_hat_k(4, 2, 2) == 1 / 6


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 7))
def test_unbiased_estimators_equal_all_subsets(repeats: list[bool], k: int) -> None:
    """The mean over all k-subsets of max and min of the repeats."""
    n = len(repeats)
    if k > n:
        with pytest.raises(ValueError, match=rf"k: got {k}, expected 1 <= k <= n with n = {n}"):
            task_pass_at_k(n, sum(repeats), k)
        return
    subsets = list(itertools.combinations(repeats, k))
    assert task_pass_at_k(n, sum(repeats), k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert task_pass_hat_k(n, sum(repeats), k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


def test_tasks_with_too_few_repeats_leave_the_denominator_and_are_named() -> None:
    rate = pass_at_k([[True, False, False], [True]], 3)
    assert (rate.numerator, rate.denominator) == (1.0, 1)
    assert rate.note == "1 of 2 tasks have fewer than 3 repeats and are left out"
    with pytest.raises(ValueError, match=r"c: got 5, expected 0 <= c <= n with n = 4"):
        task_pass_at_k(4, 5, 1)


def test_zero_exposure_is_no_zero() -> None:
    assert Rate(0, 0).to_json() == {"numerator": 0, "denominator": 0, "value": None, "note": "no exposure"}
    assert count_rate([]).value is None
    assert count_rate([False]).to_json()["value"] == 0.0
    with pytest.raises(ValueError, match="numerator: got 1, expected 0 over a zero denominator"):
        Rate(1, 0)
    with pytest.raises(ValueError, match="denominator: got -1"):
        Rate(0, -1)


def test_none_leaves_mean_and_denominator() -> None:
    """(0.5 + 1.0) / 2 = 0.75; as a zero the None would give 0.5."""
    rate = mean_rate([0.5, None, 1.0])
    assert (rate.numerator, rate.denominator, rate.value) == (1.5, 2, 0.75)
    assert rate.note == "1 not measured, left out of the denominator"
    assert mean_rate([None]).to_json()["note"] == "no exposure; 1 not measured, left out of the denominator"


def test_bootstrap_agrees_with_numpy_reference() -> None:
    """Another generator, np.mean and np.quantile: bounds of 60 uniform values agree within resampling noise."""
    values = np.random.default_rng(3).random(60)
    draws = np.random.default_rng(4).integers(0, 60, (40_000, 60))
    expected = np.quantile(values[draws].mean(axis=1), [0.025, 0.975])
    interval = task_interval(values.tolist(), Bootstrap(SEED, resamples=40_000))
    assert [interval.low, interval.high] == pytest.approx(expected.tolist(), abs=0.003)


def test_bootstrap_draws_whole_tasks_exactly() -> None:
    """Two tasks at 0 and 1: the mean is 0, 1/2 or 1 with probability 1/4, 1/2, 1/4."""
    means = resampled_means([0.0, 1.0], Bootstrap(SEED, resamples=40_000))
    shares = [float((means == level).mean()) for level in (0.0, 0.5, 1.0)]
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.01)


def test_stream_is_frozen() -> None:
    """First resamples of tasks 0..4 under seed 1, from raw Philox output: floor(high 32 bits * 5 / 2^32)."""
    raw = np.random.Philox(key=np.array([1, 0], dtype=np.uint64)).random_raw(15)
    drawn = [[(int(value) >> 32) * 5 >> 32 for value in raw[5 * row : 5 * row + 5]] for row in range(3)]
    means = resampled_means([0.0, 1.0, 2.0, 3.0, 4.0], Bootstrap("1", resamples=3))
    assert means.tolist() == [sum(row) / 5 for row in drawn]
    assert means.tolist() == FROZEN


FROZEN = [1.8, 1.2, 2.4]  # known answer: a change here changes every stored interval


@given(st.lists(numbers, min_size=2, max_size=30), st.integers(0, 2**64 - 1))
@settings(max_examples=60, deadline=None)
def test_interval_stays_within_the_values(values: list[float], seed: int) -> None:
    interval = task_interval(values, Bootstrap(str(seed), resamples=200))
    assert interval.low is not None
    assert interval.high is not None
    assert min(values) <= interval.low <= interval.high <= max(values)


@given(st.lists(numbers, min_size=1, max_size=50), st.floats(0.01, 0.99))
def test_percentiles_equal_numpy(values: list[float], level: float) -> None:
    low, high = percentile_interval(np.array(values), level)
    expected = np.quantile(np.array(values), [(1 - level) / 2, 1 - (1 - level) / 2])
    assert (low, high) == (pytest.approx(expected[0], abs=1e-6), pytest.approx(expected[1], abs=1e-6))


def test_same_seed_same_interval_and_another_seed_another() -> None:
    values = [float(value) for value in range(20)]
    assert task_interval(values, Bootstrap("5")) == task_interval(values, Bootstrap("5"))
    assert task_interval(values, Bootstrap("5")) != task_interval(values, Bootstrap("6"))


def test_paired_interval_sees_what_independent_resampling_does_not() -> None:
    """Tasks from 0 to 29, treatment = baseline + 1 or + 2: paired bounds lie in [1, 2] though tasks differ by 29."""
    before = [float(value) for value in range(30)]
    after = [value + 1 + (position % 2) for position, value in enumerate(before)]
    paired = paired_interval(before, after, Bootstrap(SEED))
    assert paired.low is not None
    assert 1.0 < paired.low < 1.5
    independent = gap_interval(after, before, Bootstrap(SEED))
    assert independent.low is not None
    assert independent.low < 0
    with pytest.raises(ValueError, match="treatment: got 29 tasks, expected 30"):
        paired_interval(before, after[1:], Bootstrap(SEED))


def test_gap_resamples_the_two_sets_independently() -> None:
    """The same values on both sides: with one shared draw every difference would be 0."""
    values = [0.0, 1.0] * 10
    gap = gap_interval(values, values, Bootstrap(SEED))
    assert gap.low is not None
    assert gap.high is not None
    assert gap.low < 0 < gap.high


def test_one_task_has_no_interval_and_equal_tasks_say_so() -> None:
    assert task_interval([0.5], Bootstrap(SEED)).to_json()["low"] is None
    assert task_interval([], Bootstrap(SEED)).note == "fewer than 2 tasks: no interval"
    equal = task_interval([0.1] * 3, Bootstrap(SEED))
    assert (equal.low, equal.high, equal.degenerate) == (0.1, 0.1, True)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"seed": "-1"}, "seed: got '-1', expected a decimal string below"),
        ({"seed": str(2**64)}, "seed: got '18446744073709551616'"),
        ({"seed": 5}, "seed: got 5"),
        ({"seed": "1", "level": 1.0}, "level: got 1.0"),
        ({"seed": "1", "resamples": 0}, "resamples: got 0"),
    ],
)
def test_settings_are_refused(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bootstrap(**settings_)  # type: ignore[arg-type]


def test_non_finite_values_are_refused() -> None:
    with pytest.raises(ValueError, match="values: got a non-finite value"):
        task_interval([1.0, math.nan], Bootstrap(SEED))


def test_spread_of_seeds_by_hand() -> None:
    """1, 2, 3: mean 2, sample sd 1; 2 >= 2 x 1 is distinguished. 0, 2, 4: mean 2 < 2 x 2 is not."""
    one = spread([1.0, 2.0, 3.0])
    assert (one.mean, one.sd, one.distinguished, one.of) == (2.0, 1.0, True, "training_seeds")
    assert spread([0.0, 2.0, 4.0]).distinguished is False
    assert spread([0.0, 0.0]).distinguished is False
    assert spread([1.0], REPEATED_EVALUATIONS).to_json() == {
        "of": "repeated_evaluations",
        "n": 1,
        "mean": 1.0,
        "sd": None,
    }
    assert spread([1.0]).distinguished is None
    assert spread([]).mean is None


def test_bootstrap_is_quick() -> None:
    """60 tasks, 10,000 resamples, fresh draws: under 50 ms of CPU on a quiet core (best of 5)."""
    values = [float(value % 7) for value in range(60)]
    best = math.inf
    for seed in range(100, 105):
        start = time.process_time()
        task_interval(values, Bootstrap(str(seed)))
        best = min(best, time.process_time() - start)
    assert best < 0.05
