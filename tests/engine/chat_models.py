"""A tiny byte-level tokenizer with Qwen special tokens, chat templates of the installed TRL, tiny models."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from worker.environments.base import ToolSpec

TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
SEARCH = ToolSpec(
    name="search",
    description="Search one source.",
    parameters={
        "type": "object",
        "properties": {
            "source": {"type": "string", "enum": ["trial", "label"]},
            "query": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "minimum": 1},
        },
        "required": ["source", "query"],
    },
)


def template(name: str) -> str:
    """Chat template ``name`` of the installed TRL, read as text (TRL itself is not imported)."""
    spec = find_spec("trl")
    assert spec is not None and spec.origin is not None
    return (Path(spec.origin).parent / "chat_templates" / f"{name}.jinja").read_text(encoding="utf-8")


@cache
def _backend(tags_are_tokens: bool) -> str:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: index for index, symbol in enumerate(alphabet)}
    merges: list[tuple[str, str]] = []
    for pair in ("se", "ar", "ch", "na", "me", "er", "th", '":', ">Ċ", "Ċ<"):  # some merges, two across boundaries
        merges.append((pair[0], pair[1]))
        vocabulary[pair] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIALS])
    if tags_are_tokens:
        tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in TAGS])
    return str(tokenizer.to_str())


def qwen_tokenizer(
    template_name: str | None = None,
    *,
    tags_are_tokens: bool = True,
    text: str | None = None,
    pieces: tuple[str, ...] = (),
) -> Any:
    """Byte-level BPE of 266 pieces, three special tokens and, as Qwen has it, six tags as ordinary added tokens.

    ``pieces``: further texts that become one token each.
    """
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_backend(tags_are_tokens)),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=["<|im_start|>"],
        clean_up_tokenization_spaces=False,
    )
    if pieces:
        tokenizer.add_tokens([AddedToken(piece, special=False, normalized=False) for piece in pieces])
    tokenizer.chat_template = text if text is not None else template(template_name or "qwen3_instruct_2507")
    return tokenizer


def tiny_model(vocabulary: int, *, kind: str = "qwen3", layers: int = 2, seed: int = 0) -> Any:
    """Random weights, hidden 128 (a multiple of NF4's block of 64), two layers: Qwen3 or Qwen2."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(
        kind,
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        **({"head_dim": 32} if kind == "qwen3" else {}),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(config).float().eval()
