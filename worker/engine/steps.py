"""Old log-probabilities and optimizer steps of one batch: the numerical part of stage 7.

Everything is measured before a step is applied: ratios, KL estimates and entropies are those of the
weights that the step starts from, so that the first step of a batch has ratio exactly 1.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from workbench.contracts.errors import EngineFault
from workbench.contracts.records import StepRecord
from workbench.tracefile import Trace

from .batch import MicroBatch, TrajectoryTokens, make_micro_batch, partition, split_minibatches
from .credit import TokenCredit
from .faults import reach
from .forward import frozen_logprobs, per_trajectory_norms, token_logprobs
from .loss import CLIP_HIGH, CLIP_LOW, clip_sides, surrogate_terms, token_weights, weighted_loss
from .policy import Policy

Progress = Callable[[dict[str, Any]], None]


class NonFinite(Exception):
    """A loss, log-probability or gradient that is no finite number; the batch commits nothing."""


@dataclass(frozen=True)
class Minibatch:
    """Trajectories of one optimizer step, their fixed micro-batches and the weights of their tokens."""

    members: tuple[int, ...]
    micro_batches: tuple[MicroBatch, ...]
    weights: dict[int, Tensor]  # by trajectory: weight of each policy token


@dataclass
class _Sums:
    """Sums over the trained tokens of one step."""

    loss: float = 0.0
    tokens: int = 0
    low: int = 0
    high: int = 0
    k1: float = 0.0
    k3: float = 0.0
    entropy: float = 0.0
    deviation: float = 0.0


@dataclass
class Steps:
    """What the steps of a batch gave. ``gradient_norms``: by trajectory uid, of each one's last first-epoch step."""

    records: list[StepRecord] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    gradient_norms: dict[str, float] = field(default_factory=dict)


def build_minibatches(
    trajectories: Sequence[TrajectoryTokens],
    credits: Sequence[TokenCredit],
    objective: dict[str, Any],
    optimizer: dict[str, Any],
) -> list[Minibatch]:
    """Fixed partition of a batch: minibatches in order, micro-batches inside each. Never load-dependent."""
    lengths = [trajectory.length for trajectory in trajectories]
    built = []
    for members in split_minibatches(len(trajectories), optimizer["minibatches"]):
        weights_GT = token_weights(
            objective["aggregation"],
            [credits[member].is_credited_T for member in members],
            [trajectories[member].decisions_T for member in members],
            objective.get("fixed_length"),
        )
        parts = partition(lengths, members, optimizer["micro_batch"], optimizer["length_buckets"])
        micro_batches = tuple(make_micro_batch(trajectories, part) for part in parts)
        weights = {
            member: torch.tensor(values, dtype=torch.float32)
            for member, values in zip(members, weights_GT, strict=True)
        }
        built.append(Minibatch(tuple(members), micro_batches, weights))
    return built


@torch.no_grad()
def old_logprobs(
    policy: Policy, minibatches: Sequence[Minibatch], progress: Progress | None = None
) -> dict[int, Tensor]:
    """Teacher-forced log-probabilities of every policy token under the frozen adapter, by trajectory.

    Computed for the whole batch, under the partition of the steps, before any step.
    """
    found: dict[int, Tensor] = {}
    for minibatch in minibatches:
        for micro in minibatch.micro_batches:
            values_N = frozen_logprobs(policy, micro) if micro.targets_N.numel() else torch.zeros(0)
            for member, part in zip(micro.members, values_N.cpu().split(list(micro.sizes)), strict=True):
                if not torch.isfinite(part).all():
                    raise NonFinite(f"old log-probability of trajectory {member}")
                found[member] = part.clone()
            reach("old_logprobs")
        if progress is not None:
            progress({"stage": "old_logprobs", "done": len(found)})
    return found


def _micro_step(
    policy: Policy,
    micro: MicroBatch,
    minibatch: Minibatch,
    trajectories: Sequence[TrajectoryTokens],
    credits: Sequence[TokenCredit],
    old: dict[int, Tensor],
    objective: dict[str, Any],
    step: int,
    sums: _Sums,
) -> list[Trace]:
    """Forward and backward of one micro-batch; adds to the gradients and to ``sums``."""
    low, high = objective["clip_low"], objective["clip_high"]
    old_N = torch.cat([old[member] for member in micro.members])
    weights_N = torch.cat([minibatch.weights[member] for member in micro.members])
    advantages_N = torch.tensor([value for member in micro.members for value in credits[member].advantages_T])
    credited_N = torch.tensor(
        [keep for member in micro.members for keep in credits[member].is_credited_T], dtype=torch.bool
    )
    norms: Sequence[float | None] = [None] * len(micro.members)
    with per_trajectory_norms(policy, micro) as tape:
        logprobs_N, entropies_N = token_logprobs(policy, micro, tape)
        device = logprobs_N.device
        objective_N, ratios_N = surrogate_terms(logprobs_N, old_N.to(device), advantages_N.to(device), low, high)
        loss = weighted_loss(objective_N, weights_N.to(device))
        if not torch.isfinite(loss):
            raise NonFinite(
                f"loss {loss.item()} at step {step}, trajectories {[trajectories[i].uid for i in micro.members]}"
            )
        loss.backward()
        if tape is not None:
            norms = tape.squares.sqrt().tolist()
    new_N, ratios_N, entropies_N = logprobs_N.detach().cpu(), ratios_N.detach().cpu(), entropies_N.cpu()
    sides_N = clip_sides(ratios_N, advantages_N, low, high)
    _add(sums, loss.item(), new_N, old_N, ratios_N, entropies_N, sides_N, credited_N)
    shares_N = -(objective_N.detach().cpu() * weights_N)
    traces, start = [], 0
    for member, size, norm in zip(micro.members, micro.sizes, norms, strict=True):
        part = slice(start, start + size)
        start += size
        trajectory = trajectories[member]
        contribution = float(torch.where(weights_N[part] > 0, shares_N[part], 0.0).sum())
        traces.append(
            Trace(
                trajectory.uid,
                step,
                contribution,
                norm,
                array_of(trajectory.decisions_T, "i"),
                array_of(old_N[part], "f"),
                array_of(new_N[part], "f"),
                array_of(ratios_N[part], "f"),
                array_of(sides_N[part], "B"),
                array_of(entropies_N[part], "f"),
                array_of(credits[member].is_credited_T, "B"),
                array_of(credits[member].advantages_T, "f"),
            )
        )
    return traces


