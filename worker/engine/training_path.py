"""Direct forward pass with gradients for Qwen3-style models: no padding, fused projections.

Same function as the transformers model up to rounding. Rows lie one after the other without padding,
each up to the last place that predicts a policy token; the last layer computes keys and values of
all of them, and everything else of those places alone. LoRA deltas are merged into the weights;
their gradients are products of rank r, taken by trajectory where norms are asked for. Norm weights
are folded into the projections that follow them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

LARGEST_HIDDEN = 512  # beyond it the library's kernels win; the general path serves
LONGEST_SCORES = 768  # ids of a row up to which attention scores are kept for the backward pass


class _Normal(torch.autograd.Function):
    """x / rms(x) over the last dimension; backward r * (g - y * mean(g * y))."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> Tensor:
        squares = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_()
        scale = squares.div_(x.shape[-1]).add_(eps).rsqrt_()
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
        logs_NV = torch.log_softmax(logits_NV, -1)
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


class _LowRank(torch.autograd.Function):
    """x @ weight.T with the LoRA factors of the parts of ``weight`` as its parameters.

    ``weight`` [out, in] has deltas and ``fold`` in it already. With dW = g.T x by trajectory, the factors'
    gradients are dB = s dW A.T and dA = s B.T dW; neither needs dW itself.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, fused: _Fused, segments: tuple[int, ...], tape: Any, *_: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.fused, ctx.segments, ctx.tape = fused, segments, tape
        return x @ weight.t()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        fused, sizes = ctx.fused, ctx.segments
        down = torch.cat([part.down for part in fused.parts])
        narrow_x = x @ (down if fused.fold is None else down * fused.fold).t()  # [tokens, ranks]
        narrow_g = torch.cat([gradient[:, part.start : part.stop] @ part.up for part in fused.parts], dim=1)
        count, ranks = len(sizes), down.shape[0]
        ups, downs = x.new_empty(count, weight.shape[0], ranks), x.new_empty(count, ranks, x.shape[1])
        start = 0
        for index, size in enumerate(sizes):
            part = slice(start, start + size)
            torch.mm(gradient[part].t(), narrow_x[part], out=ups[index])
            torch.mm(narrow_g[part].t(), x[part], out=downs[index])
            start += size
        if fused.fold is not None:
            downs *= fused.fold
        found: list[Tensor] = []
        first = 0
        for item in fused.parts:
            last = first + item.down.shape[0]
            own_down = downs[:, first:last] * item.scaling
            own_up = ups[:, item.start : item.stop, first:last] * item.scaling
            first = last
            if ctx.tape is not None:
                ctx.tape.add(own_down)
                ctx.tape.add(own_up)
            found += [own_down.sum(0), own_up.sum(0)]
        return (gradient @ weight, None, None, None, None, *found)


class _Attention(torch.autograd.Function):
    """Causal attention of rows that lie one after the other; queries are scaled and may be fewer than keys.

    ``query`` [queries, heads, head_dim]; ``keys``, ``values`` [tokens, kv_heads, head_dim]. Heads that share a key
    head stand in the place of query positions: no repeated keys.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, values: Tensor, spans: tuple[_Span, ...]) -> Tensor:
        kv_heads, repeat, dim = keys.shape[1], query.shape[1] // keys.shape[1], query.shape[2]
        result = torch.empty_like(query, memory_format=torch.contiguous_format)
        saved = []
        for span in spans:
            number = span.queries.stop - span.queries.start
            own = query[span.queries].view(number, kv_heads, repeat, dim).permute(1, 2, 0, 3).reshape(kv_heads, -1, dim)
            key, value = keys[span.keys].transpose(0, 1), values[span.keys].transpose(0, 1)
            scores = torch.bmm(own, key.transpose(1, 2)).view(kv_heads, repeat, number, -1)
            shares = torch.softmax(scores.add_(span.mask), -1).view(kv_heads, repeat * number, -1)
            mixed = torch.bmm(shares, value).view(kv_heads, repeat, number, dim)
            result[span.queries] = mixed.permute(2, 0, 1, 3).reshape(number, -1, dim)
            saved += [own, shares]
        ctx.save_for_backward(keys, values, *saved)
        ctx.spans = spans
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        keys, values, *saved = ctx.saved_tensors
        kv_heads, dim = keys.shape[1:]
        d_query = torch.empty_like(gradient, memory_format=torch.contiguous_format)
        d_keys, d_values = torch.empty_like(keys), torch.empty_like(values)
        for span, own, shares in zip(ctx.spans, saved[::2], saved[1::2], strict=True):
            number = span.queries.stop - span.queries.start
            incoming = gradient[span.queries].view(number, kv_heads, -1, dim).permute(1, 2, 0, 3).reshape(own.shape)
            key, value = keys[span.keys].transpose(0, 1), values[span.keys].transpose(0, 1)
            d_values[span.keys] = torch.bmm(shares.transpose(1, 2), incoming).transpose(0, 1)
            d_shares = torch.bmm(incoming, value.transpose(1, 2))
            d_scores = torch._softmax_backward_data(d_shares, shares, -1, torch.float32)
            d_keys[span.keys] = torch.bmm(d_scores.transpose(1, 2), own).transpose(0, 1)
            back = torch.bmm(d_scores, key).view(kv_heads, -1, number, dim)
            d_query[span.queries] = back.permute(2, 0, 1, 3).reshape(number, -1, dim)
        return d_query, d_keys, d_values, None


