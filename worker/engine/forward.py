"""Teacher forcing: log-probabilities and entropies of given tokens, with or without gradients.

The one code path for old and new values: under equal weights and the same micro-batch both are
bit-equal. ``per_trajectory_norms`` measures each trajectory's own gradient beside the joint one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from . import training_path
from .batch import MicroBatch
from .fastpath import supports
from .policy import Policy


def _logits(policy: Policy, micro: MicroBatch) -> Tensor:
    """Logits [tokens, vocabulary] in float32 at the places that predict the policy tokens."""
    model = policy.causal_model()
    device = model.get_input_embeddings().weight.device
    ids_BT = micro.ids_BT.to(device)
    rows_N, places_N = micro.rows_N.to(device), micro.places_N.to(device)
    if policy.has_linear_head() and hasattr(model, "model") and hasattr(model, "lm_head"):
        hidden = model.model(input_ids=ids_BT, use_cache=False).last_hidden_state
        return model.lm_head(hidden[rows_N, places_N]).float()
    accepted = inspect.signature(model.forward).parameters
    options = {"use_cache": False} if "use_cache" in accepted else {}
    return model(input_ids=ids_BT, **options).logits[rows_N, places_N].float()


def takes_direct_path(policy: Policy) -> bool:
    """Whether ``training_path`` serves this policy: a small float32 Qwen3-style model, LoRA on its projections only."""
    model = policy.causal_model()
    if supports(model) is not None or model.config.hidden_size > training_path.LARGEST_HIDDEN:
        return False
    plain = [model.get_input_embeddings(), model.lm_head]
    return not any(hasattr(module, "base_layer") for module in plain)


def token_logprobs(policy: Policy, micro: MicroBatch, tape: _NormTape | None = None) -> tuple[Tensor, Tensor]:
    """Log-probabilities (with gradient where enabled) and exact entropies (without), each [tokens], nats."""
    logprobs_N, entropies_N = _scored(policy, micro, tape, with_entropy=True)
    assert entropies_N is not None
    return logprobs_N, entropies_N


@torch.no_grad()
def frozen_logprobs(policy: Policy, micro: MicroBatch) -> Tensor:
    """Log-probabilities [tokens], nats, by the operations of ``token_logprobs`` and so bit-equal to them."""
    return _scored(policy, micro, None, with_entropy=False)[0]


def _scored(
    policy: Policy, micro: MicroBatch, tape: _NormTape | None, *, with_entropy: bool
) -> tuple[Tensor, Tensor | None]:
    if takes_direct_path(policy):
        found: tuple[Tensor, Tensor | None] = training_path.score(
            policy.causal_model(),
            micro.ids_BT,
            micro.rows_N,
            micro.places_N,
            micro.targets_N,
            tape,
            with_entropy=with_entropy,
        )
        return found
    logits_NV = _logits(policy, micro)
    targets_N = micro.targets_N.to(logits_NV.device)
    log_normal_N = torch.logsumexp(logits_NV, -1)
    logprobs_N = logits_NV.gather(-1, targets_N[:, None])[:, 0] - log_normal_N
    if not with_entropy:
        return logprobs_N, None
    with torch.no_grad():
        logs_NV = logits_NV.detach() - log_normal_N.detach()[:, None]
        entropies_N = -(logs_NV.exp() * logs_NV.clamp_min(-1e4)).sum(-1)
    return logprobs_N, entropies_N


class _NormTape:
    """Per-row inputs and output gradients of every LoRA matrix, reduced to squared norms by trajectory."""

    def __init__(self, trajectories: int, owners_B: Tensor):
        self.squares = torch.zeros(trajectories, dtype=torch.float64)
        self.owners_B = owners_B
        self.trajectories = trajectories

    def watch(self, module: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if not output.requires_grad:
            return
        values = inputs[0].detach()

        def add(gradient: Tensor) -> None:
            self.add(torch.bmm(gradient.detach().transpose(1, 2).float(), values.float()))

        output.register_hook(add)

    def add(self, gradients_B: Tensor) -> None:
        """Add the squares of one matrix's gradient, given by row: [rows, out, in]."""
        if gradients_B.shape[0] != self.trajectories:
            total = gradients_B.new_zeros(self.trajectories, *gradients_B.shape[1:])
            gradients_B = total.index_add_(0, self.owners_B.to(gradients_B.device), gradients_B)
        self.squares += gradients_B.square().sum((1, 2)).double().cpu()


@contextmanager
def per_trajectory_norms(policy: Policy, micro: MicroBatch) -> Iterator[_NormTape | None]:
    """Gradient norm of each trajectory of a micro-batch, in one joint backward pass.

    Only for LoRA, whose matrices are small; yields None for full fine-tuning (not measured there).
    """
    if policy.ref.adaptation["kind"] != "lora":
        yield None
        return
    tape = _NormTape(len(micro.members), micro.owners_B)
    if takes_direct_path(policy):
        yield tape  # filled by the direct path's own backward
        return
    model = policy.causal_model()
    layers = [module for name, module in model.named_modules() if ".lora_A." in name or ".lora_B." in name]
    handles = [layer.register_forward_hook(tape.watch) for layer in layers if hasattr(layer, "weight")]
    try:
        yield tape
    finally:
        for handle in handles:
            handle.remove()
