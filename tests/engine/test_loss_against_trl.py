"""Loss and gradient against TRL's own ``_compute_loss`` on identical tensors, in float32, to 1e-6.

Rows (p prompt, g sampled, o Observation, . padding; the padding id is the eos id):

    0  p p p g g o o g g     multi-turn, positive advantage
    1  p p g g g . . . .     negative advantage
    2  p p p p o o o o .     no policy token at all: counts in N
    3  p g g g g g g . .     zero-variance group: advantage 0, still in the denominator
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from contextlib import nullcontext
from types import MethodType, SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from worker.engine.batch import TokenSequence, TrajectoryTokens, make_micro_batch
from worker.engine.credit import token_credit
from worker.engine.forward import token_logprobs
from worker.engine.loss import CLIP_HIGH, CLIP_LOW, clip_sides, surrogate_terms, token_weights, weighted_loss
from worker.engine.reference import kl_estimates

EOS = 3
PROMPTS = ([5, 6, 7], [8, 9], [5, 6, 8, 9], [10])
COMPLETIONS = ([11, EOS, 12, 13, 4, EOS], [4, 5, EOS], [6, 7, 8, 9], [11, 12, 4, 5, 6, EOS])
OWNED = ([1, 1, 0, 0, 1, 1], [1, 1, 1], [0, 0, 0, 0], [1] * 6)
ADVANTAGES = (1.3, -0.7, 0.9, 0.0)
MAX_COMPLETION = 9


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(1)
    config = Qwen3Config(
        vocab_size=16, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, tie_word_embeddings=True, initializer_range=0.15,
    )  # fmt: skip
    return Qwen3ForCausalLM(config).eval()


@pytest.fixture(scope="module")
def old(model: Any) -> list[list[float]]:
    """Old log-probabilities per completion token: the present ones +-0.5, so that ratios are e**+-0.5 (1.65, 0.61)."""
    found = []
    for row, (prompt, completion) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        ids = torch.tensor([prompt + completion])
        with torch.no_grad():
            logprobs = model(input_ids=ids).logits[0].log_softmax(-1)
        present = logprobs[len(prompt) - 1 : -1].gather(-1, ids[0, len(prompt) :, None])[:, 0].tolist()
        found.append([value + (0.5 if (row + place) % 2 else -0.5) for place, value in enumerate(present)])
    return found


def trl_inputs(old: list[list[float]]) -> dict[str, torch.Tensor]:
    prompt_width, width = max(map(len, PROMPTS)), max(map(len, COMPLETIONS))

    def left(row: list[int], fill: int) -> list[int]:
        return [fill] * (prompt_width - len(row)) + row

    def right(row: list[Any], fill: Any) -> list[Any]:
        return row + [fill] * (width - len(row))

    return {
        "prompt_ids": torch.tensor([left(row, EOS) for row in PROMPTS]),
        "prompt_mask": torch.tensor([left([1] * len(row), 0) for row in PROMPTS]),
        "completion_ids": torch.tensor([right(row, EOS) for row in COMPLETIONS]),
        "completion_mask": torch.tensor([right([1] * len(row), 0) for row in COMPLETIONS]),
        "tool_mask": torch.tensor([right(row, 1) for row in OWNED]),
        "advantages": torch.tensor(ADVANTAGES),
        "old_per_token_logps": torch.tensor([right(row, 0.0) for row in old]),
        "num_items_in_batch": torch.tensor(float(sum(map(sum, OWNED)))),
    }


def trl_loss(
    ours: Any, old: list[list[float]], loss_type: str, low: float, high: float, beta: float = 0.0
) -> tuple[Any, torch.Tensor, dict[str, list[float]]]:
    """TRL's function on an object that holds the attributes it reads, and nothing else; also its model, a copy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from trl.trainer.grpo_trainer import GRPOTrainer, add_fused_lm_head

    model = copy.deepcopy(ours)
    add_fused_lm_head(model, temperature=1.0, cast_lm_head_to_fp32=False, outputs=("log_probs", "entropy"))
    metrics: dict[str, Any] = {"eval": defaultdict(list), "train": defaultdict(list)}
    accelerator = SimpleNamespace(
        num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x, autocast=nullcontext
    )
    trainer = SimpleNamespace(
        model=model, aux_loss_enabled=False, top_entropy_quantile=1.0, off_policy_mask_threshold=None,
        importance_sampling_level="token", beta=beta, loss_type=loss_type, epsilon_low=low, epsilon_high=high,
        args=SimpleNamespace(delta=None, steps_per_generation=1, use_bias_correction_kl=False), use_vllm=False,
        vllm_importance_sampling_correction=False, current_gradient_accumulation_steps=1, accelerator=accelerator,
        max_completion_length=MAX_COMPLETION, _entropy_bonus_enabled=False, use_adaptive_entropy=False,
        _metrics=metrics, temperature=1.0, model_kwarg_keys=set(), chunk_size=None,
    )  # fmt: skip
    logps = GRPOTrainer._get_per_token_logps_and_entropies
    trainer._get_per_token_logps_and_entropies = MethodType(getattr(logps, "__wrapped__", logps), trainer)
    inputs = trl_inputs(old)
    inputs["ref_per_token_logps"] = inputs["old_per_token_logps"]  # read where beta is not 0
    return model, GRPOTrainer._compute_loss(trainer, model, inputs), metrics["eval"]


