"""Direct forward pass with gradients for Qwen3-style models: fused projections, few passes over memory.

Same function as the transformers model up to rounding. LoRA deltas are added to the weights inside
the graph, so that a projection is one product forward and two backward; norm weights are folded into
the projections that follow them. The gradient of each row is measured on the way where asked for.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

LARGEST_HIDDEN = 512  # beyond it the per-row weight gradients cost memory; the general path serves


class _Normal(torch.autograd.Function):
    """x / rms(x) over the last dimension; backward r * (g - y * mean(g * y))."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
        y = x * scale
        ctx.save_for_backward(y, scale)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        y, scale = ctx.saved_tensors
        return torch.addcmul(gradient, y, (gradient * y).mean(-1, keepdim=True), value=-1.0).mul_(scale), None


class _Rotate(torch.autograd.Function):
    """Rotary positions: y * cosine + roll(y, half) * sine, signs in ``sine``. Rolling by half is its own inverse."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        ctx.save_for_backward(cosine, sine)
        return torch.addcmul(y * cosine, y.roll(y.shape[-1] // 2, -1), sine)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        cosine, sine = ctx.saved_tensors
        turned = (gradient * sine).roll(gradient.shape[-1] // 2, -1)
        return torch.addcmul(turned, gradient, cosine), None, None


class _Gated(torch.autograd.Function):
    """silu(gate) * up of a joint [.., 2 * width] tensor."""

    @staticmethod
    def forward(ctx: Any, joint: Tensor) -> Tensor:
        ctx.save_for_backward(joint)
        gate, up = joint.chunk(2, dim=-1)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (joint,) = ctx.saved_tensors
        gate, up = joint.chunk(2, dim=-1)
        result = torch.empty_like(joint)
        width = gate.shape[-1]
        result[..., :width] = torch.ops.aten.silu_backward(gradient * up, gate)
        torch.mul(gradient, F.silu(gate), out=result[..., width:])
        return result


class _Score(torch.autograd.Function):
    """Log-probabilities of targets and exact entropies of [tokens, vocabulary] logits."""

    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        logs_NV = logits_NV - torch.logsumexp(logits_NV, -1, keepdim=True)
        logprobs_N = logs_NV.gather(-1, targets_N[:, None])[:, 0]
        probabilities_NV = logs_NV.exp()
        entropies_N = -(probabilities_NV * logs_NV).sum(-1)
        ctx.save_for_backward(probabilities_NV, targets_N)
        ctx.mark_non_differentiable(entropies_N)
        return logprobs_N, entropies_N

    @staticmethod
    def backward(ctx: Any, gradient_N: Tensor, _: Any) -> Any:
        probabilities_NV, targets_N = ctx.saved_tensors
        result = probabilities_NV * -gradient_N[:, None]
        return result.scatter_add_(-1, targets_N[:, None], gradient_N[:, None]), None


class _RowLinear(torch.autograd.Function):
    """x @ weight.T over [rows, tokens, in]; hands the per-row weight gradient [rows, out, in] to ``watch``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, watch: Any) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.watch = watch
        return (x.view(-1, x.shape[-1]) @ weight.t()).view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        own = torch.bmm(gradient.transpose(1, 2), x)
        ctx.watch(own)
        return (gradient.reshape(-1, gradient.shape[-1]) @ weight).view_as(x), own.sum(0), None


def _adapted(module: Any) -> tuple[Tensor, Any]:
    """Weight of a linear layer with its LoRA delta, in the graph; and (A, B, scaling) or None."""
    base = getattr(module, "base_layer", module)
    factors = None
    weight = base.weight
    for name in getattr(module, "active_adapters", ()):
        if name in getattr(module, "lora_A", {}):
            factors = (module.lora_A[name].weight, module.lora_B[name].weight, module.scaling[name])
            weight = torch.addmm(weight, factors[1], factors[0], alpha=factors[2])
    return weight, factors