@dataclass(frozen=True)
class _Part:
    """One LoRA module inside a fused weight: its rows, factors (detached) and scaling."""

    start: int
    stop: int
    down: Tensor  # A [rank, in]
    up: Tensor  # B [out, rank]
    scaling: float


@dataclass(frozen=True)
class _Fused:
    """The LoRA modules of a fused weight. ``fold``: norm weight on the inputs, or None."""

    parts: tuple[_Part, ...]
    fold: Tensor | None


@dataclass(frozen=True)
class _Span:
    """One row: its queries and its keys in the flat order; ``mask`` [queries, keys] is 0 or -inf."""

    queries: slice
    keys: slice
    mask: Tensor


@dataclass(frozen=True)
class _Flat:
    """Rows without padding. ``segments``: tokens by trajectory, or all of them as one where nothing is measured."""

    ids: Tensor
    positions: Tensor
    spans: tuple[_Span, ...]
    segments: tuple[int, ...]


def _factors(module: Any) -> tuple[Any, Any, float] | None:
    """(A, B, scaling) of a module's active LoRA adapter, or None."""
    for name in getattr(module, "active_adapters", ()):
        if name in getattr(module, "lora_A", {}):
            return module.lora_A[name].weight, module.lora_B[name].weight, float(module.scaling[name])
    return None


def _linear(x: Tensor, modules: list[Any], fold: Tensor | None, segments: tuple[int, ...], tape: Any) -> Tensor:
    """Fused projection of several linear layers that read the same normalised input."""
    weights, parts, factors, start = [], [], [], 0
    for module in modules:
        weight, found = getattr(module, "base_layer", module).weight, _factors(module)
        if found is not None:
            down, up, scaling = found
            factors += [down, up]
            parts.append(_Part(start, start + weight.shape[0], down.detach(), up.detach(), scaling))
            weight = torch.addmm(weight, up.detach(), down.detach(), alpha=scaling)
        weights.append(weight)
        start += weight.shape[0]
    joint = torch.cat(weights) if len(weights) > 1 else weights[0]
    joint = joint if fold is None else joint * fold
    if not factors:
        return x @ joint.t()
    result: Tensor = _LowRank.apply(x, joint, _Fused(tuple(parts), fold), segments, tape, *factors)
    return result


def _attend(query: Tensor, keys: Tensor, values: Tensor, spans: tuple[_Span, ...]) -> Tensor:
    """``_Attention``, or the library's kernel by row where scores would take too much memory."""
    if max(span.mask.shape[1] for span in spans) <= LONGEST_SCORES:
        result: Tensor = _Attention.apply(query, keys, values, spans)
        return result
    rows = [
        F.scaled_dot_product_attention(
            query[span.queries].transpose(0, 1)[None],
            keys[span.keys].transpose(0, 1)[None],
            values[span.keys].transpose(0, 1)[None],
            attn_mask=span.mask,
            scale=1.0,
            enable_gqa=True,
        )[0].transpose(0, 1)
        for span in spans
    ]
    return torch.cat(rows)


def _turn(joint: Tensor, weight: Tensor, eps: float, cosine: Tensor, sine: Tensor) -> Tensor:
    """Normalised, scaled and rotated heads."""
    turned: Tensor = _Rotate.apply(_Normal.apply(joint, eps) * weight, cosine, sine)
    return turned


