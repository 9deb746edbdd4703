# ruff: noqa: E501, SIM905 - tables of words, a line wide characters count twice in
"""Numbers in prose: each number word of a table written by hand is found, and no idiom is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.binding.number_words import IDIOMS_EN, IDIOMS_ZH
from evidence.binding.numbers import bare_numbers

ENGLISH = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion dozen dozens
hundreds thousands millions first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth twentieth
hundredth firstly secondly thirdly half halves halved thirds quarter quarters fifths tenths once twice thrice double
doubled doubling triple tripled quadrupled twofold three-fold tenfold percent nought nil twenties seventies
""".split()
CHINESE = """
一个 二十 两个 三次 四步 五种 六臂 七成 八倍 九项 十个 百次 千步 万条 亿个 零次 〇 半数 一半 三成 两倍 翻倍 翻番 加倍
第一 第二轮 第一定律 第十分之一 首次 首轮 首个 百分之五 百分点 千分之一 三分之一 二者 两者 俩 仨 廿 卅 壹 贰 叁 拾 佰 仟 一百二十三 十二
一万 半天 成倍 其中之一 第统一
""".split()
SIGNS = """
0 7 244 37.7% ３ ９２ ٣ ۴ ७ ① ⑨ ㊀ Ⅳ ⅳ ² ½ ¾ 𝟗 𝟙 ₂ ‰ ％ II IV VII XII E2F R1 x2 1e-4
""".split()
HIDDEN = [
    "оne",
    "t\u200bwo",
    "thrеe",
    "ｔｅｎ",
    "fi\u00adve",
    "sеven",
    "e\u0301leven".replace("\u0301", "\u200d"),
    "𝐭𝐰𝐨",
]
INNOCENT = """
tensor often someone attention weight bones done alone stone network phone anyone everyone nobody height freight canine
fortune seconds offense secondary semiconductor thirst onerous tender content intent listen kitten nineveh sixpence
several few many some most none each other last next single pair both I MIX CIVIL VIM several
""".split()
INNOCENT_ZH = "若干 几次 多次 许多 少数 完成 成功 成本 成为 形成 系统 方法 数据 评估 奖励 轨迹 分数 部分 分别 各自 全部 大多 双语".split()


@pytest.mark.parametrize("word", ENGLISH + CHINESE + SIGNS + HIDDEN)
def test_a_number_is_found(word: str) -> None:
    """Alone, and within a sentence of either language, and at its beginning and end."""
    for text in (word, f"We saw {word} there.", f"结果是 {word} 。", word.upper() if word in ENGLISH else word):
        found = bare_numbers(text)
        assert found and all(item.text == text[item.start : item.stop] and item.why for item in found), text


@pytest.mark.parametrize("word", [*IDIOMS_EN, *IDIOMS_ZH, *INNOCENT, *INNOCENT_ZH])
def test_an_idiom_is_none(word: str) -> None:
    """Nor is a word that only looks like one."""
    assert not bare_numbers(word) and not bare_numbers(f"X {word} y") and not bare_numbers(f"而{word}。")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("twenty-three of 92 tasks, 37.7 % each", ["twenty-three of 92", "37.7 %"]),
        ("结果一致,两个任务中有三成提高", ["两", "三成"]),
        ("十一致", ["十一"]),
        ("第一定", ["第一"]),
        ("no one saw one of them at once", ["one"]),
        ("进一步提高百分之五十", ["百分之五十"]),
        ("Phase II and part V", ["II", "V"]),
    ],
)
def test_what_belongs_together_is_one_number(text: str, parts: list[str]) -> None:
    """Neighbours are joined; an idiom hides no number beside it."""
    assert [item.text for item in bare_numbers(text)] == parts


def test_an_idiom_hides_no_larger_number() -> None:
    """另一 is an idiom, 另一百个 holds a hundred; 十分 is one, 二十分 holds twenty; 万一 is one, 三万一千 is a number."""
    for text in ("另一百个", "二十分", "三万一千", "统一百", "十一般", "第一致"):
        assert bare_numbers(text), text


@given(st.text(max_size=60))
def test_every_digit_is_covered(text: str) -> None:
    """Whatever stands around it: each decimal digit of any script lies in exactly one number."""
    found = bare_numbers(text)
    assert all(a.stop <= b.start for a, b in pairwise(found))
    for place, char in enumerate(text):
        if char.isdecimal():
            assert sum(item.start <= place < item.stop for item in found) == 1
