"""Chinese as pages give it: its own marks between its words, and one word for one thing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.utils.translation import override

from runs.presenters.trials.words import sentence
from tests.pages.test_frame import PO

HAN = "[\u3400-\u9fff]"
# A mark right after a character, or one that a value leaves before a character.
ASCII_MARK = re.compile(rf"{HAN}[;,.:!?](?![\w/])|[;,:?] ?{HAN}")
BLOCK = re.compile(r"\{% blocktrans.*?\{% endblocktrans %\}", re.DOTALL)
# Between two tags, so between two pieces that may both be translated; or the end of a sentence that a tag closes.
JOINED = re.compile(r"(?<=[%}]\})[;,] (?=\{% (?:trans|blocktrans|if|for|empty|endif))|(?<=%\})\.(?=\s|</|\{%|$)")
# Words that readers met beside the one that stands.
BANNED = {
    "收据": "回执", "凭据": "回执", "奈特": "nat", "评估": "评测", "家族": "族", "已关闭": "已封存", "槽(?!位)": "槽位",
}  # fmt: skip


def messages() -> Iterator[tuple[str, str]]:
    """(msgid, msgstr) of the catalogue, the single plural form among them."""
    for entry in PO.read_text().split("\n\n"):
        parts: dict[str, str] = {}
        key = ""
        for line in entry.splitlines():
            found = re.match(r'(msgid|msgid_plural|msgstr|msgstr\[0\]) (".*")$', line)
            if found:
                key = found[1]
                parts[key] = ast.literal_eval(found[2])
            elif line.startswith('"') and key:
                parts[key] += ast.literal_eval(line)
        yield parts.get("msgid", ""), parts.get("msgstr", parts.get("msgstr[0]", ""))


def joins(text: str) -> list[str]:
    """Where a template joins pieces with an ASCII mark, outside what is translated as a whole."""
    spans = [found.span() for found in BLOCK.finditer(text)]
    return [
        text[max(0, found.start() - 60) : found.end() + 40]
        for found in JOINED.finditer(text)
        if not any(first < found.start() < last for first, last in spans)
    ]


@pytest.mark.parametrize("text", ["没有触发警告.", "安排 0 次, 遇到 0 次", "参数已变; 效应待定", "%(n)s, 遇到"])
def test_an_ascii_mark_between_chinese_words_is_seen(text: str) -> None:
    assert ASCII_MARK.search(text)


@pytest.mark.parametrize("text", ["没有触发警告。", "安排 0 次，遇到 0 次", "字母、数字及 . _ -", "在 plan.yaml 里"])
def test_marks_of_numbers_names_and_chinese_are_left(text: str) -> None:
    assert not ASCII_MARK.search(text)


def test_no_message_has_an_ascii_mark_between_chinese_words() -> None:
    found = [(msgid, text) for msgid, text in messages() if msgid and ASCII_MARK.search(text)]
    assert sum(1 for _ in messages()) > 3000 and found == []


def test_templates_join_pieces_with_marks_of_the_readers_language() -> None:
    assert joins('{% trans "a" %}, {% trans "b" %}') and joins("{% endif %}.</p>")
    assert not joins('{% trans "a" %}{% trans ", " %}{% trans "b" %}')
    assert not joins("{% blocktrans %}{{ a }}, {{ b }}.{% endblocktrans %}")
    folder = Path(settings.BASE_DIR, "templates")
    found = {str(file.relative_to(folder)): joins(file.read_text()) for file in folder.rglob("*.html")}
    assert {name: places for name, places in found.items() if places} == {}


def test_a_sentence_of_clauses_has_marks_of_the_language() -> None:
    assert sentence(["one", "two"]) == "one; two."
    with override("zh-hans"):
        assert sentence(["其一", "其二"]) == "其一；其二。"


@pytest.mark.parametrize("word", sorted(BANNED))
def test_one_word_for_one_thing(word: str) -> None:
    found = [(msgid, text) for msgid, text in messages() if msgid and re.search(word, text)]
    assert found == [], f"expected {BANNED[word]}"
