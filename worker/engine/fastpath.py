"""Direct inference for Qwen3-style models in float32 over merged weights and static KV slots.

Same arithmetic as the transformers model up to rounding: norm weights are folded into the
projections that follow them, query, key and value share one product, gate and up another, and the
keys and values of a slot lie token-major in one tensor. Inference only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

GROW = 256  # capacity grows by whole blocks and at least doubles: growing copies every slot


def effective_weight(module: Any) -> Tensor:
    """Weight of a linear layer with its active LoRA deltas added; a detached copy."""
    base = getattr(module, "base_layer", module)
    weight = base.weight.detach().clone()
    for name in getattr(module, "active_adapters", ()):
        if name in getattr(module, "lora_A", {}):
            weight += module.get_delta_weight(name).detach().to(weight.dtype)
    return weight


@dataclass(frozen=True)
class _Layer:
    qkv: Tensor  # [hidden, (heads + 2 * kv_heads) * head_dim], input norm folded in
    head_norm: Tensor  # [heads + kv_heads, head_dim], query norm scaled by head_dim ** -0.5
    out: Tensor  # [heads * head_dim, hidden]
    gate_up: Tensor  # [hidden, 2 * ffn], post-attention norm folded in
    down: Tensor  # [ffn, hidden]


@dataclass(frozen=True)
class Qwen3Weights:
    """Merged weights of one adapter; shared by every sampler of that adapter."""

    embedding: Tensor
    layers: tuple[_Layer, ...]
    head: Tensor  # [hidden, vocabulary], final norm folded in
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    inverse_frequencies: Tensor


def supports(model: Any) -> str | None:
    """None where the fast path applies, else the reason why it does not."""
    config = model.config
    if getattr(config, "model_type", None) != "qwen3":
        return f"model_type {getattr(config, 'model_type', None)}"
    if next(model.parameters()).dtype != torch.float32 or next(model.parameters()).device.type != "cpu":
        return "weights are not float32 on a CPU"
    if config.attention_bias or config.hidden_act != "silu":
        return "attention bias or another activation"
    if set(config.layer_types) != {"full_attention"}:
        return "layers without full attention"
    if config.rope_parameters.get("rope_type", "default") != "default":
        return "scaled rotary positions"
    return None


def merge_weights(model: Any) -> Qwen3Weights:
    """Merged, fused weights of a Qwen3 causal model (with or without LoRA layers inside)."""
    config, decoder = model.config, model.model
    head_dim = config.head_dim
    layers = []
    for layer in decoder.layers:
        attention, mlp = layer.self_attn, layer.mlp
        before = layer.input_layernorm.weight.detach()
        after = layer.post_attention_layernorm.weight.detach()
        qkv = torch.cat([effective_weight(getattr(attention, name)) for name in ("q_proj", "k_proj", "v_proj")])
        gate_up = torch.cat([effective_weight(mlp.gate_proj), effective_weight(mlp.up_proj)])
        query_norm = attention.q_norm.weight.detach() * head_dim**-0.5
        head_norm = torch.cat(
            [
                query_norm.expand(config.num_attention_heads, -1),
                attention.k_norm.weight.detach().expand(config.num_key_value_heads, -1),
            ]
        )
        layers.append(
            _Layer(
                (qkv * before).t().contiguous(),
                head_norm.contiguous(),
                effective_weight(attention.o_proj).t().contiguous(),
                (gate_up * after).t().contiguous(),
                effective_weight(mlp.down_proj).t().contiguous(),
            )
        )
    head = effective_weight(model.lm_head) * decoder.norm.weight.detach()
    frequencies = decoder.rotary_emb.inv_freq.detach().float()
    return Qwen3Weights(
        decoder.embed_tokens.weight.detach().clone(),
        tuple(layers),
        head.t().contiguous(),
        config.num_attention_heads,
        config.num_key_value_heads,
        head_dim,
        config.rms_norm_eps,
        frequencies,
    )


class Qwen3Slots:
    """KV slots over ``Qwen3Weights``; the interface is that of ``slots.SlotBackend``.

    ``keys_values`` [layer, slot, position, 2 * kv_heads, head_dim]; ``bias`` [slot, position] is 0 where
    a position holds a token and -inf elsewhere.
    """

    def __init__(self, weights: Qwen3Weights, slots: int):
        self.weights = weights
        self.slots = slots
        self.capacity = 0
        size = (len(weights.layers), slots, 0, 2 * weights.kv_heads, weights.head_dim)
        self.keys_values = torch.zeros(size)
        self.bias = torch.full((slots, 0), -torch.inf)
        self.cosine = torch.zeros(0, weights.head_dim)
        self.sine = torch.zeros(0, weights.head_dim)

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` positions a slot."""
        if capacity <= self.capacity:
            return
        extra = -(-max(capacity, 2 * self.capacity) // GROW) * GROW - self.capacity
        shape = list(self.keys_values.shape)
        shape[2] = extra
        self.keys_values = torch.cat([self.keys_values, torch.zeros(shape)], dim=2)
        self.bias = torch.cat([self.bias, torch.full((self.slots, extra), -torch.inf)], dim=1)
        self.capacity += extra
        angles = torch.arange(self.capacity).float()[:, None] * self.weights.inverse_frequencies
        self.cosine = torch.cat([angles.cos(), angles.cos()], dim=-1)
        self.sine = torch.cat([-angles.sin(), angles.sin()], dim=-1)  # sign of the rotation included

    def permute(self, targets: Sequence[int], sources: Sequence[int], length: int) -> None:
        """Slot ``targets[i]`` receives what slot ``sources[i]`` held, for the first ``length`` positions."""
        to, origin = torch.tensor(targets), torch.tensor(sources)
        self.keys_values[:, to, :length] = self.keys_values[:, origin, :length]
        self.bias[to] = self.bias[origin]

    def clear(self, slots: Sequence[int]) -> None:
        """Forget the tokens of ``slots``."""
        self.bias[torch.tensor(slots)] = -torch.inf

    def forward(self, ids_BT: Tensor, starts_B: Tensor, counts_B: Tensor, length: int) -> Tensor:
        """Logits [rows, vocabulary] after the last of ``counts_B`` new tokens of slots 0 to rows - 1.

        ``starts_B``: tokens already in each slot. ``length``: largest number of tokens in any of these
        slots afterwards, padding included. Padding behind ``counts_B`` is overwritten later.
        """
        rows, width = ids_BT.shape
        if width == 1:
            return self._decode(ids_BT[:, 0], starts_B, rows, length)
        offsets_T = torch.arange(width)
        positions_BT = starts_B[:, None] + offsets_T
        row_B1 = torch.arange(rows)[:, None]
        real_BT = offsets_T < counts_B[:, None]
        self.bias[row_B1.expand(rows, width)[real_BT], positions_BT[real_BT]] = 0.0
        seen = torch.arange(length) <= positions_BT[:, :, None]
        mask = torch.where(seen, 0.0, -torch.inf)[:, None]
        hidden = self.weights.embedding[ids_BT.reshape(-1)]
        cosine = self.cosine[positions_BT].view(rows * width, 1, -1)
        sine = self.sine[positions_BT].view(rows * width, 1, -1)
        heads, kv_heads, dim = self.weights.heads, self.weights.kv_heads, self.weights.head_dim
        for index, layer in enumerate(self.weights.layers):
            query, new = self._project(layer, hidden, cosine, sine)
            cache = self.keys_values[index]
            cache[row_B1, positions_BT] = new.view(rows, width, 2 * kv_heads, dim)
            keys = cache[:rows, :length, :kv_heads].transpose(1, 2)
            values = cache[:rows, :length, kv_heads:].transpose(1, 2)
            query = query.view(rows, width, heads, dim).transpose(1, 2)
            mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=1.0, enable_gqa=True)
            hidden = self._finish(layer, hidden, mixed.transpose(1, 2).reshape(rows * width, heads * dim))
        last = hidden.view(rows, width, -1)[torch.arange(rows), counts_B - 1]
        return self._head(last)

    def _decode(self, ids_B: Tensor, starts_B: Tensor, rows: int, length: int) -> Tensor:
        heads, kv_heads, dim = self.weights.heads, self.weights.kv_heads, self.weights.head_dim
        row_B = torch.arange(rows)
        self.bias[row_B, starts_B] = 0.0
        mask = self.bias[:rows, None, None, :length]
        cosine, sine = self.cosine[starts_B][:, None], self.sine[starts_B][:, None]
        hidden = self.weights.embedding[ids_B]
        for index, layer in enumerate(self.weights.layers):
            query, new = self._project(layer, hidden, cosine, sine)
            cache = self.keys_values[index]
            cache[row_B, starts_B] = new
            keys = cache[:rows, :length, :kv_heads].transpose(1, 2)
            values = cache[:rows, :length, kv_heads:].transpose(1, 2)
            # Heads that share a key head stand in the place of query positions: no repeated keys.
            grouped = query.reshape(rows, kv_heads, heads // kv_heads, dim)
            mixed = F.scaled_dot_product_attention(grouped, keys, values, attn_mask=mask, scale=1.0)
            hidden = self._finish(layer, hidden, mixed.reshape(rows, heads * dim))
        return self._head(hidden)

    def _project(self, layer: _Layer, hidden: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor]:
        """Rotated queries [n, heads, head_dim]; rotated keys and values [n, 2 * kv_heads, head_dim]."""
        weights = self.weights
        rotated = weights.heads + weights.kv_heads
        joint = (self._normal(hidden) @ layer.qkv).view(hidden.shape[0], -1, weights.head_dim)
        turned = joint[:, :rotated]
        turned = turned * torch.rsqrt(turned.square().mean(-1, keepdim=True) + weights.eps) * layer.head_norm
        turned = torch.addcmul(turned * cosine, turned.roll(weights.head_dim // 2, -1), sine)
        joint[:, :rotated] = turned
        return joint[:, : weights.heads], joint[:, weights.heads :]

    def _finish(self, layer: _Layer, hidden: Tensor, mixed: Tensor) -> Tensor:
        hidden = torch.addmm(hidden, mixed, layer.out)
        gate, up = (self._normal(hidden) @ layer.gate_up).chunk(2, dim=-1)
        return torch.addmm(hidden, F.silu(gate) * up, layer.down)

    def _head(self, hidden: Tensor) -> Tensor:
        return self._normal(hidden) @ self.weights.head

    def _normal(self, hidden: Tensor) -> Tensor:
        return hidden * torch.rsqrt(hidden.square().mean(-1, keepdim=True) + self.weights.eps)
