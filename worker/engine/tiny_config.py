"""Shape and initialisation of the embedded policy: a small Qwen3 decoder built from a configuration."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention


@dataclass(frozen=True)
class TinyShape:
    """Sizes of the decoder. With a vocabulary of 1,000 the default has about 0.42M parameters."""

    hidden_size: int = 128
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    feed_forward: int = 256
    max_positions: int = 2048
    rope_theta: float = 1e6


@dataclass(frozen=True)
class Initialisation:
    """How weights start.

    ``induction`` gives layer 0 a head on the token before and a head on the one before that, and
    layer 1 heads that look for an earlier place with the same two tokens and copy what followed it.
    ``match_dims`` coordinates of a token take part in the match; ``write_scale`` is the size of what
    a head adds to the residual stream.
    """

    std: float = 0.03
    output_std: float = 0.015  # o_proj and down_proj: a fresh block adds little
    embedding_std: float = 0.05
    induction: bool = True
    match_dims: int = 24
    offset_weights: tuple[float, ...] = (1.0, 1.0, 0.8, 0.6)  # over the fastest rotary frequencies
    sharpness: float = 2.0  # gain of the query and key norms of layers 0 and 1
    write_scale: float = 0.1
    copy_scale: float = 0.2
    slow_from: int = 7  # rotary frequencies from here on barely turn within a context


def tiny_config(vocab_size: int, shape: TinyShape, pad_id: int, begin_id: int, end_id: int) -> Qwen3Config:
    """The ``transformers`` configuration of the embedded policy; embeddings are tied."""
    return Qwen3Config(
        vocab_size=vocab_size,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.max_positions,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        tie_word_embeddings=True,
        use_sliding_window=False,
        attention_bias=False,
        attention_dropout=0.0,
        pad_token_id=pad_id,
        bos_token_id=begin_id,
        eos_token_id=end_id,
        dtype="float32",
        architectures=["Qwen3ForCausalLM"],
    )


def build_model(config: Qwen3Config, shape: TinyShape, start: Initialisation, seed: int) -> Qwen3ForCausalLM:
    """A freshly initialised float32 model; equal arguments give equal weights."""
    model = Qwen3ForCausalLM(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() < 2:
                parameter.fill_(1.0)
            elif "embed_tokens" in name:
                parameter.normal_(0.0, start.embedding_std, generator=generator)
            else:
                is_output = "o_proj" in name or "down_proj" in name
                parameter.normal_(0.0, start.output_std if is_output else start.std, generator=generator)
        if start.induction:
            _induction(model, shape, start, generator)
    return model


def _orthonormal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """``rows`` orthonormal vectors of length ``columns``."""
    return torch.linalg.qr(torch.randn(columns, rows, generator=generator))[0].T.contiguous()


def _induction(model: Qwen3ForCausalLM, shape: TinyShape, start: Initialisation, generator: torch.Generator) -> None:
    """Set layers 0 and 1 to two-token induction; see ``Initialisation``.

    The residual stream is split by an orthonormal basis: coordinate 0 is constant, ``before`` and
    ``before_that`` receive the match coordinates of the two earlier tokens, embeddings take the rest.
    """
    hidden, dims, size = shape.hidden_size, start.match_dims, shape.head_dim
    basis = torch.zeros(hidden - 1, hidden)
    basis[:, 1:] = _orthonormal(hidden - 1, hidden - 1, generator)
    before, before_that, own = basis[:dims], basis[dims : 2 * dims], basis[2 * dims :]
    embedding = model.model.embed_tokens.weight
    embedding.copy_(embedding @ own.T @ own * math.sqrt(hidden / len(own)))
    embedding[:, 0] = start.embedding_std * math.sqrt(hidden)
    match = own[:dims]
    first, second = model.model.layers[0].self_attn, model.model.layers[1].self_attn
    for attention in (first, second):
        attention.q_norm.weight.fill_(start.sharpness)
        attention.k_norm.weight.fill_(start.sharpness)
    per_group = shape.heads // shape.kv_heads
    for group, target in enumerate((before, before_that)):
        query, key = offset_vectors(shape, start, group + 1)
        keys = slice(group * size, (group + 1) * size)
        first.k_proj.weight[keys] *= start.std
        first.k_proj.weight[keys, 0] = key
        first.v_proj.weight[keys][:dims] = match / math.sqrt(hidden)
        for head in range(group * per_group, (group + 1) * per_group):
            rows = slice(head * size, (head + 1) * size)
            first.q_proj.weight[rows] *= start.std
            first.q_proj.weight[rows, 0] = query
        rows = slice(group * per_group * size, group * per_group * size + dims)
        first.o_proj.weight[:, rows] = target.T * start.write_scale * math.sqrt(hidden)
    _match_and_copy(second, shape, start, (before, before_that, own), generator)


def offset_vectors(shape: TinyShape, start: Initialisation, offset: int) -> tuple[Tensor, Tensor]:
    """Query and key whose rotary score peaks ``offset`` tokens back.

    With k = [w, 0] and q = [w cos(offset f), -w sin(offset f)] (f: rotary frequencies, halves paired
    as in rotate-half) the score of positions i and j is sum w^2 cos((i - j - offset) f).
    """
    half = shape.head_dim // 2
    turned = offset * shape.rope_theta ** (-torch.arange(half, dtype=torch.float32) / half)
    weights = torch.zeros(half)
    weights[: len(start.offset_weights)] = torch.tensor(start.offset_weights)
    return torch.cat([weights * turned.cos(), -weights * turned.sin()]), torch.cat([weights, torch.zeros(half)])


def _match_and_copy(
    attention: Qwen3Attention,
    shape: TinyShape,
    start: Initialisation,
    spaces: tuple[Tensor, Tensor, Tensor],
    generator: torch.Generator,
) -> None:
    """Layer 1: (this token, the one before) asks for (the one before, the one before that); copy the embedding."""
    before, before_that, own = spaces
    half, size, dims = shape.head_dim // 2, shape.head_dim, start.match_dims
    slow = [*range(start.slow_from, half), *range(half + start.slow_from, size)]
    per_group = shape.heads // shape.kv_heads
    gain = start.write_scale / (start.embedding_std * math.sqrt(2))  # written over own size, after the layer norm
    for group in range(shape.kv_heads):
        near = (
            _orthonormal(len(slow), dims, generator)
            if len(slow) <= dims
            else _orthonormal(dims, len(slow), generator).T
        )
        far = (
            _orthonormal(len(slow), dims, generator)
            if len(slow) <= dims
            else _orthonormal(dims, len(slow), generator).T
        )
        query, key = torch.zeros(size, shape.hidden_size), torch.zeros(size, shape.hidden_size)
        query[slow] = near @ own[:dims] * gain + far @ before
        key[slow] = near @ before + far @ before_that
        rows, keys = (
            slice(group * per_group * size, (group * per_group + 1) * size),
            slice(group * size, (group + 1) * size),
        )
        attention.q_proj.weight[rows] = query
        attention.k_proj.weight[keys] = key
        copied = own[group * size : (group + 1) * size]
        attention.v_proj.weight[keys][: len(copied)] = copied
        attention.o_proj.weight[:, rows][:, : len(copied)] = copied.T * start.copy_scale
