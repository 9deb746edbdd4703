"""Numbers as they are written, kept and shown."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.binding.expressions import ExpressionError
from evidence.binding.figures import BindingError, number_in
from evidence.binding.values import exact, places_of, read_exact, show, show_stored, written


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
        assert Decimal(text) == Decimal(value.numerator) / Decimal(value.denominator)


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


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([" ", ", ", "; ", " of "]))
def test_numbers_apart_are_each_found(first: int, second: int, between: str) -> None:
    """Each stands once, or twice where they are equal."""
    text = f"{first}{between}{second}."
    assert len(places_of(text, str(first))) == (2 if first == second else 1)
