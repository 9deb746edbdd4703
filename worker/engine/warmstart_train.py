"""The two training stages of a warm start: copying random tokens, then masked SFT on demonstrations.

Everything is seeded by the recipe and runs on whatever thread count the caller set (one, in a build).
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import Qwen3ForCausalLM

from workbench.contracts.seeds import derive_seed
from worker.environments.base import Environment

from . import training_path
from .compact import CompactFormatter

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class CopyStage:
    """Synthetic copying: repeated segments and key -> value recall over random vocabulary ids."""

    steps: int = 30
    batch: int = 32
    length: int = 48
    muon_lr: float = 0.003
    adamw_lr: float = 0.003


@dataclass(frozen=True)
class SftStage:
    """Masked cross-entropy: assistant tokens weigh 1, Observation tokens ``observation_weight``."""

    steps: int = 320
    batch: int = 10
    demonstrations: int = 3200
    bucket_batches: int = 16  # sequences are sorted by length within windows of this many batches
    muon_lr: float = 0.004
    adamw_lr: float = 0.003
    warmup: int = 20
    decay_share: float = 0.4
    final_share: float = 0.03
    observation_weight: float = 0.0
    clip: float = 1.0
    is_direct: bool = False  # the update's own forward and backward: the same loss in four fifths of the time


class Optimizers:
    """Muon on 2-D weights other than the embeddings, AdamW on the rest; one learning-rate factor for both."""

    def __init__(self, model: Qwen3ForCausalLM, muon_lr: float, adamw_lr: float):
        matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n]
        others = [p for n, p in model.named_parameters() if p.dim() != 2 or "embed" in n]
        muon = torch.optim.Muon(matrices, lr=muon_lr, weight_decay=0.0, momentum=0.95, adjust_lr_fn="match_rms_adamw")
        adamw = torch.optim.AdamW(others, lr=adamw_lr, betas=(0.9, 0.95), weight_decay=0.0)
        self.parts: list[tuple[torch.optim.Optimizer, float]] = [(muon, muon_lr), (adamw, adamw_lr)]
        self.parameters = matrices + others

    def step(self, factor: float, clip: float) -> None:
        """One step at ``factor`` times the base learning rates, then zero the gradients."""
        nn.utils.clip_grad_norm_(self.parameters, clip)
        for optimizer, rate in self.parts:
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def weighted_loss(model: Qwen3ForCausalLM, ids_BT: Tensor, weights_BT: Tensor) -> Tensor:
    """Mean cross-entropy of token t given those before it, weighted by ``weights_BT[:, t]``.

    Right padding needs no attention mask under causal attention; logits are computed only where a
    weight is positive.
    """
    hidden = model.model(input_ids=ids_BT[:, :-1]).last_hidden_state
    wanted = weights_BT[:, 1:] > 0
    losses = nn.functional.cross_entropy(model.lm_head(hidden[wanted]), ids_BT[:, 1:][wanted], reduction="none")
    weights = weights_BT[:, 1:][wanted]
    return (losses * weights).sum() / weights.sum()


def direct_loss(model: Qwen3ForCausalLM, ids_BT: Tensor, weights_BT: Tensor) -> Tensor:
    """``weighted_loss`` by the update's direct path; equal to rounding, not to the bit."""
    wanted = weights_BT[:, 1:] > 0
    rows_N, places_N = torch.nonzero(wanted, as_tuple=True)
    logprobs_N, _ = training_path.score(
        model, ids_BT[:, :-1], rows_N, places_N, ids_BT[:, 1:][wanted], None, with_entropy=False
    )
    weights_N = weights_BT[:, 1:][wanted]
    return -(logprobs_N * weights_N).sum() / weights_N.sum()


