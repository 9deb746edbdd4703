"""Stage 3, advantage: population statistics over the whole group (spec "objective", Advantage).

``grpo``           A_i = (r_i - mu) / (sigma + eps), sigma with divisor G
``mean_centred``   A_i = r_i - mu
``leave_one_out``  A_i = r_i - mean of the other G - 1 rewards

A variance of at most 1e-12 makes every advantage exactly 0. No jitter, no clipping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.contracts.errors import EngineFault

KINDS = ("grpo", "mean_centred", "leave_one_out")
ZERO_VARIANCE = 1e-12


@dataclass(frozen=True)
class GroupAdvantages:
    """Statistics of one group. ``sigma`` is the population standard deviation."""

    kind: str
    mean: float
    variance: float
    sigma: float
    advantages_G: tuple[float, ...]


def group_advantages(rewards_G: Sequence[float], kind: str, eps: float) -> GroupAdvantages:
    """Advantages of one complete group. Raises ``EngineFault`` for a group of one or a non-finite reward."""
    size = len(rewards_G)
    if kind not in KINDS:
        raise EngineFault(f"advantage.kind: got {kind!r}, expected one of {KINDS}")
    if size < 2:
        raise EngineFault(
            f"rewards_G: got {size} rewards, expected at least 2: one reward has no group to compare with"
        )
    if not all(math.isfinite(reward) for reward in rewards_G):
        raise EngineFault(f"rewards_G: got {list(rewards_G)}, expected finite numbers")
    mean = math.fsum(rewards_G) / size
    variance = math.fsum((reward - mean) ** 2 for reward in rewards_G) / size
    sigma = math.sqrt(variance)
    if variance <= ZERO_VARIANCE:
        advantages = [0.0] * size
    elif kind == "grpo":
        advantages = [(reward - mean) / (sigma + eps) for reward in rewards_G]
    elif kind == "mean_centred":
        advantages = [reward - mean for reward in rewards_G]
    else:
        advantages = [(reward - mean) * size / (size - 1) for reward in rewards_G]
    return GroupAdvantages(kind, mean, variance, sigma, tuple(advantages))
