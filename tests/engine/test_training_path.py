"""The direct training pass against the transformers model: values, gradients, norms by trajectory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from worker.engine import training_path
from worker.engine.batch import MicroBatch, TokenSequence, TrajectoryTokens, make_micro_batch
from worker.engine.forward import per_trajectory_norms, takes_direct_path, token_logprobs
from worker.engine.policy import adapt

LORA = {"kind": "lora", "rank": 4, "alpha": 8, "targets": ["q_proj", "v_proj", "gate_proj", "down_proj"], "seed": "1"}


def build(folder: Path, adaptation: dict[str, Any]) -> Any:
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model, trainable = adapt(base, adaptation)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in trainable.values():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    return SimpleNamespace(
        causal_model=lambda: inner,
        trainable=trainable,
        has_linear_head=lambda: True,
        ref=SimpleNamespace(adaptation=adaptation),
    )


def micro_batch() -> MicroBatch:
    """Three trajectories of different lengths, the second in two sequences."""
    generator = torch.Generator().manual_seed(6)
    rows = [tuple(torch.randint(0, 15, (length,), generator=generator).tolist()) for length in (9, 5, 7, 12)]
    parts = [[TokenSequence(rows[0], (3, 4, 8))], [TokenSequence(rows[1], (2,)), TokenSequence(rows[2], (5, 6))],
             [TokenSequence(rows[3], (6, 7, 8, 11))]]  # fmt: skip
    trajectories = [
        TrajectoryTokens(str(i), "g", 1.0, None, tuple(part), (0,) * sum(len(s.positions) for s in part), None, ())
        for i, part in enumerate(parts)
    ]
    return make_micro_batch(trajectories, range(3))


def evaluate(policy: Any, micro: MicroBatch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[float] | None]:
    for parameter in policy.trainable.values():
        parameter.grad = None
    with per_trajectory_norms(policy, micro) as tape:
        logprobs, entropies = token_logprobs(policy, micro, tape)
        weights = torch.linspace(-1, 1, logprobs.numel())
        (logprobs * weights).sum().backward()
        norms = None if tape is None else tape.squares.sqrt().tolist()
    gradient = torch.cat([parameter.grad.reshape(-1) for parameter in policy.trainable.values()])
    return logprobs.detach(), entropies, gradient, norms


@pytest.mark.parametrize("adaptation", [LORA, {"kind": "full"}], ids=["lora", "full"])
def test_direct_path_equals_the_model(
    model_folder: Path, adaptation: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log-probabilities and entropies to 5e-6, gradients to 1e-5 of the largest, norms to 1e-4."""
    policy, micro = build(model_folder, adaptation), micro_batch()
    assert takes_direct_path(policy)
    direct = evaluate(policy, micro)
    monkeypatch.setattr(training_path, "LARGEST_HIDDEN", 0)
    assert not takes_direct_path(policy)
    general = evaluate(policy, micro)
    assert float((direct[0] - general[0]).abs().max()) < 5e-6
    assert float((direct[1] - general[1]).abs().max()) < 5e-6
    assert float((direct[2] - general[2]).abs().max()) < 1e-5 * float(general[2].abs().max())
    assert float(general[2].abs().max()) > 1e-2
    assert (direct[3] is None) == (general[3] is None) == (adaptation["kind"] == "full")
    if direct[3] is not None:
        assert direct[3] == pytest.approx(general[3], rel=1e-4)


@pytest.mark.parametrize("largest", [512, 0])
def test_values_with_and_without_gradient_are_bit_equal(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    """What makes the first ratio of a batch exactly 1, on either path."""
    monkeypatch.setattr(training_path, "LARGEST_HIDDEN", largest)
    policy, micro = build(model_folder, LORA), micro_batch()
    with torch.no_grad():
        frozen = token_logprobs(policy, micro)[0]
    assert torch.equal(frozen, evaluate(policy, micro)[0])


def test_norm_of_one_trajectory_is_the_norm_of_its_gradient(model_folder: Path) -> None:
    """A micro-batch of one: the measured norm equals that of the joint gradient."""
    policy = build(model_folder, LORA)
    whole = micro_batch()
    sequence = TokenSequence(tuple(whole.ids_BT[0, :9].tolist()), (3, 4, 8))
    alone = make_micro_batch([TrajectoryTokens("0", "g", 1.0, None, (sequence,), (0, 0, 0), None, ())], [0])
    _, _, gradient, norms = evaluate(policy, alone)
    assert norms is not None and norms[0] == pytest.approx(float(gradient.norm()), rel=1e-5)
