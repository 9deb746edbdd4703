"""The sampler against plain forward passes, and its invariants."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from workbench.contracts.errors import EngineFault
from worker.engine import fastpath
from worker.engine.noise import uniforms
from worker.engine.policy import adapt
from worker.engine.records import GeneratedTurn, RowStart, SamplingConfig
from worker.engine.sampler import Sampler, choose

STOP = (4,)
PROMPTS = ((1, 2, 3), (5, 6), (7, 8, 9, 10, 11), (1, 2, 3))


def wrap(model: Any) -> Any:
    weights = fastpath.merge_weights(model) if fastpath.supports(model) is None else None
    return SimpleNamespace(causal_model=lambda: model, fast_weights=lambda: weights)


@pytest.fixture(scope="module")
def model(model_folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def adapted(model_folder: Path) -> Any:
    """The model with LoRA whose B is not 0, so that merging has something to merge."""
    base = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    wrapped, trainable = adapt(base, {"kind": "lora", "rank": 4, "alpha": 8, "targets": "all-linear", "seed": "1"})
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in trainable.values():
            parameter.normal_(0, 0.2)
    return wrapped.get_base_model()


def episode(
    model: Any,
    *,
    fast: bool,
    rows: int = 4,
    turns: int = 3,
    config: SamplingConfig | None = None,
    until: int | None = None,
) -> dict[int, list[GeneratedTurn]]:
    """A few rows over a few turns, with Observations of different lengths."""
    config = config or SamplingConfig(1.0, 1.0, 0, 12)
    sampler = Sampler(wrap(model), config, rows=rows, stop_ids=STOP, context=512, fast=fast)
    starts = [RowStart(PROMPTS[index % 4], str(index + 1)) for index in range(rows)]
    handles = sampler.open(starts)
    found: dict[int, list[GeneratedTurn]] = {handle: [] for handle in handles}
    alive = set(handles)
    while alive:
        for turn in sampler.generate(sorted(alive), until=until):
            found[turn.row].append(turn)
            if len(found[turn.row]) == max(1, turns - turn.row % 2):
                alive.discard(turn.row)
                sampler.close([turn.row])
            else:
                sampler.append(turn.row, [9] * (1 + 5 * (turn.row % 3)))
    return found


def forced(model: Any, turn: GeneratedTurn) -> torch.Tensor:
    ids = torch.tensor([turn.prompt_ids + turn.generated_ids])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0].log_softmax(-1)
    start = len(turn.prompt_ids)
    return logits[start - 1 : -1].gather(-1, ids[0, start:, None])[:, 0]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("kind", ["model", "adapted"])
def test_logprobs_equal_teacher_forcing(kind: str, fast: bool, request: pytest.FixtureRequest) -> None:
    """Over three turns, KV kept, rows leaving early: at most 5e-5 in float32."""
    model = request.getfixturevalue(kind)
    for turns in episode(model, fast=fast).values():
        for turn in turns:
            assert float((torch.tensor(turn.logprobs) - forced(model, turn)).abs().max()) <= 5e-5


def test_fast_path_and_general_path_agree(adapted: Any) -> None:
    fast, general = episode(adapted, fast=True), episode(adapted, fast=False)
    for row, turns in fast.items():
        assert [turn.generated_ids for turn in turns] == [turn.generated_ids for turn in general[row]]
        for one, other in zip(turns, general[row], strict=True):
            assert np.allclose(one.logprobs, other.logprobs, atol=5e-5)
            assert np.allclose(one.entropies, other.entropies, atol=5e-5)


def test_architecture_with_learned_positions() -> None:
    """GPT-2 through the general path: rows of different lengths need their own position ids."""
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=16, n_positions=256, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3,
                        bos_token_id=1, eos_token_id=4)  # fmt: skip
    model = GPT2LMHeadModel(config).eval()
    for turns in episode(model, fast=True).values():
        for turn in turns:
            assert float((torch.tensor(turn.logprobs) - forced(model, turn)).abs().max()) <= 5e-5


def test_same_calls_give_identical_values(model: Any) -> None:
    assert episode(model, fast=True) == episode(model, fast=True)


@pytest.mark.parametrize("until", [1, 2, 4])
def test_rows_do_not_depend_on_their_company(model: Any, until: int) -> None:
    """Alone, in a batch of 4, with early hand-back: the same ids; log-probabilities within rounding."""
    batch = episode(model, fast=True, until=until)
    alone = episode(model, fast=True, rows=1)
    assert [turn.generated_ids for turn in batch[0]] == [turn.generated_ids for turn in alone[0]]
    assert np.allclose(batch[0][-1].logprobs, alone[0][-1].logprobs, atol=1e-5)


def test_prompts_are_carried_verbatim(model: Any) -> None:
    """Prompt of turn k + 1 = prompt of turn k + generated ids + appended ids."""
    for row, turns in episode(model, fast=True).items():
        for first, second in pairwise(turns):
            extra = (9,) * (1 + 5 * (row % 3))
            assert second.prompt_ids == first.prompt_ids + first.generated_ids + extra
            assert second.decision == first.decision + 1


def test_continue_from_resumes_the_same_noise(model: Any) -> None:
    """Context cut after 3 generated tokens, counter at token 3: the rest comes out the same."""
    config = SamplingConfig(1.0, 1.0, 0, 12)
    sampler = Sampler(wrap(model), config, rows=2, stop_ids=(), context=512)
    row = sampler.open([RowStart((1, 2, 3), "77")])[0]
    whole = sampler.generate([row])[0]
    again = sampler.continue_from((1, 2, 3, *whole.generated_ids[:3]), "77", token=3)
    rest = sampler.generate([again])[0]
    assert rest.generated_ids[:9] == whole.generated_ids[3:]


def test_long_prompts_enter_in_chunks(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = episode(model, fast=True)
    monkeypatch.setattr("worker.engine.sampler.INGEST_WIDTH", 2)
    chunked = episode(model, fast=True)
    for row, turns in expected.items():
        assert [turn.generated_ids for turn in turns] == [turn.generated_ids for turn in chunked[row]]


def test_recorded_logprobs_are_untempered(model: Any) -> None:
    """At temperature 0.5 with top-k 3 the sample changes; the recorded value is the raw log-probability."""
    config = SamplingConfig(0.5, 0.9, 3, 8)
    for turns in episode(model, fast=True, config=config, turns=1).values():
        assert float((torch.tensor(turns[0].logprobs) - forced(model, turns[0])).abs().max()) <= 5e-5


def test_choice_is_the_inverse_of_the_cumulative_distribution() -> None:
    """p = 0.5, 0.25, 0.25: u = 0.49 -> 0, 0.5 -> 1, 0.74 -> 1, 0.76 -> 2."""
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25]])).expand(4, 3)
    u = torch.tensor([0.49, 0.5 + 1e-6, 0.74, 0.76], dtype=torch.float64)
    ids, logprobs, entropies = choose(logits, u, SamplingConfig(1.0, 1.0, 0, 1))
    assert ids.tolist() == [0, 1, 1, 2]
    assert logprobs.exp().tolist() == pytest.approx([0.5, 0.25, 0.25, 0.25])
    assert entropies[0].item() == pytest.approx(1.5 * np.log(2))


def test_truncation_and_greedy() -> None:
    """p = 0.5, 0.3, 0.2. top-k 2 and top-p 0.6 both drop the last; greedy takes the first."""
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]]))
    last = torch.tensor([0.999], dtype=torch.float64)
    assert choose(logits, last, SamplingConfig(1.0, 1.0, 2, 1))[0].item() == 1
    assert choose(logits, last, SamplingConfig(1.0, 0.6, 0, 1))[0].item() == 1
    assert choose(logits, last, SamplingConfig(1.0, 0.4, 0, 1))[0].item() == 0
    assert choose(logits, last, SamplingConfig(0.0, 1.0, 0, 1))[0].item() == 0


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    logits = torch.tensor([[0.0, -torch.inf, -torch.inf]])
    greatest = torch.tensor([1 - 2.0**-52], dtype=torch.float64)
    ids, _, entropies = choose(logits, greatest, SamplingConfig(1.0, 1.0, 0, 1))
    assert ids.item() == 0 and entropies.item() == 0.0


def test_samples_follow_the_distribution(model: Any) -> None:
    """4,000 first tokens against the softmax: each share within 4 standard errors."""
    noise = torch.tensor([uniforms(str(seed), 0, 0, 1)[0] for seed in range(4000)])
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[1, 2, 3]])).logits[:, -1]
    p = logits.softmax(-1)[0]
    ids, _, _ = choose(logits.expand(4000, -1), noise, SamplingConfig(1.0, 1.0, 0, 1))
    shares = torch.bincount(ids, minlength=p.numel()) / 4000
    assert bool(((shares - p).abs() <= 4 * (p * (1 - p) / 4000).sqrt() + 1e-9).all())


def test_noise_depends_on_its_three_coordinates_alone() -> None:
    block = uniforms("12345678901234567890", 3, 0, 10)
    assert uniforms("12345678901234567890", 3, 4, 2).tolist() == block[4:6].tolist()
    assert not set(block) & set(uniforms("12345678901234567890", 4, 0, 10))
    assert not set(block) & set(uniforms("12345678901234567891", 3, 0, 10))
    many = uniforms("7", 0, 0, 100_000)
    assert abs(many.mean() - 0.5) < 0.004 and many.min() >= 0 and many.max() < 1


def test_refusals(model: Any) -> None:
    sampler = Sampler(wrap(model), SamplingConfig(1.0, 1.0, 0, 4), rows=1, stop_ids=STOP, context=8)
    with pytest.raises(EngineFault, match="rows: got 2 to open"):
        sampler.open([RowStart((1,), "1"), RowStart((2,), "2")])
    with pytest.raises(EngineFault, match="prompt_ids: got none"):
        sampler.open([RowStart((), "1")])
    row = sampler.open([RowStart((1,) * 8, "1")])[0]
    with pytest.raises(EngineFault, match="expected fewer than the context of 8"):
        sampler.generate([row])
    with pytest.raises(EngineFault, match="max_new_tokens"):
        SamplingConfig.from_spec({"temperature": 1.0})
