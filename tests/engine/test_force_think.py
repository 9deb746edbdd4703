"""A forced think segment is read back as that segment, whatever the formatter."""

from __future__ import annotations

import pytest

from tests.engine.chat_models import SEARCH, qwen_tokenizer
from worker.engine.chat import ChatFormatter
from worker.engine.compact import CompactFormatter
from worker.engine.probe_think import think_length
from worker.engine.render import ForcesThink
from worker.engine.tokenizer_build import corpus, train_tokenizer
from worker.environments.base import ToolAction
from worker.environments.registry import get_environment

CALL = '<tool_call>\n{"name": "search", "arguments": {"source": "trial", "query": "dose"}}\n</tool_call><|im_end|>'


@pytest.mark.parametrize("name", ["qwen2_5", "qwen3_instruct_2507", "qwen3_vl"])
@pytest.mark.parametrize("text", ["", "I need the dose", "</tool_call> is text here? no"])
def test_chat(name: str, text: str) -> None:
    """The tags are the segment's marks: the action starts behind them, and its ids are the policy's own."""
    tokenizer = qwen_tokenizer(name)
    formatter = ChatFormatter(tokenizer)
    assert isinstance(formatter, ForcesThink)
    prefix = formatter.force_think(formatter.encode(text))
    parsed = formatter.read([*prefix, *tokenizer(CALL, add_special_tokens=False)["input_ids"]], [SEARCH])
    assert parsed.think_text == text and parsed.action == ToolAction("search", {"source": "trial", "query": "dose"})
    assert think_length(parsed.segments) == len(prefix)
    assert len(prefix) - len(formatter.force_think([])) == len(formatter.encode(text))


@pytest.mark.parametrize("text", ["", "need Zorvex dose in label", "any words \u00e9"])
def test_compact(text: str) -> None:
    """Think, then the action mark; nothing else may follow but one action."""
    environment = get_environment("evidence_search", {})
    formatter = CompactFormatter(train_tokenizer(corpus(environment, 1, 40), 400))
    prefix = formatter.force_think(formatter.encode(text))
    action = formatter.write("", '{"tool":"open","id":"101"}')[1:]
    parsed = formatter.read([*prefix, *action], environment.tools())
    assert parsed.action == ToolAction("open", {"id": "101"}) and (parsed.think_text or "") == text
    assert think_length(parsed.segments) == len(prefix)
