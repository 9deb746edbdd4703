"""The embedded tokenizer: a byte-level BPE trained on the environment's own text.

The pre-tokenisation isolates runs of letters, up to three digits, single white-space characters and
runs of punctuation, so that a name or a document number is the same token with and without a space
before it, and a piece of JSON syntax is one token. Copying depends on it.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from workbench.contracts.canonical import digest
from worker.environments.base import Environment

PAD, BEGIN, SYSTEM, USER = "<|pad|>", "<|begin|>", "<|system|>", "<|user|>"
ASSISTANT, OBSERVATION, ACTION, END = "<|assistant|>", "<|observation|>", "<|action|>", "<|end|>"
SPECIAL_TOKENS = (PAD, BEGIN, SYSTEM, USER, ASSISTANT, OBSERVATION, ACTION, END)
PIECES = r"[A-Za-z]+|\d{1,3}|\s|[^\sA-Za-z0-9]+"


def corpus(environment: Environment, seed: int, demonstrations: int) -> Iterator[str]:
    """Instructions, tool names and the text of the first ``demonstrations`` scripted episodes."""
    yield environment.instructions()
    yield "tools " + " ".join(tool.name for tool in environment.tools())
    for item in itertools.islice(environment.demonstrations(seed), demonstrations):
        yield item.prompt
        for turn in item.turns:
            yield turn.think
            yield turn.action
            if turn.observation is not None:
                yield turn.observation


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Train on ``texts``; equal texts in equal order give equal bytes."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return wrap(tokenizer)


def wrap(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """The ``transformers`` face of the tokenizer; special tokens are never read out of plain text."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BEGIN,
        eos_token=END,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT, OBSERVATION, ACTION],
        clean_up_tokenization_spaces=False,
        model_max_length=4096,
    )


def tokenizer_sha256(tokenizer: PreTrainedTokenizerFast) -> str:
    """Digest of the tokenizer's definition: vocabulary, merges, pre-tokenisation, special tokens.

    Padding and truncation are settings of the last call, not of the tokenizer, and are left out.
    """
    definition = json.loads(tokenizer.backend_tokenizer.to_str())
    definition.pop("padding", None)
    definition.pop("truncation", None)
    return digest(definition)


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer saved in ``folder``."""
    return PreTrainedTokenizerFast.from_pretrained(str(folder))
