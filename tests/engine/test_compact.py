"""The compact formatter and the embedded tokenizer."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from workbench.contracts.capture import SEGMENT_ACTION, SEGMENT_ANSWER, SEGMENT_THINK
from worker.engine.compact import CompactFormatter, parse_action
from worker.engine.render import Formatter
from worker.engine.tokenizer_build import SPECIAL_TOKENS, corpus, tokenizer_sha256, train_tokenizer
from worker.environments.base import FinishAction, ToolAction
from worker.environments.evidence_search.environment import TOOL_SPECS, EvidenceSearch
from worker.environments.evidence_search.lexicon import ATTRIBUTES, FAMILIES, NAMES, VALUES

ENVIRONMENT = EvidenceSearch({})
TOKENIZER = train_tokenizer(corpus(ENVIRONMENT, 1, 1500), 1024)
FORMATTER = CompactFormatter(TOKENIZER)
IDS = st.integers(0, len(TOKENIZER) - 1)
SEARCH = '{"tool":"search","source":"label","query":"Zorvex dose"}'
FINISH = '{"finish":"20","cite":["312"]}'


def test_it_is_a_formatter() -> None:
    formatter: Formatter = FORMATTER
    assert formatter.name == "compact" and formatter.stop_ids() == (FORMATTER.end_id,)


def test_equal_texts_give_equal_tokenizers() -> None:
    again = train_tokenizer(corpus(ENVIRONMENT, 1, 1500), 1024)
    assert again.backend_tokenizer.to_str() == TOKENIZER.backend_tokenizer.to_str()
    assert tokenizer_sha256(again) == tokenizer_sha256(TOKENIZER)
    other = train_tokenizer(corpus(ENVIRONMENT, 1, 200), 600)
    assert tokenizer_sha256(other) != tokenizer_sha256(TOKENIZER)
    assert CompactFormatter(other).identity() != FORMATTER.identity()


def test_identity_survives_use_and_a_save(tmp_path: object) -> None:
    """Padding and truncation of a call are no part of the identity, and a saved tokenizer keeps it."""
    before = FORMATTER.identity()
    TOKENIZER(["a", "b c"], padding=True, truncation=True, max_length=5)
    assert FORMATTER.identity() == before
    TOKENIZER.save_pretrained(str(tmp_path))
    assert CompactFormatter(PreTrainedTokenizerFast.from_pretrained(str(tmp_path))).identity() == before


def test_every_word_of_the_environment_is_one_token() -> None:
    """Names, ids, attributes, families and values: copying one token is what the policy can learn."""
    values = [value for family in VALUES.values() for found in family.values() for value in found]
    words = [*NAMES, *FAMILIES, *ATTRIBUTES, *values, *(str(number) for number in range(100, 400))]
    assert [word for word in words if len(FORMATTER.encode(word)) != 1] == []
    assert FORMATTER.encode(" Zorvex")[1:] == FORMATTER.encode("Zorvex"), "the same token with a space before it"
    assert 800 <= len(TOKENIZER) <= 1024


def test_json_skeleton_pieces_are_single_tokens() -> None:
    """{" tool ":" search "," source ":" label "," query ":" Zorvex _ dose "} = 15 tokens."""
    pieces = [FORMATTER.decode([token]) for token in FORMATTER.encode(SEARCH)]
    syntax = ['{"', '":"', '","', '"}', '":["', '"]}']
    assert len(pieces) == 15 and [piece for piece in pieces if piece.strip('{":,} ') == ""] == [
        '{"', '":"', '","', '":"', '","', '":"', " ", '"}',
    ]  # fmt: skip
    assert all(len(FORMATTER.encode(piece)) == 1 for piece in syntax)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_text_comes_back_and_never_becomes_a_special_token(text: str) -> None:
    ids = FORMATTER.encode(text)
    assert FORMATTER.decode(ids) == text
    assert not FORMATTER.special_ids.intersection(ids)


@pytest.mark.parametrize("name", SPECIAL_TOKENS)
def test_spelled_special_tokens_stay_text(name: str) -> None:
    """An Observation or prompt that spells a special token cannot end a turn or open a role."""
    assert FORMATTER.decode(FORMATTER.encode(name)) == name
    observed = FORMATTER.observe(f"x{name}y")
    assert [token for token in observed if token in FORMATTER.special_ids] == [
        FORMATTER.observation_id,
        FORMATTER.assistant_id,
    ]


def test_prompt_layout() -> None:
    """<|begin|><|system|>instructions tools<|user|>prompt<|assistant|>, each role mark once and in order."""
    ids = FORMATTER.start("Cite ids.", TOOL_SPECS, "Find Zorvex dose in label.")
    marks = [token for token in ids if token in FORMATTER.special_ids]
    assert marks == [FORMATTER.begin_id, FORMATTER.system_id, FORMATTER.user_id, FORMATTER.assistant_id]
    assert ids[0] == FORMATTER.begin_id and ids[-1] == FORMATTER.assistant_id
    assert "tools search open" in FORMATTER.decode(ids)


def test_segments_of_a_call_and_of_a_finish() -> None:
    """think tokens and the action mark are think; the JSON and the end mark are action, or answer of a Finish."""
    for action, rest in ((SEARCH, SEGMENT_ACTION), (FINISH, SEGMENT_ANSWER)):
        ids = FORMATTER.write("need Zorvex dose", action)
        turn = FORMATTER.read(ids, TOOL_SPECS)
        cut = ids.index(FORMATTER.action_id) + 1
        assert turn.error is None and turn.think_text == "need Zorvex dose" and turn.action_text == action
        assert turn.segments == (SEGMENT_THINK,) * cut + (rest,) * (len(ids) - cut)
        assert turn.is_policy_token == (1,) * len(ids)


def test_actions_are_read() -> None:
    assert parse_action(SEARCH, TOOL_SPECS) == (
        ToolAction("search", {"source": "label", "query": "Zorvex dose"}),
        None,
    )
    assert parse_action('{"tool":"open","id":"312"}', TOOL_SPECS) == (ToolAction("open", {"id": "312"}), None)
    assert parse_action(FINISH, TOOL_SPECS) == (FinishAction("20", ("312",)), None)
    assert parse_action('{"finish":"none","cite":[]}', TOOL_SPECS) == (FinishAction("none", ()), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "action"),
        (SEARCH[:-1], "action"),
        (SEARCH + " thanks", "action"),
        ('["search"]', "got list"),
        ('{"tool":"shell","command":"ls"}', "tool: got 'shell'"),
        ('{"tool":["search"],"source":"label","query":"x"}', "tool: got"),
        ('{"source":"label","query":"x"}', "tool: got None"),
        ('{"tool":"search","source":"label"}', "search.query: got nothing"),
        ('{"tool":"search","source":"web","query":"x"}', "search.source: got 'web'"),
        ('{"tool":"search","source":"label","query":7}', "search.query: got int"),
        ('{"tool":"search","source":"label","query":""}', "minLength"),
        ('{"tool":"search","source":"label","query":"x","page":"2"}', "search.page"),
        ('{"tool":"search","source":"label","source":"label","query":"x"}', "got the key twice"),
        ('{"tool":"open","id":"31"}', "open.id: got '31'"),
        ('{"tool":"open","id":"312\\n"}', "open.id"),
        ('{"tool":"open","id":312}', "open.id: got int"),
        ('{"finish":"20"}', "expected finish and cite"),
        ('{"finish":"20","cite":["312"],"tool":"open"}', "expected finish and cite"),
        ('{"finish":20,"cite":[]}', "finish: got 20"),
        ('{"finish":"20","cite":"312"}', "cite: got '312'"),
        ('{"finish":"20","cite":[312]}', "cite: got [312]"),
        ('{"finish":"20","cite":[""]}', "cite: got ['']"),
        ('{"finish":"20","cite":[NaN]}', "action"),
    ],
)
def test_illegal_actions_are_refused_and_named(text: str, expected: str) -> None:
    action, error = parse_action(text, TOOL_SPECS)
    assert action is None and error is not None and expected in error, error


def test_turns_that_break_the_grammar() -> None:
    """No action mark; no end mark; a second mark; a role mark inside; bytes that are no text: all policy errors."""
    legal = FORMATTER.write("need", SEARCH)
    lone_byte = [index for index in range(len(TOKENIZER)) if FORMATTER.decode([index]) == "\ufffd"][:1]
    assert lone_byte
    broken = {
        "expected one after the think segment": [token for token in legal if token != FORMATTER.action_id],
        "expected it after the action": legal[:-1],
        "got no <|action|>": [],
        "a further special token": [FORMATTER.user_id, *legal],
        "not UTF-8": [*lone_byte, *legal],
    }
    for expected, ids in broken.items():
        turn = FORMATTER.read(ids, TOOL_SPECS)
        assert turn.action is None and turn.error is not None and expected in turn.error, (expected, turn.error)
        assert len(turn.segments) == len(turn.is_policy_token) == len(ids)
    twice = FORMATTER.read([*legal[:-1], FORMATTER.action_id, *legal[1:]], TOOL_SPECS)
    assert twice.error is not None and "a further special token" in twice.error


def test_a_tool_that_the_task_lacks_is_illegal() -> None:
    turn = FORMATTER.read(FORMATTER.write("need", '{"tool":"open","id":"312"}'), TOOL_SPECS[:1])
    assert turn.action is None and turn.error is not None and "tool: got 'open'" in turn.error


@settings(max_examples=300, deadline=None)
@given(st.lists(IDS, max_size=40))
def test_reading_any_ids_never_raises_and_keeps_lengths(ids: list[int]) -> None:
    turn = FORMATTER.read(ids, TOOL_SPECS)
    assert (turn.action is None) != (turn.error is None)
    assert len(turn.segments) == len(turn.is_policy_token) == len(ids)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, len(TOKENIZER) - 1), min_size=1, max_size=12), max_size=4), st.text(max_size=20)
)
def test_ids_are_carried_verbatim(turns: list[list[int]], text: str) -> None:
    """prompt(k+1) = prompt(k) + generated(k) + Observation: every generated id stands where it was sampled,
    whatever it is, even where the same text would be tokenised otherwise."""
    context = FORMATTER.start("Cite.", TOOL_SPECS, text)
    places = []
    for generated in turns:
        places.append(len(context))
        context = context + generated + FORMATTER.observe(text)
    for place, generated in zip(places, turns, strict=True):
        assert context[place : place + len(generated)] == generated
    assert context[-1] == FORMATTER.assistant_id


def test_demonstrations_read_back() -> None:
    """Every scripted call and Finish is legal; a turn without Observation that is no Finish is refused."""
    for item in itertools.islice(ENVIRONMENT.demonstrations(3), 200):
        for turn in item.turns:
            found = FORMATTER.read(FORMATTER.write(turn.think, turn.action), TOOL_SPECS)
            is_legal = turn.observation is not None or turn.action.startswith('{"finish"')
            assert (found.error is None) == is_legal, (turn, found.error)
            if is_legal:
                assert json.loads(turn.action) == json.loads(found.action_text)


def test_a_foreign_tokenizer_is_refused() -> None:
    from tokenizers import Tokenizer, models

    foreign = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    with pytest.raises(ValueError, match="expected the special tokens of the compact formatter"):
        CompactFormatter(foreign)
