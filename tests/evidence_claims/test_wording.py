# ruff: noqa: E501 - tables of sentences
"""Words against kind: each family refused by name in both languages, beside what is allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.models import ClaimVersion
from evidence.wording import Facts, check, lacking, phrases


def said(kind: str, text: str) -> list[str]:
    """Phrases that a claim of this kind may not use."""
    return [item.text for item in phrases(kind, text)]


@pytest.mark.parametrize(
    ("text", "phrase", "kind"),
    [
        ("The mask improves recovery.", "improves", "improvement"),
        ("Recovery is better with the mask.", "better", "improvement"),
        ("It outperforms the baseline.", "outperforms", "improvement"),
        ("A significant change.", "significant", "improvement"),
        ("掩码提升了恢复率。", "提升", "improvement"),
        ("掩码优于基线。", "优于", "improvement"),
        ("效果显著。", "显著", "improvement"),
        ("The arms are equivalent.", "equivalent", "equivalence"),
        ("There is no difference.", "no difference", "equivalence"),
        ("There is no significant difference.", "no significant difference", "equivalence"),
        ("The mask is on par with it.", "on par", "equivalence"),
        ("两组等效。", "等效", "equivalence"),
        ("两组无差异。", "无差异", "equivalence"),
        ("两组没有显著差异。", "没有显著差异", "equivalence"),
        ("掩码与基线相当。", "与基线相当", "equivalence"),
        ("It is non-inferior.", "non-inferior", "non_inferiority"),
        ("It is not worse than the baseline.", "not worse than", "non_inferiority"),
        ("掩码非劣。", "非劣", "non_inferiority"),
        ("掩码不差于基线。", "不差于", "non_inferiority"),
    ],
)
def test_a_ruled_word_belongs_to_its_kind(text: str, phrase: str, kind: str) -> None:
    for other in ClaimVersion.KINDS:
        assert said(other, text) == ([] if other == kind else [phrase]), other
    (trouble,) = phrases("description", text)
    assert f"kind {kind}" in trouble.message and text[trouble.start : trouble.stop] == phrase
    assert "no regression was observed" in trouble.message


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("This proves it.", "proves"), ("It is guaranteed by design.", "guaranteed"), ("结果证明了这一点。", "证明"),
        ("The agent is safe.", "safe"), ("智能体是安全的。", "安全"), ("It generalises to others.", "generalises"),
        ("掩码具有泛化性。", "泛化"), ("It always holds.", "always"),
    ],
)  # fmt: skip
def test_no_kind_may_say_that_it_proves_is_safe_or_holds_everywhere(text: str, phrase: str) -> None:
    for kind in ClaimVersion.KINDS:
        assert said(kind, text) == [phrase]


@pytest.mark.parametrize(
    "text",
    [
        "This does not show that the mask improves recovery.",
        "The count says nothing: it is not safety, nor general ability.",
        "No improvement was registered.",
        "它并不表示等效。",
        "尚未证明它优于基线。",
        "不能说明安全。",
        "The arms share a tokenizer; {{name:SafeEdit}} and [[better.figure]] are names, as is {{code:improve.py}}.",
        "No regression was observed.",
        "未观察到退步。",
        "Twice the tokens were cut, in the same tasks.",
    ],
)
def test_what_is_denied_named_or_observed_asserts_nothing(text: str) -> None:
    assert said("description", text) == []


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("It does not fail and improves recovery.", "improves"),
        ("It is not only faster, it is better.", "better"),
        ("It cannot be denied that it improves.", "improves"),
        ("Not that fast, but better.", "better"),
        ("不同任务上都有提升。", "提升"),
        ("不仅提升了恢复率。", "提升"),
        ("毫无疑问它更好。", "毫无疑问"),
        ("There were no regressions.", "no regressions"),
        ("没有退步。", "没有退步"),
    ],
)
def test_a_denial_of_something_else_lets_nothing_through(text: str, phrase: str) -> None:
    assert phrase in said("description", text)


@pytest.mark.parametrize(
    "text",
    [
        "It does not improve.", "It did not significantly improve.", "No improvement was seen.", "It isn't better.",
        "There is no evidence that it improves.", "It is not shown that F improves over V.", "F is never better.",
        "It is not clear whether it improves.", "Nothing here shows that it improves.", "It is no proof of that.",
        "It has not been shown to improve recovery.", "It ran without any improvement.", "It is not evidence of safety.",
        "It neither improves nor guarantees anything.", "It did not show an improvement.", "It is unknown whether F improves.",
        "It makes no claim of an improvement.", "It is not the best.", "It is not the case that it improves.", "没有提升。", "并未提升恢复率。", "没有证据表明它优于基线。",
        "尚未证明它优于基线。", "未见明显提升。", "不优于基线。", "不能保证。",
    ],
)  # fmt: skip
def test_a_denial_stands_before_its_word_or_says_that_it_is_not_known(text: str) -> None:
    assert said("description", text) == []


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Without a mask F improves over V.", "improves"), ("With no mask F improves over V.", "improves"),
        ("Not the mask improves it.", "improves"), ("It was not run twice before F improves.", "improves"),
        ("It is not without improvement.", "improvement"), ("There is no lack of improvement.", "improvement"),
        ("An arm that never fails improves recovery.", "improves"), ("No arm that lacks a mask is better.", "better"),
        ("It is not shown that it stops because it improves.", "improves"), ("没有掩码时 F 提升了恢复率。", "提升"),
        ("无掩码的臂优于基线。", "优于"), ("并非没有提升。", "提升"), ("不用掩码优于基线。", "优于"),
        ("It is not false that F improves.", "improves"), ("It cannot fail to improve.", "improve"),
    ],
)  # fmt: skip
def test_a_negation_elsewhere_denies_nothing(text: str, phrase: str) -> None:
    assert phrase in said("description", text)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("It im\u200bproves.", "im\u200bproves"), ("It imprоves.", "imprоves"), ("It is ѕаfe.", "ѕаfe"),
        ("It is bet\u00adter.", "bet\u00adter"), ("It ｐｒｏｖｅｓ it.", "ｐｒｏｖｅｓ"), ("It is b\u0301etter.", "b\u0301etter"),
        ("It\u2800improves.", "improves"), ("提\u200b升了。", "提\u200b升"), ("It ɪᴍᴘʀᴏᴠᴇs.", "ɪᴍᴘʀᴏᴠᴇs"),
        ("The arm {{name:improves}} it.", "improves"), ("It {{name:Improves The Reward}}.", "Improves"),
        ("It is {{code:safe}}.", "safe"), ("It {{formula:improves}}.", "improves"), ("{{name:提升}}", "提升"),
        ("It {{name:im\u200bproves}}.", "im\u200bproves"), ("{{name:Not}} it improves.", "improves"),
    ],
)  # fmt: skip
def test_a_disguised_word_is_read_as_it_is_seen(text: str, phrase: str) -> None:
    assert phrase in said("description", text)


def test_names_beside_words_are_skipped() -> None:
    for text in (
        "{{name:SafeEdit}} ran.",
        "{{code:improve.py}} ran.",
        "{{name:Improved-A2}} ran.",
        "[[better.figure]]",
    ):
        assert said("description", text) == []


def test_no_regression_is_worded_as_observed() -> None:
    assert [item.code for item in check("no_regression", "Nothing became slower.", "en")] == ["observed"]
    assert "未观察到退步" in check("no_regression", "速度如常。", "zh")[0].message
    assert check("no_regression", "No regression was observed on the test tasks.", "en") == []
    assert check("no_regression", "在测试任务上未观察到退步。", "zh") == []


def test_what_a_plan_lacks_is_said_with_what_to_do() -> None:
    none, bare = Facts(), Facts(plan=True, endpoint=True)
    full = Facts(plan=True, endpoint=True, registered=frozenset({"improvement"}))
    for facts, code in ((none, "plan"), (bare, "endpoint"), (Facts(plan=True), "endpoint")):
        found = lacking("improvement", facts)
        assert found is not None and found.code == code and "a direction" in found.message
        assert "no regression was observed" in found.message
    assert lacking("improvement", full) is None and lacking("description", none) is None
    measured = Facts(plan=True, endpoint=True, registered=frozenset({"improvement"}), holds=frozenset())
    found = lacking("improvement", measured)
    assert found is not None and found.code == "interval"


@given(st.text(), st.sampled_from(ClaimVersion.KINDS))
def test_any_text_is_read_and_each_phrase_stands_where_it_says(text: str, kind: str) -> None:
    before = 0
    for item in phrases(kind, text):
        assert item.start >= before and text[item.start : item.stop] == item.text
        before = item.stop
