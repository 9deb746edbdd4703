"""A random model that speaks in tool calls, and a scripted environment for it.

The model's layers are random and small; its output head is a table of token pairs, so that sampling gives legal
calls and finishes most of the time, with a share of noise::

    header -> <think> 'why' </think> -> <tool_call> -> look(a | b | c) -> </tool_call> -> end
           -> <tool_call>                           -> finish(x | y)   -> </tool_call> -> end
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tests.engine.chat_models import qwen_tokenizer
from tests.engine.support import TinyEnvironment
from worker.environments.base import ToolSpec

CALL_START, CALL_STOP = '\n{"name": "look", "arguments": {"key": "', '"}}\n'
FINISH_START, FINISH_STOP = '\n{"name": "finish", "arguments": {"answer": "', '", "citations": []}}\n'
PIECES = (CALL_START, CALL_STOP, FINISH_START, FINISH_STOP, "why")
SHARPNESS = 12.0  # logit of a listed pair; all others lie around 0
PAIRS: dict[str, dict[str, float]] = {
    "\n": {"<tool_call>": 0.7, "<think>": 0.3},
    "<think>": {"why": 1.0},
    "why": {"</think>": 1.0},
    "</think>": {"<tool_call>": 1.0},
    "<tool_call>": {CALL_START: 0.6, FINISH_START: 0.4},
    CALL_START: {"a": 0.5, "b": 0.3, "c": 0.2},
    **{letter: {CALL_STOP: 1.0} for letter in "abc"},
    FINISH_START: {"x": 0.5, "y": 0.5},
    **{letter: {FINISH_STOP: 1.0} for letter in "xy"},
    CALL_STOP: {"</tool_call>": 1.0},
    FINISH_STOP: {"</tool_call>": 1.0},
    "</tool_call>": {"<|im_end|>": 1.0},
}


class ChatEnvironment(TinyEnvironment):
    """``TinyEnvironment`` with a tool whose arguments have a schema."""

    id = "tests.engine.chat_world:ChatEnvironment"

    def tools(self) -> Sequence[ToolSpec]:
        key = {"type": "string", "minLength": 1, "maxLength": 1, "description": "One letter."}
        return [
            ToolSpec("look", "Look a letter up.", {"type": "object", "properties": {"key": key}, "required": ["key"]})
        ]


def _config(kind: str, vocabulary: int) -> Any:
    from transformers import AutoConfig

    sizes: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
    }
    if kind != "qwen2":
        sizes["head_dim"] = 32
    if kind != "qwen3_vl":
        return AutoConfig.for_model(kind, tie_word_embeddings=False, **sizes)
    rope = {"rope_type": "default", "rope_theta": 10000, "mrope_section": [8, 4, 4], "mrope_interleaved": True}
    vision = {
        "depth": 1,
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 128,
        "num_position_embeddings": 16,
        "deepstack_visual_indexes": [0],
    }
    text = {**sizes, "rope_parameters": rope, "tie_word_embeddings": False}
    return AutoConfig.for_model(kind, text_config=text, vision_config=vision, tie_word_embeddings=False)


def write_chat_model(folder: Path, *, kind: str = "qwen3", template: str = "qwen3_instruct_2507") -> Path:
    """Save model and tokenizer."""
    from worker.engine.quantized import auto_class

    tokenizer = qwen_tokenizer(template, pieces=PIECES)
    config = _config(kind, len(tokenizer))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = auto_class(config).from_config(config).float()
        embedding = model.get_input_embeddings().weight
        with torch.no_grad():
            embedding.normal_()
            embedding /= embedding.square().mean(-1, keepdim=True).sqrt()
            head = model.get_output_embeddings().weight.zero_()
            for before, followers in PAIRS.items():
                source = embedding[_token(tokenizer, before)] / embedding.shape[1]
                for after, share in followers.items():
                    head[_token(tokenizer, after)] += (SHARPNESS + math.log(share)) * source
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _token(tokenizer: Any, text: str) -> int:
    (token,) = tokenizer(text, add_special_tokens=False)["input_ids"]
    return int(token)
