"""Numbers as they are written, kept and shown."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.binding.expressions import ExpressionError
from evidence.binding.figures import BindingError, number_in
from evidence.binding.values import exact, is_cut, places_of, read_exact, show, show_stored, written


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2,384", 2384), ("823,171,568", 823171568), ("−0.5", Fraction(-1, 2)), ("37.7 %", Fraction(377, 1000)),
        ("90.2%", Fraction(902, 1000)), ("92/244", Fraction(23, 61)), ("1e-4", Fraction(1, 10000)), ("six", 6),
        ("Six", 6), ("两", 2), ("0", 0), ("+3", 3),
    ],
)  # fmt: skip
def test_written_numbers(text: str, value: Fraction) -> None:
    """As a source prints them."""
    assert written(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "1,2", "1,23,456", "12,34", "--5", "+-5", "5/0", "1e999", "nan", "inf", "thirteen", "5 6", "1/2/0", "x"],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    """Nothing is guessed: 1,2 is neither 12 nor 1.2."""
    with pytest.raises(ExpressionError):
        written(text)


@given(st.fractions(max_denominator=10**6))
def test_exact_texts_come_back(value: Fraction) -> None:
    """A decimal where it ends, a fraction elsewhere; the same value either way."""
    text = exact(value)
    assert read_exact(text) == value
    if "/" not in text:
        assert Fraction(Decimal(text)) == value


@pytest.mark.parametrize("value", [Fraction(1, 3**500), Fraction(10**5000), Fraction(7, 10**300)])
def test_a_value_too_long_to_keep_is_refused(value: Fraction) -> None:
    """By name, however long it is."""
    with pytest.raises(ExpressionError, match="value: got"):
        exact(value)


def test_values_are_shown_rounded_half_to_even() -> None:
    """0.125 at two digits is 0.12, 0.375 is 0.38; a share of 92/244 is 37.7 %."""
    assert (show(Fraction(1, 8), "plain", 2), show(Fraction(3, 8), "plain", 2)) == ("0.12", "0.38")
    assert show(Fraction(92, 244), "percent", 1) == "37.7 %"
    assert show(Fraction(92, 244), "ratio", 0, "92", "244") == "92/244"
    assert show(Fraction(-12345678, 10), "plain", 1) == "−1,234,567.8"
    assert show(Fraction(1, 2), "plain", 0) == "0" and show(Fraction(3, 2), "plain", 0) == "2"


def test_nothing_is_never_a_zero() -> None:
    """An em dash stands where there is no value."""
    assert show_stored(None, "plain", 0) == show_stored(None, "percent", 2) == "—"
    assert show_stored("0", "plain", 0) == "0"


def test_a_number_is_found_whole() -> None:
    """Neither within a longer number, nor without its sign, nor before its decimals."""
    text = "244 of 44, 0.44, -44, 44.5 and 44. (44) 1e44 1e-44 44e3 M44"
    assert places_of(text, "44") == [7, 31, 36] and places_of(text, "-44") == [17]
    assert places_of("From 5 to -5 or M-5", "5") == [5, 18]
    assert places_of("From 5 to -5", "-5") == [10] and places_of("six sixes, Six", "six") == [0]
    assert places_of("十二个,二个", "二") == [4]
    assert places_of("checkpoint44 exit44 E44 v44 face44 my_step44 to44", "44") == [10, 17]


def test_occurrences_count_from_one() -> None:
    """The second 5 is asked for; there is no third."""
    assert number_in("5 or 5", "5", 2) == 5
    with pytest.raises(BindingError, match="occurrence 3, of which the excerpt holds 2"):
        number_in("5 or 5", "5", 3)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([", ", "; ", " of "]))
def test_numbers_apart_are_each_found(first: int, second: int, between: str) -> None:
    """Each stands once, or twice where they are equal."""
    text = f"{first}{between}{second}."
    assert len(places_of(text, str(first))) == (2 if first == second else 1)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("-5 points", "5"), ("–8 points", "8"), ("−8 points", "8"), ("by (–8)", "8"), ("“-5”", "5"), ("M−5", "5"),
        ("range 10−4", "10"), ("range 10−4", "4"), ("10-4", "-4"), ("10–4", "–4"), ("5%-7%", "7"),
        ("1 000 000 tokens", "000"), ("1 000 000 tokens", "1"), ("1\u202f000 tokens", "1"), ("1,000,000", "000"),
        ("1’000", "1"), ("3×10^5", "3"), ("3×10^5", "10"), ("3 × 10^5", "5"), ("3×10⁵", "3"), ("10⁵", "10"),
        ("3·10**5", "5"), ("3×105", "3"), ("1e5", "1"), ("1e−5", "5"), ("1.5k", "1.5"), ("2M", "2"), ("3万", "3"),
        ("12/13/14", "12/13"), ("12/13/14", "13/14"),
    ],
)  # fmt: skip
def test_a_part_of_a_number_is_no_number(text: str, wanted: str) -> None:
    """Signs, ranges, groups, powers, multiples and days belong together."""
    assert places_of(text, wanted) == []


@pytest.mark.parametrize(
    ("text", "wanted", "value"),
    [
        ("-5 points", "-5", -5), ("–8 points", "–8", -8), ("−8 points", "−8", -8), ("step-5 of 9", "5", 5),
        ("1 000 000 tokens", "1 000 000", 10**6), ("1\u202f000 tokens", "1\u202f000", 1000),
        ("1,000,000 tokens", "1,000,000", 10**6), ("lr 1e-5.", "1e-5", Fraction(1, 10**5)),
        ("in 2024 100 runs", "100", 100), ("12/13 runs", "12/13", Fraction(12, 13)), ("12/13 runs", "12", 12),
        ("12/13/14", "12", 12),
        ("groups 19–23", "19", 19), ("groups 19–23", "23", 23),
        ("3 × 10 runs", "10", 10), ("7 KB", "7", 7),
    ],
)  # fmt: skip
def test_a_whole_number_is_read_whole(text: str, wanted: str, value: Fraction) -> None:
    """The other side of each refusal."""
    assert number_in(text, wanted) == value


@pytest.mark.parametrize("wanted", ["3×10^5", "1.5k", "2M", "10−4", "12/13/14", "1’000", "0,123"])
def test_what_is_not_read_whole_is_refused(wanted: str) -> None:
    with pytest.raises(ExpressionError, match="number: got"):
        number_in(wanted, wanted)


def test_a_chain_of_fractions_is_refused_however_long() -> None:
    with pytest.raises(ExpressionError, match="one / at most"):
        written("/".join(["1"] * 5_000))


def test_a_dash_between_digits_says_what_to_do() -> None:
    """Nobody can tell a range from a difference or a lost power."""
    with pytest.raises(BindingError, match="a dash after a digit"):
        number_in("a rate of 10−4 here", "10")


@pytest.mark.parametrize(
    ("text", "cut", "whole"),
    [
        ("95 of 100", 1, 3), ("12 000 tasks", 3, 7), ("12,000 tasks", 3, 7), ("-5 points", 1, 0), ("by −5", 4, 3),
        ("92/244 rows", 3, 6), ("37.7 % of", 4, 6), ("words here", 2, 5), ("3×10^5 a", 4, 6), ("0.5", 2, 3),
        ("共十二个", 1, 1), ("1e-5 x", 3, 4),
    ],
)  # fmt: skip
def test_where_a_text_may_be_cut(text: str, cut: int, whole: int) -> None:
    """Between words, not within one; scripts that write no spaces may be cut between any two signs."""
    assert not is_cut(text, whole)
    assert is_cut(text, cut) or text == "共十二个"


@pytest.mark.parametrize(
    ("text", "number", "before", "after"),
    [("5 of 100", "5", "9", " x"), ("000 tasks", "000", "12 ", ""), ("of 10", "10", "", "0"), ("5 a", "5", "by -", "")],
)
def test_a_number_at_an_edge_is_whole_in_the_source(text: str, number: str, before: str, after: str) -> None:
    """The text before and after the excerpt decides; with words there the number stands."""
    with pytest.raises(BindingError, match="at an edge of the excerpt"):
        number_in(text, number, around=(before, after))
    assert number_in(text, number, around=("word ", " word")) == int(number)


@pytest.mark.parametrize("text", ["8 of them", "them 8", "-8 of them", "about -8", "them 18", "000 of them"])
def test_a_number_at_the_edge_of_a_transcription_is_refused(text: str) -> None:
    """No bytes tell what stood beside it; a sentence mark, a quotation mark or a word does."""
    with pytest.raises(BindingError, match="edge of the transcription"):
        number_in(text, next(part for part in text.split() if part[-1].isdigit()), around=(None, None))
    assert number_in("“8 of them", "8", around=(None, None)) == 8 == number_in("them 8。", "8", around=(None, None))
    assert (
        number_in("8 of them", "8", around=("of ", None)) == 8
        and number_in("126 of", "126", around=(None, None)) == 126
    )
    assert number_in("the 8 of them", "8", around=(None, None)) == 8
