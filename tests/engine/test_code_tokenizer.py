"""The tokenizer of the code-repair policy: whole pieces, small numbers, code apart from the JSON around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from worker.engine.compact import CompactFormatter
from worker.engine.tokenizer_build import TextPieces, load_tokenizer, system_text, tokenizer_sha256, train_tokenizer
from worker.engine.warmstart import _tokenizer
from worker.engine.warmstart_recipes import CODE_REPAIR
from worker.environments.code_repair.demonstrate import edit_text, finish_text, read_text
from worker.environments.code_repair.demonstrate import test_text as run_tests_text
from worker.environments.registry import get_environment

ENVIRONMENT = get_environment("code_repair", {})


@pytest.fixture(scope="module")
def formatter() -> CompactFormatter:
    return CompactFormatter(_tokenizer(CODE_REPAIR, ENVIRONMENT))


def pieces(formatter: CompactFormatter, text: str) -> list[str]:
    return [formatter.decode([index]) for index in formatter.encode(text)]


def test_the_skeleton_of_an_action_is_whole_pieces(formatter: CompactFormatter) -> None:
    assert pieces(formatter, run_tests_text()) == ['{"tool":"test"}']
    assert pieces(formatter, read_text("due.py")) == ['{"tool":"read","path":"', "due", ".py", '"}']
    assert pieces(formatter, finish_text()) == ['{"finish":"', "done", '","cite":[]}']
    assert pieces(formatter, edit_text("due.py", 2, "return a - b")) == [
        '{"tool":"edit","path":"', "due", ".py", '","line":', "2", ',"text":"', "return ", "a", " - ", "b", '"}',
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["return xs[0]", "return xs[:-1]", "return s.upper()", "return (a + 3)"])
def test_punctuation_of_code_stays_apart_from_that_of_json(formatter: CompactFormatter, text: str) -> None:
    """The code's pieces are the same inside an action and alone, and the object's end follows as one piece."""
    alone = pieces(formatter, text)
    found = pieces(formatter, edit_text("due.py", 2, text))
    assert found[-len(alone) - 2 :] == [',"text":"', *alone, '"}']
    assert all(len(piece) == 1 for piece in alone if not any(letter.isalnum() or letter == " " for letter in piece))


def test_small_numbers_names_and_indentation_are_single(formatter: CompactFormatter) -> None:
    assert [len(formatter.encode(str(number))) for number in range(21)] == [1] * 21
    assert len(formatter.encode("    ")) == 1
    names = {path for task in ENVIRONMENT.tasks() for path in task.initial_state["files"]}
    assert {path for path in names if len(formatter.encode(path)) != 2} == set()
    assert all(formatter.encode(f" {path}")[1:] == formatter.encode(path) for path in names)


def test_the_system_text_is_one_token_and_reads_back(formatter: CompactFormatter) -> None:
    text = system_text(ENVIRONMENT.instructions(), ENVIRONMENT.tools())
    ids = formatter.encode(text)
    assert len(ids) == 1 and formatter.decode(ids) == text
    started = formatter.start(ENVIRONMENT.instructions(), ENVIRONMENT.tools(), "Repair ledger: due.py")
    assert started[:3] == [formatter.begin_id, formatter.system_id, ids[0]]


def test_any_text_reads_back(formatter: CompactFormatter) -> None:
    for text in ("", "a\n    b", 'x = {"tool":"test"} # ü', "<|end|>", "return  return", '"}"}', "\u4f60\u597d"):
        assert formatter.decode(formatter.encode(text)) == text


def test_equal_texts_give_equal_bytes_and_saving_changes_nothing(formatter: CompactFormatter, tmp_path: Path) -> None:
    again = _tokenizer(CODE_REPAIR, ENVIRONMENT)
    assert tokenizer_sha256(again) == tokenizer_sha256(formatter.tokenizer)
    again.save_pretrained(tmp_path)
    loaded = CompactFormatter(load_tokenizer(tmp_path))
    assert loaded.identity() == formatter.identity()
    assert loaded.encode(edit_text("due.py", 2, "x")) == formatter.encode(edit_text("due.py", 2, "x"))


def test_the_longest_whole_text_wins_and_merges_are_learnt_from_the_rest() -> None:
    texts = ["ab abc abcd"] * 20
    tokenizer = train_tokenizer(texts, 270, TextPieces(whole=("ab", "abcd")))
    found = CompactFormatter(tokenizer)
    assert [found.decode([index]) for index in found.encode("ab abc abcd")] == ["ab", " ", "ab", "c", " ", "abcd"]
    assert "abc" not in tokenizer.get_vocab()
