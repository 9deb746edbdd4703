"""Stage 6, loss: the clipped surrogate on per-token credit, and how tokens are averaged.

``rho = exp(logp_new - logp_old)``, ``o = min(rho * A, clip(rho, 1 - clip_low, 1 + clip_high) * A)``,
``L = - sum_t w_t * o_t`` with weights of the whole optimizer batch (M: credited tokens, N trajectories):

``trajectory_balanced``  w = M / (N * sum_t M of the trajectory)
``token_mean``           w = M / sum of M over the batch
``turn_balanced``        w = M / (N * turns of the trajectory with a credited token * sum_t M of the turn)
``sequence_sum``         w = M / N
``fixed_length``         w = M / (N * fixed_length)

A trajectory without a credited token contributes 0 and counts in N. Weights are known before any
forward pass, so that a sum over micro-batches equals the batched loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from workbench.contracts.errors import EngineFault

AGGREGATIONS = ("trajectory_balanced", "token_mean", "turn_balanced", "sequence_sum", "fixed_length")
CLIP_NONE, CLIP_LOW, CLIP_HIGH = 0, 1, 2


def token_weights(
    aggregation: str,
    is_credited_GT: Sequence[Sequence[int]],
    turns_GT: Sequence[Sequence[int]],
    fixed_length: int | None = None,
) -> list[list[float]]:
    """Weight of every policy token of the trajectories of one optimizer batch, parallel to the indicators.

    ``turns_GT``: index of each token's turn. Raises ``EngineFault`` for lengths that differ.
    """
    if aggregation not in AGGREGATIONS:
        raise EngineFault(f"aggregation: got {aggregation!r}, expected one of {AGGREGATIONS}")
    if aggregation == "fixed_length" and not fixed_length:
        raise EngineFault(f"fixed_length: got {fixed_length}, expected a positive length")
    for credited, turns in zip(is_credited_GT, turns_GT, strict=True):
        if len(credited) != len(turns):
            raise EngineFault(f"turns_GT: got {len(turns)} values, expected {len(credited)}")
    count = len(is_credited_GT)
    every = sum(sum(credited) for credited in is_credited_GT)
    weights = []
    for credited, turns in zip(is_credited_GT, turns_GT, strict=True):
        if aggregation == "turn_balanced":
            sizes = Counter(turn for turn, keep in zip(turns, credited, strict=True) if keep)
            divisors = [count * len(sizes) * sizes[turn] for turn in turns]
        else:
            own = sum(credited)
            divisor = {
                "trajectory_balanced": count * own,
                "token_mean": every,
                "sequence_sum": count,
                "fixed_length": count * (fixed_length or 0),
            }[aggregation]
            divisors = [divisor] * len(turns)
        weights.append([1.0 / size if keep else 0.0 for keep, size in zip(credited, divisors, strict=True)])
    return weights


def surrogate_terms(
    logprobs_N: Tensor, old_logprobs_N: Tensor, advantages_N: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """Per-token objective o and the ratio rho, both [tokens]; o carries the gradient."""
    ratios_N = torch.exp(logprobs_N - old_logprobs_N)
    clipped_N = ratios_N.clamp(1.0 - clip_low, 1.0 + clip_high)
    return torch.minimum(ratios_N * advantages_N, clipped_N * advantages_N), ratios_N


def clip_sides(ratios_N: Tensor, advantages_N: Tensor, clip_low: float, clip_high: float) -> Tensor:
    """CLIP_LOW, CLIP_HIGH or CLIP_NONE of each token: where the objective uses a bound instead of the ratio."""
    low = (ratios_N < 1.0 - clip_low) & (advantages_N < 0)
    high = (ratios_N > 1.0 + clip_high) & (advantages_N > 0)
    return low.to(torch.uint8) * CLIP_LOW + high.to(torch.uint8) * CLIP_HIGH


def weighted_loss(objective_N: Tensor, weights_N: Tensor) -> Tensor:
    """``- sum_t w_t * o_t``: the share of a micro-batch in the loss of its optimizer batch.

    A token of weight 0 contributes exactly 0, whatever its objective is.
    """
    return -(torch.where(weights_N > 0, objective_N, torch.zeros_like(objective_N)) * weights_N).sum()
