"""Strict reading of generated chat turns: what is legal, every way to be illegal, segments of tokens."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.contracts.capture import SEGMENT_ACTION, SEGMENT_ANSWER, SEGMENT_THINK
from workbench.contracts.errors import EngineFault
from worker.engine.chat import ChatFormatter
from worker.engine.chat_reading import decode_pieces, label_segments
from worker.engine.toolschema import check_schema, schema_error
from worker.environments.base import FinishAction, ToolAction

from .chat_models import SEARCH, qwen_tokenizer

TOKENIZER = qwen_tokenizer("qwen3_instruct_2507")
PLAIN = qwen_tokenizer("qwen3_instruct_2507", tags_are_tokens=False)  # tags are ordinary text here
FORMATTER, PLAIN_FORMATTER = ChatFormatter(TOKENIZER), ChatFormatter(PLAIN)
OPENED_TEXT = TOKENIZER.chat_template.replace(
    "{{- '<|im_start|>assistant\\n' }}", "{{- '<|im_start|>assistant\\n<think>\\n' }}"
)
SEARCH_CALL = '{"name": "search", "arguments": {"source": "trial", "query": "dose"}}'


def wrap(body):
    return f"<tool_call>\n{body}\n</tool_call>"


def read(text, *, formatter=FORMATTER, tokenizer=TOKENIZER):
    return formatter.read(tokenizer(text, add_special_tokens=False)["input_ids"], [SEARCH])


def test_a_call_with_and_without_a_think_segment():
    parsed = read(f"{wrap(SEARCH_CALL)}<|im_end|>")
    assert parsed.action == ToolAction("search", {"source": "trial", "query": "dose"})
    assert (parsed.think_text, parsed.error) == (None, None)
    parsed = read(f"<think>\nwhy\n</think>\n\n{wrap(SEARCH_CALL)}\n<|im_end|>")
    assert parsed.action == ToolAction("search", {"source": "trial", "query": "dose"})
    assert parsed.think_text == "\nwhy\n"


def test_brackets_inside_strings_are_no_nesting():
    """The query is 50 brackets, an escaped quote and a brace."""
    query = "[" * 50 + '" {'
    parsed = read(wrap(SEARCH_CALL.replace('"dose"', json.dumps(query))) + "<|im_end|>")
    assert parsed.action == ToolAction("search", {"source": "trial", "query": query})


def test_a_finish():
    parsed = read(wrap('{"name": "finish", "arguments": {"answer": "5 mg", "citations": ["101", "7"]}}') + "<|im_end|>")
    assert parsed.action == FinishAction("5 mg", ("101", "7"))
    assert set(parsed.segments) == {SEGMENT_ANSWER}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("hello<|im_end|>", "0 <tool_call>"),
        (wrap(SEARCH_CALL) + wrap(SEARCH_CALL) + "<|im_end|>", "got 2 <tool_call>"),
        (wrap(SEARCH_CALL + SEARCH_CALL) + "<|im_end|>", "expected UTF-8 JSON"),
        (wrap(f"[{SEARCH_CALL}, {SEARCH_CALL}]") + "<|im_end|>", "expected an object with name and arguments"),
        ("so: " + wrap(SEARCH_CALL) + "<|im_end|>", "text beside the call"),
        (wrap(SEARCH_CALL) + " done<|im_end|>", "text beside the call"),
        (wrap(SEARCH_CALL), "without an end of turn"),
        ("", "got 0 tokens without an end of turn"),
        (wrap(SEARCH_CALL) + "<|endoftext|>", "'<|endoftext|>' inside the turn"),
        (wrap(SEARCH_CALL) + "<|im_end|><|im_end|>", "'<|im_end|>' inside the turn"),
        (f"<tool_call>{SEARCH_CALL}<|im_end|>", "0 </tool_call>"),
        (wrap(SEARCH_CALL.replace("}}", "}")) + "<|im_end|>", "expected UTF-8 JSON"),
        (wrap(SEARCH_CALL.replace('"trial"', "'trial'")) + "<|im_end|>", "expected UTF-8 JSON"),
        (wrap('{"name": "search", "arguments": {}, "id": 1}') + "<|im_end|>", "expected an object with name and"),
        (wrap('{"name": "search", "name": "search", "arguments": {}}') + "<|im_end|>", "key twice"),
        (wrap('{"name": "search", "arguments": "{}"}') + "<|im_end|>", "arguments of the wrong type"),
        (wrap('{"name": "delete", "arguments": {}}') + "<|im_end|>", "action.name: got 'delete'"),
        (wrap('{"name": "search", "arguments": {"source": "trial"}}') + "<|im_end|>", "arguments.query: got nothing"),
        (wrap(SEARCH_CALL.replace("trial", "blog")) + "<|im_end|>", "arguments.source: got 'blog'"),
        (wrap(SEARCH_CALL.replace('"dose"', '""')) + "<|im_end|>", "expected minLength 1"),
        (wrap(SEARCH_CALL.replace('"dose"', '"d", "limit": true')) + "<|im_end|>", "expected integer"),
        (wrap(SEARCH_CALL.replace('"dose"', '"d", "limit": 1.0')) + "<|im_end|>", "expected integer"),
        (wrap(SEARCH_CALL.replace('"dose"', '"d", "limit": 99999999999999999999')) + "<|im_end|>", "2**53"),
        (wrap(SEARCH_CALL.replace('"dose"', '"d", "limit": NaN')) + "<|im_end|>", "finite"),
        (wrap(SEARCH_CALL.replace('"dose"', '"d", "page": 2')) + "<|im_end|>", "arguments.page: got an argument"),
        (wrap(SEARCH_CALL.replace("dose", "\\ud800")) + "<|im_end|>", "UTF-8 can carry"),
        (wrap('{"name": "finish", "arguments": {"answer": "x"}}') + "<|im_end|>", "arguments.citations: got nothing"),
        (wrap('{"name": "finish", "arguments": {"answer": "x", "citations": "1"}}') + "<|im_end|>", "expected array"),
        (wrap('{"name": "finish", "arguments": {"answer": "x", "citations": [""]}}') + "<|im_end|>", "minLength 1"),
        (f"<think>\nopen {wrap(SEARCH_CALL)}<|im_end|>", "got no </think>"),
        (f"<think>a<think>b</think>{wrap(SEARCH_CALL)}<|im_end|>", "second <think>"),
        (f"<think>a</think><think>b</think>{wrap(SEARCH_CALL)}<|im_end|>", "after the think segment"),
        (f"{wrap(SEARCH_CALL)}<think>late</think><|im_end|>", "after the think segment"),
        (wrap("[" * 3000 + "]" * 3000) + "<|im_end|>", "nested 3000 deep, expected at most 32"),
        (wrap('{"name": "search", "arguments": ' + '{"a":' * 40 + "1" + "}" * 41) + "<|im_end|>", "nested 41 deep"),
    ],
)
def test_everything_else_is_an_error_and_never_repaired(text, error):
    parsed = read(text)
    assert parsed.action is None
    assert parsed.error is not None and error in parsed.error
    assert len(parsed.segments) == len(parsed.is_policy_token)


def test_bytes_that_are_no_text_are_an_error():
    """The first byte of a two-byte character alone, inside a legal call's place."""
    half = TOKENIZER.convert_tokens_to_ids("Ã")
    ids = [half, TOKENIZER.convert_tokens_to_ids("<|im_end|>")]
    assert "no UTF-8" in str(FORMATTER.read(ids, [SEARCH]).error)