def copy_batch(rng: random.Random, vocabulary: Sequence[int], batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Half repeated segments, half key -> value recall; the weight is 1 where the answer can be copied."""
    rows, weights = [], []
    for index in range(batch):
        ids, weight = (_repeated if index % 2 else _recall)(rng, vocabulary, length)
        rows.append(ids)
        weights.append(weight)
    return torch.tensor(rows), torch.tensor(weights)


def _repeated(rng: random.Random, vocabulary: Sequence[int], length: int) -> tuple[list[int], list[float]]:
    """A random segment after a random lead-in, repeated to the end; weight 1 from the second token of each repeat."""
    period, lead = rng.randint(6, length // 3), rng.randint(0, 8)
    segment = rng.sample(vocabulary, period)
    ids = rng.sample(vocabulary, lead)
    weights = [0.0] * (lead + period)
    while len(ids) < length:
        ids += segment
    while len(weights) < length:
        weights += [0.0] + [1.0] * (period - 1)
    return ids[:length], weights[:length]


def _recall(rng: random.Random, vocabulary: Sequence[int], length: int) -> tuple[list[int], list[float]]:
    """Pairs key value, then the keys again in random order; weight 1 on each recalled value."""
    count = length // 4
    drawn = rng.sample(vocabulary, 2 * count)
    pairs = list(zip(drawn[::2], drawn[1::2], strict=True))
    asked = [rng.choice(pairs) for _ in range((length - 2 * count) // 2)]
    ids = [token for pair in [*pairs, *asked] for token in pair]
    return ids, [0.0] * (2 * count) + [0.0, 1.0] * len(asked)


def train_copying(
    model: Qwen3ForCausalLM, stage: CopyStage, seed: int, vocabulary: Sequence[int], progress: Progress
) -> None:
    """The copy stage; constant learning rate after five warm-up steps."""
    rng = random.Random(int(derive_seed("warmstart.copy", seed)))
    optimizers = Optimizers(model, stage.muon_lr, stage.adamw_lr)
    model.train()
    for step in range(stage.steps):
        ids, weights = copy_batch(rng, vocabulary, stage.batch, stage.length)
        weighted_loss(model, ids, weights).backward()
        optimizers.step(min(1.0, (step + 1) / 5), 1.0)
        progress("copy", step + 1, stage.steps)


@torch.no_grad()
def copy_accuracy(
    model: Qwen3ForCausalLM, seed: int, vocabulary: Sequence[int], batch: int = 64, length: int = 48
) -> float:
    """Share of copyable tokens that the model ranks first, on fresh synthetic sequences."""
    rng = random.Random(int(derive_seed("warmstart.copy_check", seed)))
    ids, weights = copy_batch(rng, vocabulary, batch, length)
    model.eval()
    wanted = weights[:, 1:] > 0
    hidden = model.model(input_ids=ids[:, :-1]).last_hidden_state[wanted]
    return float((model.lm_head(hidden).argmax(-1) == ids[:, 1:][wanted]).float().mean())


def encode_demonstrations(
    environment: Environment, formatter: CompactFormatter, seed: int, count: int, observation_weight: float
) -> tuple[list[tuple[list[int], list[float]]], dict[str, int], dict[str, int]]:
    """(ids, weights) of ``count`` demonstrations; in how many each behaviour, and each state, occurs."""
    coverage: Counter[str] = Counter()
    states: Counter[str] = Counter()
    encoded = []
    instructions, tools = environment.instructions(), environment.tools()
    for item in itertools.islice(environment.demonstrations(seed), count):
        coverage.update(set(item.coverage))
        states.update(set(item.states))
        ids = formatter.start(instructions, tools, item.prompt)
        weights = [0.0] * len(ids)
        for turn in item.turns:
            written = formatter.write(turn.think, turn.action)
            ids += written
            weights += [1.0] * len(written)
            if turn.observation is not None:
                seen = formatter.observe(turn.observation)
                ids += seen
                weights += [0.0] + [observation_weight] * (len(seen) - 2) + [0.0]
        encoded.append((ids, weights))
    return encoded, dict(sorted(coverage.items())), dict(sorted(states.items()))


def _buckets(encoded: Sequence[tuple[list[int], list[float]]], stage: SftStage, seed: int) -> Iterator[list[int]]:
    """Endless batches of indices: shuffled each epoch, sorted by length inside a window."""
    rng = random.Random(int(derive_seed("warmstart.sft", seed)))
    window = stage.batch * stage.bucket_batches
    while True:
        order = list(range(len(encoded)))
        rng.shuffle(order)
        for start in range(0, len(order) - window + 1, window):
            chunk = sorted(order[start : start + window], key=lambda index: len(encoded[index][0]))
            batches = [chunk[at : at + stage.batch] for at in range(0, window, stage.batch)]
            rng.shuffle(batches)
            yield from batches


def rate_factor(step: int, stage: SftStage) -> float:
    """Linear warm-up, constant, linear decay to ``final_share`` over the last ``decay_share`` of the steps."""
    left = (stage.steps - step) / max(1.0, stage.decay_share * stage.steps)
    return min(1.0, (step + 1) / stage.warmup) * min(1.0, max(stage.final_share, left))


def train_sft(
    model: Qwen3ForCausalLM,
    stage: SftStage,
    seed: int,
    encoded: Sequence[tuple[list[int], list[float]]],
    pad_id: int,
    progress: Progress,
) -> float:
    """The SFT stage; returns the mean loss of the last twenty steps."""
    optimizers = Optimizers(model, stage.muon_lr, stage.adamw_lr)
    batches = _buckets(encoded, stage, seed)
    losses: list[float] = []
    model.train()
    for step in range(stage.steps):
        chosen = [encoded[index] for index in next(batches)]
        longest = max(len(ids) for ids, _ in chosen)
        ids = torch.tensor([ids + [pad_id] * (longest - len(ids)) for ids, _ in chosen])
        weights = torch.tensor([weights + [0.0] * (longest - len(weights)) for _, weights in chosen])
        loss = (direct_loss if stage.is_direct else weighted_loss)(model, ids, weights)
        loss.backward()
        optimizers.step(rate_factor(step, stage), stage.clip)
        losses.append(float(loss.detach()))
        progress("sft", step + 1, stage.steps)
    return sum(losses[-20:]) / max(1, len(losses[-20:]))
