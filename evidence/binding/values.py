"""Numbers as sources write them, as records keep them and as pages show them. Exact until the last step."""

from __future__ import annotations

import re
from fractions import Fraction

from evidence.binding.expressions import ExpressionError, number, shown

PLAIN, PERCENT, RATIO = "plain", "percent", "ratio"
MOST_TEXT, MOST_DIGITS = 200, 12
ABSENT = "—"
_NUMERALS = "零〇一二三四五六七八九十百千万亿两半第"
_IDENTIFIER = re.compile(r"[A-Za-z_]\Z|\d[eE][-+]\Z")
# A whole word that labels a number ("checkpoint30", "exit137"); a letter or two, or hexadecimal digits, is a name.
_LABEL = re.compile(r"(?<![A-Za-z0-9_])(?![a-f]+\Z)[A-Za-z][a-z]{3,}\Z")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_WORDS: dict[str, int] = {
    word: value
    for value, words in enumerate(
        (
            "zero 零 〇", "one 一", "two 二 两", "three 三", "four 四", "five 五", "six 六", "seven 七", "eight 八",
            "nine 九", "ten 十", "eleven 十一", "twelve 十二",
        )
    )
    for word in words.split()
}  # fmt: skip
_CLEAN = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "％": "%", "，": ","})


def written(text: str) -> Fraction:
    """A number as a source writes it: 2,384, −0.5, 37.7 %, 1e-4, 92/244, six or 两. Raises ``ExpressionError``.

    Words are read up to twelve. A sign of per cent divides by a hundred; a comma is read only where it groups
    three digits.
    """
    clean = text.translate(_CLEAN).strip()
    if clean.casefold() in _WORDS:
        return Fraction(_WORDS[clean.casefold()])
    first, slash, second = clean.partition("/")
    if slash:
        over = written(second)
        if over == 0:
            raise ExpressionError(f"number: got {text[:80]!r}, expected a denominator other than 0")
        return written(first) / over
    scale = Fraction(1)
    if clean.endswith("%"):
        clean, scale = clean[:-1].rstrip(), Fraction(1, 100)
    sign = -1 if clean.startswith("-") else 1
    clean = clean[1:] if clean[:1] in ("+", "-") else clean
    if _GROUPED.fullmatch(clean):
        clean = clean.replace(",", "")
    if clean[:1] in ("+", "-"):
        raise ExpressionError(f"number: got {text[:80]!r}, expected one sign at most")
    return sign * number(clean) * scale


def exact(value: Fraction) -> str:
    """The exact text of a value: a decimal where it ends, else a fraction. Raises ``ExpressionError`` if too long."""
    if value.numerator.bit_length() + value.denominator.bit_length() > 4 * MOST_TEXT:
        raise ExpressionError(f"value: got a number of more than {MOST_TEXT} characters, expected a shorter one")
    left, places = value.denominator, 0
    while left % 2 == 0 or left % 5 == 0:
        left //= 5 if left % 5 == 0 else 2
        places += 1
    text = f"{value.numerator}/{value.denominator}"
    if left == 1 and places <= 60:
        text = shown(value, _places(value))
    if len(text) > MOST_TEXT:
        raise ExpressionError(f"value: got {len(text)} characters, expected at most {MOST_TEXT}")
    return text


def _places(value: Fraction) -> int:
    """Decimal places of a value that ends."""
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    return places


def read_exact(text: str) -> Fraction:
    """The value of an exact text. Raises ``ExpressionError``."""
    if not re.fullmatch(r"-?\d+(?:\.\d+|/[1-9]\d*)?", text, re.ASCII) or len(text) > MOST_TEXT:
        raise ExpressionError(f"value: got {text[:80]!r}, expected a decimal number or a fraction")
    return Fraction(text)


def _grouped(text: str) -> str:
    whole, point, rest = text.lstrip("-").partition(".")
    return ("−" if text.startswith("-") else "") + f"{int(whole):,}" + point + rest


def show(value: Fraction, style: str, digits: int, numerator: str = "", denominator: str = "") -> str:
    """A value as a page shows it: 2,384 · 37.7 % · 92/244. Rounded half to even at ``digits`` decimal places."""
    if style == RATIO:
        return f"{_grouped(numerator)}/{_grouped(denominator)}"
    if style == PERCENT:
        return f"{_grouped(shown(value * 100, digits))} %"
    return _grouped(shown(value, digits))


def show_stored(value: str | None, style: str, digits: int, numerator: str = "", denominator: str = "") -> str:
    """``show`` of an exact text; an em dash where there is none, which is never a 0."""
    return ABSENT if value is None else show(read_exact(value), style, digits, numerator, denominator)


def places_of(text: str, wanted: str) -> list[int]:
    """Where ``wanted`` stands in a text as a whole number: "44" does not stand in "244", nor "5" in "0.5" or "-5"."""
    found, start = [], text.find(wanted)
    while start != -1:
        if _whole_before(text, start) and _whole_after(text, start + len(wanted)):
            found.append(start)
        start = text.find(wanted, start + 1)
    return found


def _whole_before(text: str, start: int) -> bool:
    """Whether no digit, point or sign before it belongs to the number."""
    before = text[:start]
    if not before:
        return True
    if text[start].isalpha():  # a word: no letter of its script, no numeral before it
        return not (before[-1].isascii() and before[-1].isalnum()) and before[-1] not in _NUMERALS
    if text[start] in "+-−":
        return not before[-1].isalnum()
    named = _IDENTIFIER.search(before) and not _LABEL.search(before)
    if before[-1].isdigit() or named or re.search(r"\d[.,]\Z|(?:\A|[^\w.)\]])\.\Z", before):
        return False
    return re.search(r"(?:\A|[\s(\[=:,;<>≤≥~])[-−]\Z", before) is None


def _whole_after(text: str, stop: int) -> bool:
    """Whether no digit, decimal part or exponent after it belongs to the number."""
    if text[stop - 1].isalpha():
        after = text[stop : stop + 1]
        return not (after.isascii() and after.isalnum()) and (not after or after not in _NUMERALS)
    return re.match(r"\d|[.,]\d|[eE][-+]?\d", text[stop:]) is None