def engine_batch() -> list[TrajectoryTokens]:
    found = []
    for number, (prompt, completion, owned, advantage) in enumerate(
        zip(PROMPTS, COMPLETIONS, OWNED, ADVANTAGES, strict=True)
    ):
        positions = tuple(len(prompt) + offset for offset, keep in enumerate(owned) if keep)
        sequence = TokenSequence(tuple(prompt + completion), positions)
        found.append(TrajectoryTokens(f"t{number}", "g", advantage, None, (sequence,), (0,) * len(positions), None, ()))
    return found


def engine_loss(
    model: Any, old: list[list[float]], aggregation: str, low: float, high: float
) -> tuple[torch.Tensor, torch.Tensor]:
    policy: Any = SimpleNamespace(causal_model=lambda: model, has_linear_head=lambda: True)
    trajectories = engine_batch()
    credits = [token_credit("vanilla", item.advantage, item.decisions_T, None) for item in trajectories]
    weights = token_weights(
        aggregation,
        [item.is_credited_T for item in credits],
        [item.decisions_T for item in trajectories],
        MAX_COMPLETION,
    )
    kept = [
        value for row, owned in zip(old, OWNED, strict=True) for value, keep in zip(row, owned, strict=True) if keep
    ]
    advantages = torch.tensor([value for item in credits for value in item.advantages_T])
    logprobs, _ = token_logprobs(policy, make_micro_batch(trajectories, range(4)))
    objective, ratios = surrogate_terms(logprobs, torch.tensor(kept), advantages, low, high)
    flat = torch.tensor([value for row in weights for value in row])
    return weighted_loss(objective, flat), clip_sides(ratios.detach(), advantages, low, high)


def gradients(model: Any, loss: torch.Tensor) -> torch.Tensor:
    model.zero_grad()
    loss.backward()
    return torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.2), (0.2, 0.28), (10.0, 10.0)])
@pytest.mark.parametrize(
    ("loss_type", "aggregation"),
    [("grpo", "trajectory_balanced"), ("dapo", "token_mean"), ("dr_grpo", "fixed_length")],
)
def test_loss_and_gradient_equal_trl(
    model: Any, old: list[list[float]], loss_type: str, aggregation: str, low: float, high: float
) -> None:
    their_model, theirs, metrics = trl_loss(model, old, loss_type, low, high)
    expected = gradients(their_model, theirs)
    ours, sides = engine_loss(model, old, aggregation, low, high)
    found = gradients(model, ours)
    assert abs(ours.item() - theirs.item()) < 1e-6
    assert float((found - expected).abs().max()) < 1e-6
    assert float(expected.abs().max()) > 1e-3  # the comparison is not of zeros
    assert float((sides == CLIP_LOW).float().mean()) == pytest.approx(metrics["clip_ratio/low_mean"][0])
    assert float((sides == CLIP_HIGH).float().mean()) == pytest.approx(metrics["clip_ratio/high_mean"][0])
    if low == 0.2:
        assert CLIP_LOW in sides and CLIP_HIGH in sides  # clipping acts on both sides in this batch


def test_divergence_and_entropy_equal_trl(model: Any, old: list[list[float]]) -> None:
    """TRL's logged ``kl`` (k3 to the reference) and ``entropy`` over the same tokens, to 1e-6."""
    _, _, metrics = trl_loss(model, old, "grpo", 0.2, 0.2, beta=0.1)
    policy: Any = SimpleNamespace(causal_model=lambda: model, has_linear_head=lambda: True)
    with torch.no_grad():
        logprobs, entropies = token_logprobs(policy, make_micro_batch(engine_batch(), range(4)))
    kept = [
        value for row, owned in zip(old, OWNED, strict=True) for value, keep in zip(row, owned, strict=True) if keep
    ]
    found = kl_estimates(logprobs, torch.tensor(kept))
    assert found.k3 == pytest.approx(metrics["kl"][0], abs=1e-6) and (found.k3 or 0.0) > 0.1
    assert float(entropies.mean()) == pytest.approx(metrics["entropy"][0], abs=1e-6)