def test_segments_follow_the_boundary_by_first_character():
    """Tags are text here and '>\\n' is one id: the id over the end of </think> starts inside it, so it is think.

    ids:      ... k  >\\n  \\n<  t o o l ...      ('</think>\\n\\n<tool_call>')
    segment:  think think action action
    """
    text = f"<think>x</think>\n\n{wrap(SEARCH_CALL)}<|im_end|>"
    ids = PLAIN(text, add_special_tokens=False)["input_ids"]
    parsed = PLAIN_FORMATTER.read(ids, [SEARCH])
    assert parsed.action is not None
    pieces = [PLAIN.decode([token]) for token in ids]
    spanning = next(index for index, piece in enumerate(pieces) if piece == ">\n")
    assert "".join(pieces[: spanning + 1]) == "<think>x</think>\n"
    assert parsed.segments[: spanning + 1] == (SEGMENT_THINK,) * (spanning + 1)
    assert set(parsed.segments[spanning + 1 :]) == {SEGMENT_ACTION}


def test_a_character_in_several_tokens_belongs_to_one_segment():
    """'é' is two ids (bytes C3 A9) and '你' three: each run is one piece, and the pieces spell the text."""
    ids = TOKENIZER("aé你", add_special_tokens=False)["input_ids"]
    assert len(ids) == 6
    assert decode_pieces(TOKENIZER, ids) == [("a", 1), ("é", 2), ("你", 3)]
    assert label_segments([("a", 1), ("é", 2), ("你", 3)], 1, SEGMENT_ACTION) == (
        SEGMENT_THINK,
        *[SEGMENT_ACTION] * 5,
    )