class _Watch:
    """Splits the per-row gradient of a fused weight into LoRA factors and adds up their squares by trajectory."""

    def __init__(self, tape: Any, parts: list[tuple[int, Any]], fold: Tensor | None):
        self.tape, self.parts, self.fold = tape, parts, fold

    def __call__(self, own: Tensor) -> None:
        own = own if self.fold is None else own * self.fold
        for part, (_, factors) in zip(own.split([size for size, _ in self.parts], dim=1), self.parts, strict=True):
            if factors is not None:
                down, up, scaling = factors
                self.tape.add((up.detach().t() @ part) * scaling)
                self.tape.add((part @ down.detach().t()) * scaling)


def _linear(x: Tensor, modules: list[Any], fold: Tensor | None, tape: Any) -> Tensor:
    """Fused projection of several linear layers that read the same normalised input."""
    found = [_adapted(module) for module in modules]
    weight = torch.cat([item for item, _ in found]) if len(found) > 1 else found[0][0]
    weight = weight if fold is None else weight * fold
    if tape is None or not torch.is_grad_enabled() or all(factors is None for _, factors in found):
        return (x.reshape(-1, x.shape[-1]) @ weight.t()).view(*x.shape[:-1], -1)
    parts = [(item.shape[0], factors) for item, factors in found]
    return _RowLinear.apply(x, weight, _Watch(tape, parts, None if fold is None else fold.detach()))


def _layer(config: Any, layer: Any, hidden: Tensor, cosine: Tensor, sine: Tensor, tape: Any) -> Tensor:
    attention, mlp, eps = layer.self_attn, layer.mlp, config.rms_norm_eps
    heads, kv_heads, dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    rows, width, _ = hidden.shape
    modules = [attention.q_proj, attention.k_proj, attention.v_proj]
    joint = _linear(_Normal.apply(hidden, eps), modules, layer.input_layernorm.weight, tape)
    joint = joint.view(rows, width, heads + 2 * kv_heads, dim)
    scale = torch.cat([attention.q_norm.weight.expand(heads, -1), attention.k_norm.weight.expand(kv_heads, -1)])
    turned = _Normal.apply(joint[:, :, : heads + kv_heads], eps) * scale
    turned = _Rotate.apply(turned, cosine, sine).transpose(1, 2)
    repeat = heads // kv_heads
    keys = turned[:, heads:].repeat_interleave(repeat, dim=1)
    values = joint[:, :, heads + kv_heads :].transpose(1, 2).repeat_interleave(repeat, dim=1)
    mixed = F.scaled_dot_product_attention(turned[:, :heads], keys, values, is_causal=True)
    mixed = mixed.transpose(1, 2).reshape(rows, width, heads * dim)
    hidden = hidden + _linear(mixed, [attention.o_proj], None, tape)
    fold = layer.post_attention_layernorm.weight
    joint = _linear(_Normal.apply(hidden, eps), [mlp.gate_proj, mlp.up_proj], fold, tape)
    return hidden + _linear(_Gated.apply(joint), [mlp.down_proj], None, tape)


def score(model: Any, ids_BT: Tensor, rows_N: Tensor, places_N: Tensor, targets_N: Tensor, tape: Any) -> Any:
    """Log-probabilities (with gradient where enabled) and entropies of the targets, each [tokens], nats.

    ``tape``: receives per-row gradients of LoRA matrices by ``add([rows, ...])``; None measures nothing.
    """
    config, decoder = model.config, model.model
    angles = torch.arange(ids_BT.shape[1]).float()[:, None] * decoder.rotary_emb.inv_freq.float()
    cosine = torch.cat([angles.cos(), angles.cos()], dim=-1)[:, None]
    sine = torch.cat([-angles.sin(), angles.sin()], dim=-1)[:, None]
    hidden = F.embedding(ids_BT, decoder.embed_tokens.weight)
    for layer in decoder.layers:
        hidden = _layer(config, layer, hidden, cosine, sine, tape)
    chosen = _Normal.apply(hidden[rows_N, places_N], config.rms_norm_eps)
    head, _ = _adapted(model.lm_head)
    return _Score.apply(chosen @ (head * decoder.norm.weight).t(), targets_N)
