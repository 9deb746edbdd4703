"""A model profile of one's own, and a tiny model to try it with: ``python -m workbench_inventory.model FOLDER``.

The model has random weights and says nothing sensible. It shows the path that your own model takes:
a folder of ``transformers`` files whose tokenizer has a chat template, read through the formatter ``chat``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from worker.engine.profiles import CHAT, FLOAT32, LOCAL, ModelProfile, lora

FOLDER = os.environ.get("INVENTORY_MODEL", str(Path(tempfile.gettempdir()) / "inventory-tiny-chat"))
TINY_CHAT = ModelProfile(
    name="inventory-tiny-chat",
    model=FOLDER,
    source=LOCAL,
    dtype=FLOAT32,
    compute_dtype=FLOAT32,
    adaptation=lora(rank=4, alpha=8),
    formatter=CHAT,
    device="cpu",
    not_tested=("Random weights: every answer is noise.",),
)

TEMPLATE = """\
{%- for message in messages %}
{%- if message.role == 'system' %}
{{- '<|im_start|>system\\n' + message.content }}
{%- if tools %}
{{- '\\nTools:' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{{- '\\nCall one: <tool_call>{"name": ..., "arguments": {...}}</tool_call>' }}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + message.role + '\\n' + message.content }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""


def write(folder: Path) -> Path:
    """Save a random Qwen3 of 0.4M parameters with a byte-level tokenizer; equal calls write equal files."""
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={symbol: index for index, symbol in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, special=True) for text in ("<|pad|>", "<|im_start|>", "<|im_end|>")])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|pad|>", extra_special_tokens=["<|im_start|>"]
    )
    tokenizer.chat_template = TEMPLATE
    config = AutoConfig.for_model(
        "qwen3", vocab_size=len(tokenizer), hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=4096,
        tie_word_embeddings=True,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config).float()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path(sys.argv[1] if len(sys.argv) > 1 else FOLDER))}\n")