def array_of(values: Any, typecode: str) -> Any:
    """A flat array of a tensor or sequence."""
    return array(typecode, values.tolist() if isinstance(values, Tensor) else values)


def _add(
    sums: _Sums,
    loss: float,
    new_N: Tensor,
    old_N: Tensor,
    ratios_N: Tensor,
    entropies_N: Tensor,
    sides_N: Tensor,
    credited_N: Tensor,
) -> None:
    sums.loss += loss
    sums.tokens += int(credited_N.sum())
    sums.low += int(((sides_N == CLIP_LOW) & credited_N).sum())
    sums.high += int(((sides_N == CLIP_HIGH) & credited_N).sum())
    if not credited_N.any():
        return
    delta_N = (new_N - old_N)[credited_N].double()
    rho_N = ratios_N[credited_N].double()
    sums.k1 += float(-delta_N.sum())
    sums.k3 += float((rho_N - 1.0 - delta_N).sum())
    sums.entropy += float(entropies_N[credited_N].double().sum())
    sums.deviation = max(sums.deviation, float((rho_N - 1.0).abs().max()))


def _norm(tensors: Sequence[Tensor]) -> float:
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))


def _apply(policy: Policy, optimizer: torch.optim.Optimizer, grad_clip: float, step: int) -> tuple[float, float, float]:
    """Clip, refuse what is not finite, step. Gradient norm, norm of the change, the same relative to the weights."""
    parameters = list(policy.trainable.values())
    gradient = float(torch.nn.utils.clip_grad_norm_(parameters, grad_clip))
    if not math.isfinite(gradient):
        raise NonFinite(f"gradient norm {gradient} at step {step}")
    before = [parameter.detach().clone() for parameter in parameters]
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    after = [parameter.detach() for parameter in parameters]
    if not all(bool(torch.isfinite(tensor).all()) for tensor in after):
        raise NonFinite(f"parameters after step {step}")
    change = _norm([new - previous for new, previous in zip(after, before, strict=True)])
    size = _norm(before)
    return gradient, change, change / size if size else 0.0


def run_steps(
    policy: Policy,
    minibatches: Sequence[Minibatch],
    trajectories: Sequence[TrajectoryTokens],
    credits: Sequence[TokenCredit],
    old: dict[int, Tensor],
    objective: dict[str, Any],
    settings: dict[str, Any],
    optimizer: torch.optim.Optimizer,
    first_step: int,
    progress: Progress | None = None,
) -> Steps:
    """Epochs x minibatches optimizer steps. Raises ``NonFinite``; the caller then commits nothing."""
    found = Steps()
    for epoch in range(settings["epochs"]):
        for index, minibatch in enumerate(minibatches):
            step, sums = first_step + len(found.records), _Sums()
            optimizer.zero_grad(set_to_none=True)
            for micro in minibatch.micro_batches:
                if micro.targets_N.numel() == 0:
                    continue
                traces = _micro_step(policy, micro, minibatch, trajectories, credits, old, objective, step, sums)
                found.traces += traces
                reach("backward")
                if epoch == 0:
                    found.gradient_norms.update(
                        {trace.trajectory_uid: trace.grad_norm for trace in traces if trace.grad_norm is not None}
                    )
            if not found.records and sums.deviation != 0.0:
                raise EngineFault(
                    f"ratio: got a deviation of {sums.deviation} at the first step of a batch, expected exactly 0"
                )
            gradient, change, relative = _apply(policy, optimizer, settings["grad_clip"], step)
            found.records.append(_record(step, epoch, index, minibatch, credits, sums, gradient, change, relative))
            if progress is not None:
                progress({"stage": "step", "step": step, "steps": settings["epochs"] * len(minibatches)})
    return found


def _record(
    step: int,
    epoch: int,
    index: int,
    minibatch: Minibatch,
    credits: Sequence[TokenCredit],
    sums: _Sums,
    gradient: float,
    change: float,
    relative: float,
) -> StepRecord:
    tokens = max(1, sums.tokens)
    return StepRecord(
        step=step,
        epoch=epoch,
        minibatch=index,
        loss=sums.loss,
        grad_norm=gradient,
        update_norm=change,
        relative_update_norm=relative,
        clip_low_share=sums.low / tokens,
        clip_high_share=sums.high / tokens,
        ratio_max_deviation=sums.deviation,
        kl_k1=sums.k1 / tokens,
        kl_k3=sums.k3 / tokens,
        entropy=sums.entropy / tokens,
        trained_tokens=sums.tokens,
        masked_tokens=sum(len(credits[member].is_credited_T) - credits[member].trained for member in minibatch.members),
        trajectories=len(minibatch.members),
    )
