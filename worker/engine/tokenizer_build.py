"""The embedded tokenizer: a byte-level BPE trained on the environment's own text.

The pre-tokenisation isolates runs of letters, up to three digits, single white-space characters and
runs of punctuation, so that a name or a document number is the same token with and without a space
before it, and a piece of JSON syntax is one token. Copying depends on it. Where text is code, punctuation of the
code must not merge with that of the JSON around it: then ``TextPieces`` names other pieces, and whole texts.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from workbench.contracts.canonical import digest
from worker.environments.base import Environment, ToolSpec

PAD, BEGIN, SYSTEM, USER = "<|pad|>", "<|begin|>", "<|system|>", "<|user|>"
ASSISTANT, OBSERVATION, ACTION, END = "<|assistant|>", "<|observation|>", "<|action|>", "<|end|>"
SPECIAL_TOKENS = (PAD, BEGIN, SYSTEM, USER, ASSISTANT, OBSERVATION, ACTION, END)
PIECES = r"[A-Za-z]+|\d{1,3}|\s|[^\sA-Za-z0-9]+"


@dataclass(frozen=True)
class TextPieces:
    """How text is cut before the byte-level BPE learns. Data of a recipe.

    ``pattern``: runs that no merge crosses. ``whole``: texts that are one token each wherever they stand, before the
    pattern is asked (the longest wins). ``is_system_whole``: the environment's constant system text is one token.
    """

    pattern: str = PIECES
    whole: tuple[str, ...] = ()
    is_system_whole: bool = False


PLAIN = TextPieces()


def corpus(environment: Environment, seed: int, demonstrations: int, with_system: bool = True) -> Iterator[str]:
    """Instructions, tool names (``with_system``) and the text of the first ``demonstrations`` scripted episodes."""
    if with_system:
        yield environment.instructions()
        yield tool_line(environment.tools())
    for item in itertools.islice(environment.demonstrations(seed), demonstrations):
        yield item.prompt
        for turn in item.turns:
            yield turn.think
            yield turn.action
            if turn.observation is not None:
                yield turn.observation


def tool_line(tools: Sequence[ToolSpec]) -> str:
    """The last line of the system text."""
    return "tools " + " ".join(tool.name for tool in tools)


def system_text(instructions: str, tools: Sequence[ToolSpec]) -> str:
    """What an episode begins with, before its prompt."""
    return f"{instructions}\n{tool_line(tools)}"


def train_tokenizer(
    texts: Iterable[str], vocab_size: int, pieces: TextPieces = PLAIN, system: str | None = None
) -> PreTrainedTokenizerFast:
    """Train on ``texts``; equal texts in equal order give equal bytes.

    ``vocab_size``: special tokens, bytes and merges; whole texts come on top. ``system``: ``system_text``.
    """
    whole = [*pieces.whole, *([system] if pieces.is_system_whole and system is not None else [])]
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces.pattern), behavior="isolated"),
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
    tokenizer.train_from_iterator(_without(texts, whole) if whole else texts, trainer)
    if whole:
        tokenizer.add_tokens([AddedToken(text, normalized=False) for text in whole])
    return wrap(tokenizer)


def _without(texts: Iterable[str], whole: Sequence[str]) -> Iterator[str]:
    """What is left of texts between whole ones: merges are learnt from it alone."""
    cut = re.compile("|".join(re.escape(text) for text in sorted(whole, key=len, reverse=True)))
    for text in texts:
        yield from filter(None, cut.split(text))


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