def test_a_header_that_opens_the_think_segment_is_read_as_open():
    """Generated text starts inside think; a turn that never closes it is an error."""
    tokenizer = qwen_tokenizer(text=OPENED_TEXT)
    formatter = ChatFormatter(tokenizer)
    parsed = read(f"why\n</think>\n\n{wrap(SEARCH_CALL)}<|im_end|>", formatter=formatter, tokenizer=tokenizer)
    assert parsed.action is not None and parsed.think_text == "why\n"
    assert parsed.segments[:3] == (SEGMENT_THINK,) * 3
    parsed = read(f"{wrap(SEARCH_CALL)}<|im_end|>", formatter=formatter, tokenizer=tokenizer)
    assert parsed.error == "think: got no </think>, expected one before the tool call"


@settings(max_examples=80, deadline=None)
@given(ids=st.lists(st.integers(0, len(TOKENIZER) - 1), max_size=60))
def test_any_ids_are_read_without_raising_and_every_array_is_parallel(ids):
    parsed = FORMATTER.read(ids, [SEARCH])
    assert len(parsed.segments) == len(parsed.is_policy_token) == len(ids)
    assert (parsed.action is None) != (parsed.error is None)
    pieces = decode_pieces(TOKENIZER, ids)
    assert sum(count for _, count in pieces) == len(ids)


@pytest.mark.parametrize(
    ("schema", "value", "error"),
    [
        ({"type": "string", "pattern": "^[0-9]{3}$"}, "101", None),
        ({"type": "string", "pattern": "^[0-9]{3}$"}, "1010", "expected text that matches"),
        ({"type": ["integer", "null"]}, None, None),
        ({"type": "number", "maximum": 2}, 3, "expected maximum 2"),
        ({"const": 1}, True, "expected 1"),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 1}, [1, 2], "expected maxItems 1"),
        ({"type": "array", "items": {"type": "integer"}}, [1, "2"], "arguments[1]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, None),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "1"}, "arguments.a"),
        ({"type": "object"}, {"a": 1}, "does not have"),
    ],
)
def test_argument_schemas(schema, value, error):
    check_schema(schema, "x")
    found = schema_error(value, schema)
    assert found is None if error is None else error in str(found)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"anyOf": []}, "x.anyOf"),
        ({"type": "text"}, "x.type: got 'text'"),
        ({"pattern": "("}, "x.pattern"),
        ("string", "expected a JSON Schema object"),
        ({"items": {"$ref": "#"}}, r"x.items.\$ref"),
    ],
)
def test_schemas_that_could_not_be_enforced_are_refused(schema, message):
    with pytest.raises(EngineFault, match=message):
        check_schema(schema, "x")
