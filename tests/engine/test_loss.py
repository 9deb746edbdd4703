"""The clipped surrogate and its averages, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from workbench.contracts.errors import EngineFault
from worker.engine.loss import CLIP_HIGH, CLIP_LOW, CLIP_NONE, clip_sides, surrogate_terms, token_weights, weighted_loss

# Trajectory 0: two turns, 1 + 3 tokens, the last one cut. Trajectory 1: one turn, 1 token. Trajectory 2: all cut.
CREDITED = [[1, 1, 1, 0], [1], [0, 0]]
TURNS = [[0, 1, 1, 1], [0], [0, 0]]


def test_trajectory_balanced_counts_an_empty_trajectory_in_n() -> None:
    """N = 3. Trajectory 0: 1 / (3 * 3); trajectory 1: 1 / (3 * 1); trajectory 2: nothing, yet N stays 3."""
    weights = token_weights("trajectory_balanced", CREDITED, TURNS)
    assert weights == [[1 / 9, 1 / 9, 1 / 9, 0.0], [1 / 3], [0.0, 0.0]]


def test_token_mean_is_global() -> None:
    """4 credited tokens in all: 1/4 each."""
    assert token_weights("token_mean", CREDITED, TURNS) == [[0.25, 0.25, 0.25, 0.0], [0.25], [0.0, 0.0]]


def test_turn_balanced_averages_turns_first() -> None:
    """Trajectory 0: turn 0 has 1 token, turn 1 has 2: 1/(3*2*1), then 1/(3*2*2) twice."""
    weights = token_weights("turn_balanced", CREDITED, TURNS)
    assert weights[0] == pytest.approx([1 / 6, 1 / 12, 1 / 12, 0.0])
    assert weights[1:] == [[1 / 3], [0.0, 0.0]]


def test_sequence_sum_and_fixed_length() -> None:
    """N = 3: 1/3 a token; with fixed length 10: 1/30."""
    assert token_weights("sequence_sum", CREDITED, TURNS)[0] == [1 / 3, 1 / 3, 1 / 3, 0.0]
    assert token_weights("fixed_length", CREDITED, TURNS, 10)[0] == pytest.approx([1 / 30, 1 / 30, 1 / 30, 0.0])
    with pytest.raises(EngineFault, match="fixed_length: got None"):
        token_weights("fixed_length", CREDITED, TURNS)


def test_clip_acts_on_one_side_at_a_time() -> None:
    """rho = 1.5, 0.5, 1.5, 0.5 with A = 1, 1, -1, -1 and clip 0.2 / 0.28.

    o = min(1.5, 1.28) = 1.28; min(0.5, 0.8) = 0.5; min(-1.5, -1.28) = -1.5; min(-0.5, -0.8) = -0.8.
    """
    new = torch.log(torch.tensor([1.5, 0.5, 1.5, 0.5]))
    advantages = torch.tensor([1.0, 1.0, -1.0, -1.0])
    objective, ratios = surrogate_terms(new, torch.zeros(4), advantages, 0.2, 0.28)
    assert objective.tolist() == pytest.approx([1.28, 0.5, -1.5, -0.8], abs=1e-6)
    assert clip_sides(ratios, advantages, 0.2, 0.28).tolist() == [CLIP_HIGH, CLIP_NONE, CLIP_NONE, CLIP_LOW]


def test_gradient_vanishes_where_clipped() -> None:
    """d o / d logp = rho * A where the ratio is used, 0 where a bound is."""
    new = torch.log(torch.tensor([1.5, 1.1])).requires_grad_()
    objective, _ = surrogate_terms(new, torch.zeros(2), torch.ones(2), 0.2, 0.2)
    weighted_loss(objective, torch.ones(2)).backward()
    assert new.grad is not None and new.grad.tolist() == pytest.approx([0.0, -1.1], abs=1e-6)


def test_loss_by_hand() -> None:
    """Ratios 1: o = A. A = 2 on trajectory 0 (3 tokens), -1 on trajectory 1: L = -(3 * 2/9 - 1/3) = -1/3."""
    weights = torch.tensor([value for row in token_weights("trajectory_balanced", CREDITED, TURNS) for value in row])
    advantages = torch.tensor([2.0, 2.0, 2.0, 0.0, -1.0, 0.0, 0.0])
    objective, _ = surrogate_terms(torch.zeros(7), torch.zeros(7), advantages, 0.2, 0.2)
    assert float(weighted_loss(objective, weights)) == pytest.approx(-1 / 3, abs=1e-7)


def test_cut_token_cannot_poison_the_loss() -> None:
    """A cut token whose ratio overflows to infinity contributes exactly 0."""
    objective, _ = surrogate_terms(torch.tensor([0.0, 200.0]), torch.zeros(2), torch.tensor([1.0, 0.0]), 0.2, 0.2)
    assert float(weighted_loss(objective, torch.tensor([1.0, 0.0]))) == -1.0


def test_credit_may_differ_within_a_trajectory() -> None:
    """The loss asks for credit per token: A = 1, -3 at ratio 1, weight 1/2 each: L = -(0.5 - 1.5) = 1."""
    objective, _ = surrogate_terms(torch.zeros(2), torch.zeros(2), torch.tensor([1.0, -3.0]), 0.2, 0.2)
    weights = torch.tensor(token_weights("trajectory_balanced", [[1, 1]], [[0, 0]])[0])
    assert float(weighted_loss(objective, weights)) == pytest.approx(1.0)


def test_lengths_must_agree() -> None:
    with pytest.raises(EngineFault, match="turns_GT: got 1 values, expected 2"):
        token_weights("token_mean", [[1, 1]], [[0]])
    assert math.isclose(sum(map(sum, token_weights("token_mean", [[1, 1]], [[0, 0]]))), 1.0)
