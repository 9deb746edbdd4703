# ruff: noqa: E501 - one case a line; look-alike letters are what is refused
"""Derivations: exact arithmetic with units, and nothing beyond the grammar."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.binding.expressions import (
    ExpressionError,
    Quantity,
    check_measured,
    constants,
    evaluate,
    number,
    parse_unit,
    show_unit,
    shown,
)

TOKENS, SECONDS = parse_unit("tokens"), parse_unit("s")
FIGURES = {
    "passed": Quantity(Fraction(92), parse_unit("episodes")), "all_episodes": Quantity(Fraction(244), parse_unit("episodes")),
    "used": Quantity(Fraction(1200), TOKENS), "wall": Quantity(Fraction(3, 2), SECONDS), "none": Quantity(Fraction(0), TOKENS),
}  # fmt: skip


def test_a_share_is_exact_and_has_no_unit() -> None:
    """92 / 244 = 23 / 61 = 0.37704918..., shown as 0.377."""
    found = evaluate("passed / all_episodes", FIGURES)
    assert found == Quantity(Fraction(23, 61)) and shown(found.value, 3) == "0.377"


def test_decimals_are_what_is_written() -> None:
    assert evaluate("0.1 + 0.2", {}).value == Fraction(3, 10) and evaluate("-(2 - 5) * 1e2", {}).value == 300
    assert evaluate("12345678901234567890.5", {}).value == Fraction("12345678901234567890.5")


def test_units_multiply_and_divide() -> None:
    assert (
        show_unit(evaluate("used / wall", FIGURES).unit) == "tokens/s" and evaluate("used / wall", FIGURES).value == 800
    )
    assert show_unit(evaluate("used * used / wall", FIGURES).unit) == "tokens^2/s"
    assert show_unit(evaluate("1 / wall", FIGURES).unit) == "1/s"


@pytest.mark.parametrize(
    ("text", "value"), [("sum(1, 2, 3)", 6), ("mean(1, 2)", Fraction(3, 2)), ("min(3, 2)", 2), ("max(3, 2)", 3), ("count(used, none)", 2)]
)  # fmt: skip
def test_functions(text: str, value: Fraction) -> None:
    assert evaluate(text, FIGURES).value == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("used + wall", "one unit"), ("used - 1", "one unit"), ("max(used, wall)", "one unit"),
        ("used / none", "divisor of 0"), ("missing + 1", "figure: got 'missing'"), ("", "expected an expression"),
        ("1 +", "expected an expression"), ("used ** 2", "expected numbers"), ("__import__('os')", "expected numbers"),
        ("used.value", "expected numbers"), ("[used]", "expected numbers"), ("'a'", "expected numbers"), ("True", "expected numbers"),
        ("1j", "expected numbers"), ("sum()", "expected numbers"), ("sum(*used)", "expected numbers"), ("(lambda: 1)()", "expected numbers"),
        ("1 if used else 2", "expected numbers"), ("used < 1", "expected numbers"), ("1e999", "number: got"), ("1_000", "number: got"),
        ("0x10", "number: got"), ("1+" * 1001 + "1", "characters"), ("-" * 60 + "1", "levels"),
    ],
)  # fmt: skip
def test_what_the_grammar_does_not_hold_is_refused(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        evaluate(text, FIGURES)


@pytest.mark.parametrize(
    ("text", "words"),
    [("used # a reason", "the comment '# a reason'"), ("used#x", "the comment '#x'"), ("ｕｓｅｄ", "got 'ｕｓｅｄ'"),
     ("used + 用量", "got '用量'"), ("usеd", "got 'usеd'"), ("used * ２", "got '２'"), ("used − wall", "got '−'")],
)  # fmt: skip
def test_comments_and_look_alikes_are_refused_by_name(text: str, words: str) -> None:
    """A comment says what is not computed; a fullwidth or Cyrillic name reads as another one."""
    assert evaluate("used", FIGURES).value == 1200
    with pytest.raises(ExpressionError, match=words):
        evaluate(text, FIGURES)


RATES = {"a": Quantity(Fraction(19, 20)), "b": Quantity(Fraction(1, 2)), "c": Quantity(Fraction(1, 2))}
KEYS = {"a": "arm.a", "b": "arm.b", "c": "arm.b"}  # b and c are one figure


@pytest.mark.parametrize(
    "text",
    [
        "a - b",
        "a",
        "1 - a",
        "a / b - 1",
        "100 * (a - b) / b",
        "(a - b) / b * 100",
        "a / 100",
        "max(a, b)",
        "min(a, b)",
        "a / (a + b)",
        "a * 1",
        "mean(a, b)",
    ],
)
def test_what_an_effect_may_be_derived_by(text: str) -> None:
    used = {name: RATES[name] for name in "ab" if name in text.replace("max", "").replace("mean", "")}
    check_measured(text, used, KEYS)


@pytest.mark.parametrize(
    ("text", "words"),
    [("0.178 * a / a", "the constant 0.178.*bind it as a figure of its own"), ("a * 6.328888888", "the constant 6.328888888"),
     ("0.95 + 0 * a", "the constant 0.95"), ("a + 1", "the constant 1"), ("a + 100", "the constant 100"), ("1 / a", "the constant 1"),
     ("100 - a", "the constant 100"), ("max(1, a)", "the constant 1"), ("1 * 100 * a", "the constant 1"), ("-1 * a", "the constant 1"),
     ("a * 1.0", "the constant 1.0"), ("a * count(b, c)", "count"), ("1 - (1 - (1 - a))", "3 constants"), ("a + a", "arm.a 2 times.*at most 1"),
     ("(a + a + a) / (a + b)", "arm.a 4 times.*at most 2"), ("a + b - c", "arm.b, on which the value does not depend"),
     ("a * b / c", "arm.b, on which the value does not depend"), ("0 * a + b", "the constant 0")],
)  # fmt: skip
def test_typed_numbers_never_enter_an_effect(text: str, words: str) -> None:
    """Neither written, nor as a quotient of one figure with itself, nor as a count."""
    with pytest.raises(ExpressionError, match=words):
        check_measured(text, RATES if "c" in text.replace("count", "") else {n: RATES[n] for n in "ab"}, KEYS)


def test_a_rate_of_no_case_depends_on_both_of_its_figures() -> None:
    """0 of 27 is a rate: its value is 0 whatever the denominator, and it is derived from both."""
    check_measured("n / of", {"n": Quantity(Fraction(0)), "of": Quantity(Fraction(27))}, {"n": "n", "of": "of"})


def test_constants_are_listed_as_written() -> None:
    assert constants(" 0.50 * a + 1e3 - (b / 0.50) * 2") == ["0.50", "1e3", "2"]
    assert constants("a / b") == []


@pytest.mark.parametrize("text", ["nan", "inf", "1e100", "1/2", " 1", "", "１", "1" * 61])
def test_numbers_that_are_no_plain_decimals_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="number: got"):
        number(text)


@pytest.mark.parametrize("text", ["", "tokens", "tokens/s", "nats*tokens^2", "1/s"])
def test_units_are_shown_as_they_are_read(text: str) -> None:
    if text != "1/s":
        assert show_unit(parse_unit(text)) == text


@pytest.mark.parametrize("text", ["/s", "a**b", "a^x", "a//b", "*"])
def test_wrong_units_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="unit: got"):
        parse_unit(text)


@given(st.fractions(-1000, 1000, max_denominator=999), st.integers(0, 6))
def test_rounding_agrees_with_decimal(value: Fraction, digits: int) -> None:
    """Python's decimal, half to even, on a quotient of 60 digits."""
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    expected = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN)
    assert Decimal(shown(value, digits)) == expected


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8))
def test_sums_and_means_agree_with_plain_arithmetic(values: list[int]) -> None:
    text = ", ".join(str(value) for value in values)
    assert evaluate(f"sum({text})", {}).value == sum(values)
    assert evaluate(f"mean({text})", {}).value == Fraction(sum(values), len(values))
