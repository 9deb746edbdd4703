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