def _layer(
    config: Any, layer: Any, hidden: Tensor, angles: tuple[Tensor, Tensor], flat: _Flat, last: _Flat | None, tape: Any
) -> Tensor:
    """One decoder layer; with ``last`` its output at the places of ``last`` alone."""
    attention, mlp, eps = layer.self_attn, layer.mlp, config.rms_norm_eps
    heads, kv_heads, dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    cosine, sine = angles
    fold = layer.input_layernorm.weight
    q_norm, k_norm = attention.q_norm.weight * dim**-0.5, attention.k_norm.weight
    normal = _Normal.apply(hidden, eps)
    out = flat if last is None else last
    if last is None:
        modules = [attention.q_proj, attention.k_proj, attention.v_proj]
        joint = _linear(normal, modules, fold, flat.segments, tape).view(-1, heads + 2 * kv_heads, dim)
        scale = torch.cat([q_norm.expand(heads, -1), k_norm.expand(kv_heads, -1)])
        turned = _turn(joint[:, : heads + kv_heads], scale, eps, cosine, sine)
        query, keys, values = turned[:, :heads], turned[:, heads:], joint[:, heads + kv_heads :]
    else:
        hidden = hidden[last.ids]
        query = _linear(normal[last.ids], [attention.q_proj], fold, last.segments, tape).view(-1, heads, dim)
        query = _turn(query, q_norm, eps, cosine[last.ids], sine[last.ids])
        pair = _linear(normal, [attention.k_proj, attention.v_proj], fold, flat.segments, tape)
        pair = pair.view(-1, 2 * kv_heads, dim)
        keys, values = _turn(pair[:, :kv_heads], k_norm, eps, cosine, sine), pair[:, kv_heads:]
    mixed = _attend(query, keys, values, out.spans).reshape(-1, heads * dim)
    hidden = hidden + _linear(mixed, [attention.o_proj], None, out.segments, tape)
    fold = layer.post_attention_layernorm.weight
    joint = _linear(_Normal.apply(hidden, eps), [mlp.gate_proj, mlp.up_proj], fold, out.segments, tape)
    return hidden + _linear(_Gated.apply(joint), [mlp.down_proj], None, out.segments, tape)


def _flatten(ids_BT: Tensor, rows_N: Tensor, places_N: Tensor, tape: Any) -> tuple[_Flat, _Flat]:
    """Rows without padding, each to its last place; and the places. ``ids`` of the second: flat places."""
    rows, places = rows_N.tolist(), places_N.tolist()
    lengths, counts = [0] * len(ids_BT), [0] * len(ids_BT)
    for row, place in zip(rows, places, strict=True):
        lengths[row], counts[row] = max(lengths[row], place + 1), counts[row] + 1
    used = [row for row, length in enumerate(lengths) if length]
    longest = max(lengths)
    causal = torch.full((longest, longest), -torch.inf).triu_(1)
    spans, few, offsets, start, first = [], [], [0] * len(lengths), 0, 0
    for row in used:
        length, count = lengths[row], counts[row]
        offsets[row] = start
        keys = slice(start, start + length)
        spans.append(_Span(keys, keys, causal[:length, :length]))
        chosen = causal[places_N[first : first + count], :length]
        few.append(_Span(slice(first, first + count), keys, chosen))
        start, first = start + length, first + count
    ids = torch.cat([ids_BT[row, : lengths[row]] for row in used])
    positions = torch.cat([torch.arange(lengths[row]) for row in used])
    flat_places = places_N + torch.tensor(offsets)[rows_N]
    segments = [_by_owner(numbers, tape) for numbers in (lengths, counts)]
    return _Flat(ids, positions, tuple(spans), segments[0]), _Flat(flat_places, places_N, tuple(few), segments[1])


def _by_owner(numbers: list[int], tape: Any) -> tuple[int, ...]:
    """Tokens by trajectory, whose rows are neighbours."""
    if tape is None:
        return (sum(numbers),)
    totals = [0] * tape.trajectories
    for owner, number in zip(tape.owners_B.tolist(), numbers, strict=True):
        totals[owner] += number
    return tuple(totals)


def score(
    model: Any,
    ids_BT: Tensor,
    rows_N: Tensor,
    places_N: Tensor,
    targets_N: Tensor,
    tape: Any,
    *,
    with_entropy: bool = True,
) -> Any:
    """Log-probabilities (with gradient where enabled) and entropies of the targets, each [tokens], nats.

    ``rows_N`` never falls: places stand row by row. ``tape``: receives gradients of LoRA matrices by trajectory by
    ``add([trajectories, ...])``; None measures nothing. Without ``with_entropy`` None stands in their place.
    """
    config, decoder = model.config, model.model
    flat, last = _flatten(ids_BT, rows_N, places_N, tape)
    turns = flat.positions.float()[:, None] * decoder.rotary_emb.inv_freq.float()
    cosine = torch.cat([turns.cos(), turns.cos()], dim=-1)[:, None]
    sine = torch.cat([-turns.sin(), turns.sin()], dim=-1)[:, None]
    hidden = F.embedding(flat.ids, decoder.embed_tokens.weight)
    for layer in decoder.layers[:-1]:
        hidden = _layer(config, layer, hidden, (cosine, sine), flat, None, tape)
    hidden = _layer(config, decoder.layers[-1], hidden, (cosine, sine), flat, last, tape)
    logits_NV = _Normal.apply(hidden, config.rms_norm_eps) @ (model.lm_head.weight * decoder.norm.weight).t()
    if not with_entropy:
        return torch.log_softmax(logits_NV, -1).gather(-1, targets_N[:, None])[:, 0], None
    return _Score.apply(logits_NV, targets_N)
