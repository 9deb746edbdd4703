"""Divergence of the policy that sampled a batch to a reference checkpoint (default: the parent).

KL(pi || ref) from samples of pi, by Schulman's estimators: with d = log pi - log ref, k1 = d and
k3 = exp(-d) - 1 + d. The forward pass under the reference is the one of the old log-probabilities with
other adapter values in place. To keep an update cheap, two trajectories of a batch are measured, the
groups and slots in turn from batch to batch: a fixed subset that no load changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .batch import TrajectoryTokens, make_micro_batch, partition
from .checkpoint import checked, load_adapter
from .forward import frozen_logprobs
from .policy import Policy

MEASURED = 2  # trajectories a batch: about 3 % of the update's CPU time


@dataclass(frozen=True)
class Divergence:
    """Means over ``tokens`` policy tokens, nats; None of no token."""

    tokens: int
    k1: float | None
    k3: float | None


def kl_estimates(policy_N: Tensor, reference_N: Tensor) -> Divergence:
    """k1 and k3 estimates of KL(policy || reference) of tokens that the policy sampled."""
    count = policy_N.numel()
    if not count:
        return Divergence(0, None, None)
    delta_N = policy_N.double() - reference_N.double()
    return Divergence(count, float(delta_N.mean()), float((torch.exp(-delta_N) - 1.0 + delta_N).mean()))


def chosen_members(trajectories: Sequence[TrajectoryTokens], batch: int) -> list[int]:
    """Of every group the slot ``batch`` modulo its size; of these ``MEASURED``, in turn from batch to batch."""
    groups: dict[str, list[int]] = {}
    for member, item in enumerate(trajectories):
        groups.setdefault(item.group_uid, []).append(member)
    slots = [members[batch % len(members)] for members in groups.values()]
    taken = {(MEASURED * batch + number) % len(slots) for number in range(MEASURED)} if slots else set()
    return [slots[place] for place in sorted(taken)]


@torch.no_grad()
def reference_divergence(
    policy: Policy,
    store: Any,
    reference_sha256: str,
    trajectories: Sequence[TrajectoryTokens],
    old: Mapping[int, Tensor],
    batch: int,
    settings: Mapping[str, Any],
) -> Divergence:
    """Divergence to the adapter ``reference_sha256`` of the store; exactly 0 where the policy is that adapter.

    ``old``: log-probabilities under the policy, by trajectory. The policy's values are back in place afterwards.
    Raises ``EngineFault`` for an adapter that is absent or of another shape.
    """
    members = [member for member in chosen_members(trajectories, batch) if trajectories[member].tokens]
    own_N = torch.cat([old[member] for member in members]) if members else torch.zeros(0)
    if reference_sha256 == policy.ref.adapter_sha256:
        return kl_estimates(own_N, own_N)
    data = checked(store, reference_sha256, "reference adapter")
    before = {name: parameter.detach().clone() for name, parameter in policy.trainable.items()}
    found: dict[int, Tensor] = {}
    try:
        load_adapter(policy.trainable, data)
        lengths = [item.length for item in trajectories]
        for part in partition(lengths, members, settings["micro_batch"], settings["length_buckets"]):
            micro = make_micro_batch(trajectories, part)
            values_N = frozen_logprobs(policy, micro).cpu()
            found.update(zip(micro.members, values_N.split(list(micro.sizes)), strict=True))
    finally:
        for name, values in before.items():
            policy.trainable[name].copy_(values)
    return kl_estimates(own_N, torch.cat([found[member] for member in members]) if members else own_N)
