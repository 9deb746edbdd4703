"""The ``compact`` formatter: special tokens for roles, a think segment, then one JSON action.

A prompt is ``<|begin|><|system|>instructions tools<|user|>question<|assistant|>``; a generated turn is
``think <|action|> JSON <|end|>``; an Observation is ``<|observation|>text<|assistant|>``. Generated ids
are carried verbatim: nothing is decoded and tokenised again, and text cannot smuggle in a special token.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from workbench.contracts.canonical import digest, parse_json
from workbench.contracts.capture import SEGMENT_ACTION, SEGMENT_ANSWER, SEGMENT_THINK
from workbench.contracts.errors import CanonicalError
from worker.environments.base import FinishAction, ToolAction, ToolSpec

from .render import ParsedTurn
from .tokenizer_build import (
    ACTION,
    ASSISTANT,
    BEGIN,
    END,
    OBSERVATION,
    PAD,
    SYSTEM,
    USER,
    system_text,
    tokenizer_sha256,
)
from .toolschema import schema_error

VERSION = "1"
TEMPLATE = (
    f"{BEGIN}{SYSTEM}INSTRUCTIONS\ntools NAMES{USER}PROMPT{ASSISTANT}THINK{ACTION}JSON{END}{OBSERVATION}TEXT{ASSISTANT}"
)
UNREADABLE = "\ufffd"


def parse_action(text: str, tools: Sequence[ToolSpec]) -> tuple[ToolAction | FinishAction | None, str | None]:
    """Strictly read ``{"tool": name, argument: value ...}`` or ``{"finish": answer, "cite": [ids]}``.

    Returns (action, None) or (None, error). Nothing is repaired: unknown tools, missing, unknown or
    mistyped arguments, repeated keys and text around the object are errors.
    """
    try:
        value = parse_json(text)
    except CanonicalError as error:
        return None, f"action: {error}"
    if not isinstance(value, dict):
        return None, f"action: got {type(value).__name__}, expected an object"
    if "finish" in value:
        if set(value) != {"finish", "cite"}:
            return None, f"finish: got the fields {sorted(value)}, expected finish and cite"
        answer, cited = value["finish"], value["cite"]
        if not isinstance(answer, str):
            return None, f"finish: got {answer!r}, expected a string"
        if not isinstance(cited, list) or not all(isinstance(item, str) and item for item in cited):
            return None, f"cite: got {cited!r}, expected a list of document ids"
        return FinishAction(answer, tuple(cited)), None
    name = value.pop("tool", None)
    spec = next((item for item in tools if item.name == name), None)
    if spec is None:
        return None, f"tool: got {name!r}, expected one of {[item.name for item in tools]} or a finish"
    fault = schema_error(value, spec.parameters, spec.name)
    return (None, fault) if fault is not None else (ToolAction(spec.name, value), None)


class CompactFormatter:
    """Formatter of the embedded policy; see ``render.Formatter``."""

    name = "compact"

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        vocabulary = tokenizer.get_vocab()
        missing = [
            item for item in (PAD, BEGIN, SYSTEM, USER, ASSISTANT, OBSERVATION, ACTION, END) if item not in vocabulary
        ]
        if missing:
            raise ValueError(f"tokenizer: got none of {missing}, expected the special tokens of the compact formatter")
        self.tokenizer = tokenizer
        self._plain = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())  # a copy: the setting stays here
        self._plain.encode_special_tokens = True
        self._plain.no_padding()
        self._plain.no_truncation()
        self.pad_id, self.begin_id = vocabulary[PAD], vocabulary[BEGIN]
        self.system_id, self.user_id = vocabulary[SYSTEM], vocabulary[USER]
        self.assistant_id, self.observation_id = vocabulary[ASSISTANT], vocabulary[OBSERVATION]
        self.action_id, self.end_id = vocabulary[ACTION], vocabulary[END]
        self.special_ids = frozenset(vocabulary[item] for item in tokenizer.all_special_tokens)

    def identity(self) -> str:
        """Digest of name, version, template, special ids and tokenizer."""
        return self._identity

    @functools.cached_property
    def _identity(self) -> str:
        return digest(
            {
                "name": self.name,
                "version": VERSION,
                "template": TEMPLATE,
                "special_ids": sorted(self.special_ids),
                "tokenizer": tokenizer_sha256(self.tokenizer),
            }
        )

    def stop_ids(self) -> tuple[int, ...]:
        """A turn ends with ``<|end|>``."""
        return (self.end_id,)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; the spelling of a special token in it stays plain text."""
        ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        if self.special_ids.intersection(ids):
            raise ValueError("text: got a special token out of plain text, expected none")
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; bytes that are no UTF-8 become U+FFFD."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def start(self, instructions: str, tools: Sequence[ToolSpec], prompt: str) -> list[int]:
        """Ids of the first prompt, assistant header included."""
        system = [self.begin_id, self.system_id, *self.encode(system_text(instructions, tools))]
        return [*system, self.user_id, *self.encode(prompt), self.assistant_id]

    def observe(self, text: str) -> list[int]:
        """Ids appended after a turn: the Observation, then the next assistant header."""
        return [self.observation_id, *self.encode(text), self.assistant_id]

    def write(self, think: str, action: str) -> list[int]:
        """Ids of a turn as the policy would generate it (for demonstrations only)."""
        return [*self.encode(think), self.action_id, *self.encode(action), self.end_id]

    def force_think(self, think_ids: Sequence[int]) -> list[int]:
        """Leading ids of a turn with this think segment: it and the action mark."""
        return [*think_ids, self.action_id]

    def read(self, generated_ids: Sequence[int], tools: Sequence[ToolSpec]) -> ParsedTurn:
        """Strict reading of ``think <|action|> JSON <|end|>``; anything else is an error."""
        ids = list(generated_ids)
        cut = ids.index(self.action_id) if self.action_id in ids else len(ids)
        think_ids, action_ids = ids[:cut], ids[cut + 1 :]
        has_end = bool(action_ids) and action_ids[-1] == self.end_id
        body = action_ids[:-1] if has_end else action_ids
        think_text, action_text = self.decode(think_ids), self.decode(body)
        action: ToolAction | FinishAction | None = None
        if cut == len(ids):
            error: str | None = f"turn: got no {ACTION}, expected one after the think segment"
        elif not has_end:
            error = f"turn: got no {END}, expected it after the action"
        elif self.special_ids.intersection([*think_ids, *body]):
            error = "turn: got a further special token, expected plain text around one action mark"
        elif UNREADABLE in think_text or UNREADABLE in action_text:
            error = "turn: got bytes that are not UTF-8, expected text"
        else:
            action, error = parse_action(action_text, tools)
        rest = SEGMENT_ANSWER if isinstance(action, FinishAction) else SEGMENT_ACTION
        segments = [SEGMENT_THINK] * min(cut + 1, len(ids)) + [rest] * len(action_ids)
        return ParsedTurn(think_text or None, action_text, action, error, tuple(segments), (1,) * len(ids))
