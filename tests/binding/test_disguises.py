# ruff: noqa: E501, SIM905 - tables of words
"""Numbers in disguise: rare words, joined words, Roman numerals, pictures, signs that show nothing, other alphabets."""

from __future__ import annotations

import pytest

from evidence.binding.glyphs import fold, mixed_words
from evidence.binding.numbers import bare_numbers
from evidence.binding.tokens import check_pieces

WORDS = """
trebled trebling twentyfold elevenfold thirtyfold hundredfold twenty-five-fold sextupled septupled octupled centuple
twentyone ninetyfive twentyfirst onehundred quadrillion quintillions zillionth lakh lakhs crore crores zeroes twain
umpteen umpteenth fourscore tvvo tvventy tvvelve MMXXVI XCV xvii XVII Xvii ii xcix CXL LXXX
""".split()
SIGNS = "㏬ ㍙ 💯 🔟 ⚅ ⚀ 🕐 🕧 ⠼⠁ 🀱 🂡 🥇 5⃣ ㉝ ༳ ⓴".split()
CHINESE = "四处错误 有四处 得了十分 得十分 打十分 打了十分 十分钟 十分之多 满十分。 得分为十分 打对折 对半分 皕人 弐件".split()
HIDDEN = [
    "th\u115free", "th\u2800ree", "fi\ufe0fve", "se\u0301ven", "ni\u200bne", "of\u2800nine", "a\u3164ten",
    "ѕіх", "tԝо", "τεn", "ᴛᴇɴ", "🇹🇪🇳", "🅃🄴🄽", "🆃🅴🅽", "🅣🅔🅝", "ⲧⲉn", "ᎢᎬN", "օոe", "ɴɪɴᴇ", "ｔｗｏ", "ꓔꓰꓠ", "ƭen",
]  # fmt: skip
INNOCENT = """
mix did mild civic dim mid vivid livid lid mill mimic I V X C D M CI ML div cd vi manifold unfold scaffold blindfold
tuple couple multiple pavilion cotillion vermilion medallion weight Vim civil naïve Ångström μs
""".split()
INNOCENT_ZH = "十分重要 变得十分复杂 显得十分稳定 觉得十分可靠 四处寻找 四处可见 对比 折线 二进制 对照".split()


@pytest.mark.parametrize("word", [*WORDS, *SIGNS, *CHINESE, *HIDDEN, "a score of tasks"])
def test_a_number_in_disguise_is_found(word: str) -> None:
    for text in (word, f"Then {word} came"):
        found = bare_numbers(text)
        assert found and all(item.text == text[item.start : item.stop] for item in found), text


@pytest.mark.parametrize("word", [*INNOCENT, *INNOCENT_ZH, "a score of ", "the score of the arm"])
def test_what_only_looks_like_one_is_none(word: str) -> None:
    assert not bare_numbers(f"Then {word}") and not bare_numbers(word)


def test_a_score_of_a_bound_figure_is_a_score() -> None:
    """The figure gives the number; "a score of tasks" is twenty of them."""
    assert not check_pieces("It has a score of [[share]].", "en", figures=["share"], references=[])
    assert check_pieces("It solved a score of tasks.", "en", figures=["share"], references=[])


def test_a_fold_keeps_places() -> None:
    """Each character of the reading stands where its sign does."""
    folded, places = fold("a\u200bЬ🅃ﬁ")
    assert folded[:1] == "a" and len(folded) == len(places) and places == sorted(places)
    assert fold("one two") == ("one two", list(range(7)))


@pytest.mark.parametrize("word", ["rеward", "αlpha", "Мodel", "gаin", "ᎪB", "Δreward", "mоdеl"])
def test_a_word_of_two_alphabets_is_refused_as_one(word: str) -> None:
    """Whatever it may mean; the place is given."""
    text = f"The {word} is here"
    assert [text[start:stop] for start, stop in mixed_words(text)] == [word]
    (trouble,) = [item for item in check_pieces(text, "en", figures=[], references=[]) if item.code == "mixed_script"]
    assert trouble.text == word and "alphabet" in trouble.message


@pytest.mark.parametrize("word", ["награда", "α", "奖励reward", "GPU内存", "naïve", "café", "μs", "ｒｅｗａｒｄ", "ℝ"])
def test_a_word_of_one_alphabet_beside_chinese_is_none(word: str) -> None:
    assert not mixed_words(f"The {word} is here")
