"""Reading one generated chat turn: an optional think segment, then exactly one tool call.

    [<think> text </think>] <tool_call> {"name": ..., "arguments": {...}} </tool_call> end-of-turn

White space may stand between the parts and nothing else may. The text is taken from the generated
ids by incremental decoding; nothing is tokenised and nothing is repaired.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.contracts.canonical import canonical_bytes, parse_json
from workbench.contracts.capture import SEGMENT_ACTION, SEGMENT_ANSWER, SEGMENT_THINK
from workbench.contracts.errors import CanonicalError
from worker.engine.render import ParsedTurn
from worker.engine.toolschema import schema_error
from worker.environments.base import FinishAction, ToolAction, ToolSpec

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"
GRAMMAR_TAGS = (THINK_OPEN, THINK_CLOSE, CALL_OPEN, CALL_CLOSE)
MAX_NESTING = 32
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
REPLACEMENT = "\ufffd"  # what a decoder gives for bytes that are no character

FINISH_TOOL = ToolSpec(
    name="finish",
    description="Give the final answer and the ids of the documents that it rests on. Ends the episode.",
    parameters={
        "type": "object",
        "properties": {
            "answer": {"type": "string", "description": "The answer."},
            "citations": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "description": "Ids of cited documents.",
            },
        },
        "required": ["answer", "citations"],
    },
)


class _Unreadable(Exception):
    """A turn outside the grammar; its text becomes ``ParsedTurn.error``."""


@dataclass(frozen=True)
class TurnMarks:
    """Ids and state that reading depends on. Filled by ``ChatFormatter``.

    ``refused_ids``: special ids that no turn may contain before its end.
    ``opens_in_think``: the assistant header itself ends inside an open think segment.
    """

    turn_end_id: int
    refused_ids: frozenset[int]
    opens_in_think: bool


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """Text of ids exactly as the vocabulary has it: special tokens kept, no clean-up of spaces."""
    return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


def decode_pieces(tokenizer: Any, ids: Sequence[int]) -> list[tuple[str, int]]:
    """(text, number of ids) of the shortest runs of ids that end between two characters.

    One id usually; several where a character's bytes lie in several ids. Each run is decoded
    behind the run before it, so that tokenizers that write spaces by context agree with the whole.
    """
    pieces: list[tuple[str, int]] = []
    context, start, before = 0, 0, ""
    for stop in range(1, len(ids) + 1):
        text = decode(tokenizer, ids[context:stop])
        if text.endswith(REPLACEMENT) and stop < len(ids):
            continue
        pieces.append((text[len(before) :], stop - start))
        context, start = start, stop
        before = decode(tokenizer, ids[context:start])
    whole = decode(tokenizer, ids)
    if "".join(text for text, _ in pieces) != whole:
        return [(whole, len(ids))]  # this tokenizer's text is not a concatenation: one run, one segment
    return pieces


def label_segments(pieces: Sequence[tuple[str, int]], think_end: int, last: int) -> tuple[int, ...]:
    """Segment of each id. A token that spans the boundary belongs to the segment of its first character.

    ``think_end``: characters of the think segment, tags included; ``last``: what follows it.
    """
    segments: list[int] = []
    position = 0
    for text, count in pieces:
        segments += [SEGMENT_THINK if position < think_end else last] * count
        position += len(text)
    return tuple(segments)


def _split_think(text: str, opens_in_think: bool) -> tuple[str | None, int, str | None]:
    """(think text, characters up to its end, error). Without a think segment: (None, 0, None)."""
    start = 0
    if not opens_in_think:
        if not text.lstrip().startswith(THINK_OPEN):
            return None, 0, None
        start = text.index(THINK_OPEN) + len(THINK_OPEN)
    close = text.find(THINK_CLOSE, start)
    if close < 0:
        return text[start:], len(text), f"think: got no {THINK_CLOSE}, expected one before the tool call"
    if text.find(THINK_OPEN, start, close) >= 0:
        return text[start:close], close + len(THINK_CLOSE), f"think: got a second {THINK_OPEN}, expected one segment"
    return text[start:close], close + len(THINK_CLOSE), None


def _nesting(source: str) -> int:
    """Deepest bracket nesting outside strings: bounded before parsing, so that no answer depends on stack depth."""
    depth = deepest = 0
    for character in _STRING.sub("", source):
        depth += (character in "[{") - (character in "]}")
        deepest = max(deepest, depth)
    return deepest


def _read_call(text: str, tools: Sequence[ToolSpec]) -> ToolAction | FinishAction:
    body = text.strip()
    for tag in (THINK_OPEN, THINK_CLOSE):
        if tag in body:
            raise _Unreadable(f"action: got {tag} after the think segment, expected one {CALL_OPEN}")
    if body.count(CALL_OPEN) != 1 or body.count(CALL_CLOSE) != 1:
        got = f"{body.count(CALL_OPEN)} {CALL_OPEN} and {body.count(CALL_CLOSE)} {CALL_CLOSE}"
        raise _Unreadable(f"action: got {got}, expected exactly one call")
    if not body.startswith(CALL_OPEN) or not body.endswith(CALL_CLOSE):
        raise _Unreadable(f"action: got text beside the call, expected {CALL_OPEN} to {CALL_CLOSE} alone")
    source = body[len(CALL_OPEN) : -len(CALL_CLOSE)]
    if (depth := _nesting(source)) > MAX_NESTING:
        raise _Unreadable(f"action: got JSON nested {depth} deep, expected at most {MAX_NESTING}")
    try:
        call = parse_json(source)
        canonical_bytes(call)  # what has no canonical form could never be recorded or compared
    except CanonicalError as error:
        raise _Unreadable(f"action: {error}") from error
    if not isinstance(call, dict) or set(call) != {"name", "arguments"}:
        got = str(sorted(call)) if isinstance(call, dict) else type(call).__name__
        raise _Unreadable(f"action: got {got}, expected an object with name and arguments")
    name, arguments = call["name"], call["arguments"]
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise _Unreadable("action: got a name or arguments of the wrong type, expected a string and an object")
    legal = {tool.name: tool for tool in (*tools, FINISH_TOOL)}
    if name not in legal:
        raise _Unreadable(f"action.name: got {name!r}, expected one of {sorted(legal)}")
    if error_text := schema_error(arguments, legal[name].parameters):
        raise _Unreadable(f"action.{error_text}")
    if name == FINISH_TOOL.name:
        return FinishAction(answer=arguments["answer"], citations=tuple(arguments["citations"]))
    return ToolAction(tool=name, arguments=arguments)


def read_turn(tokenizer: Any, ids: Sequence[int], tools: Sequence[ToolSpec], marks: TurnMarks) -> ParsedTurn:
    """Strict reading of one turn's generated ids (end of turn included). Never raises on a policy's output.

    Segments: the think segment with its tags is think; a legal call with its tags and the end of
    turn is action, a legal Finish answer. What stands in the place of a call but could not be read is
    action too: the policy wrote it there.
    """
    ended = bool(ids) and ids[-1] == marks.turn_end_id
    body_ids = list(ids[:-1]) if ended else list(ids)
    pieces = decode_pieces(tokenizer, body_ids)
    text = "".join(piece for piece, _ in pieces)
    think, think_end, error = _split_think(text, marks.opens_in_think)
    action: ToolAction | FinishAction | None = None
    try:
        if refused := [token for token in body_ids if token in marks.refused_ids]:
            shown = decode(tokenizer, refused[:1])
            raise _Unreadable(f"turn: got {shown!r} inside the turn, expected no special token")
        if not ended:
            raise _Unreadable(f"turn: got {len(body_ids)} tokens without an end of turn, expected one")
        if REPLACEMENT in text:
            raise _Unreadable("turn: got bytes that are no UTF-8 text, expected text")
        if error:
            raise _Unreadable(error)
        action = _read_call(text[think_end:], tools)
    except _Unreadable as unreadable:
        error = str(unreadable)
    last = SEGMENT_ANSWER if isinstance(action, FinishAction) else SEGMENT_ACTION
    segments = label_segments(pieces, think_end, last) + ((last,) if ended else ())
    return ParsedTurn(
        think_text=think,
        action_text=text[think_end:],
        action=action,
        error=error,
        segments=segments,
        is_policy_token=(1,) * len(ids),
    )
