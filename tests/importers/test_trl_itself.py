"""Completions that TRL's own trainer wrote: two steps of a tiny model, read back equal to what the rewards saw."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from workbench.importers import RolloutItem, detect, open_import

WORDS = ["<pad>", "<eos>", "what", "is", "one", "two", "three", "plus", "?"]


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", padding_side="left")


def _train(folder: Path, seen: list[tuple[str, float]]) -> Any:
    import torch
    from datasets import Dataset
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(WORDS), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip

    def ones(completions: list[str], **_: Any) -> list[float]:
        scores = [float(text.count("one")) for text in completions]
        seen.extend(zip(completions, scores, strict=True))
        return scores

    def length(completions: list[str], **_: Any) -> list[float]:
        return [float(len(text.split())) for text in completions]

    arguments = GRPOConfig(
        output_dir=str(folder), per_device_train_batch_size=4, num_generations=4, max_completion_length=6, max_steps=2,
        logging_steps=1, log_completions=True, num_completions_to_print=0, report_to=[], use_cpu=True, bf16=False,
        save_strategy="no", disable_tqdm=True, seed=1,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=Qwen3ForCausalLM(config), args=arguments, reward_funcs=[ones, length], processing_class=_tokenizer(),
        train_dataset=Dataset.from_list([{"prompt": "what is one plus two ?"}] * 8),
    )  # fmt: skip
    trainer.train()
    return trainer


@pytest.mark.slow
def test_completions_of_a_real_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every completion with its two rewards, under its step; advantages of a group sum to 0."""
    seen: list[tuple[str, float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        _train(tmp_path, seen)
    capsys.readouterr()
    assert detect(tmp_path) == "trl-completions"
    items = list(open_import(tmp_path, "trl-completions"))
    rollouts = [item for item in items if isinstance(item, RolloutItem)]
    assert len(rollouts) == len(items) == 8 and {item.grade for item in rollouts} == {"C"}
    assert [item.step for item in rollouts] == [1] * 4 + [2] * 4
    assert sorted((item.completion, item.rewards["ones"]) for item in rollouts) == sorted(seen)
    assert all(item.rewards["length"] == len((item.completion or "").split()) for item in rollouts)
    for step in (1, 2):
        total = sum(item.advantage or 0.0 for item in rollouts if item.step == step)
        assert total == pytest.approx(0.0, abs=1e-5)
