"""Numbers as sources write them, as records keep them and as pages show them. Exact until the last step."""

from __future__ import annotations

import re
from fractions import Fraction

from evidence.binding.expressions import ExpressionError, number, shown

PLAIN, PERCENT, RATIO = "plain", "percent", "ratio"
MOST_TEXT, MOST_DIGITS = 200, 12
CONTEXT = 64  # code points on either side of a place that can belong to one number with it
ABSENT = "—"
_NUMERALS = "零〇一二三四五六七八九十百千万亿两半第"
_IDENTIFIER = re.compile(r"[A-Za-z_]\Z|\d[eE][-−–+]\Z")
# A whole word that labels a number ("checkpoint30", "exit137"); a letter or two, or hexadecimal digits, is a name.
_LABEL = re.compile(r"(?<![A-Za-z0-9_])(?![a-f]+\Z)[A-Za-z][a-z]{3,}\Z")
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?")
_SPACES = " \u00a0\u202f\u2009"
_SIGNS = "-−–‐‑"
_POWER = r"(?:\^|\*\*)[ {(]*[-−–‐‑+]?\d+|[⁺⁻]?[⁰¹²³⁴-⁹]+"
# What is one number although a number stands within it; the first that fits at a place decides.
_WHOLE = re.compile(
    rf"\d[\d.,]*[ \u00a0]?[×x·*][ \u00a0]?10(?:{_POWER}|[{_SIGNS}]\d+|\d+)"  # 3×10^5, and 3×105 for want of a power
    rf"|\d[\d.,]*(?:{_POWER})"  # 10^5, 10⁵
    rf"|\d[\d.,]*[%‰]?[{_SIGNS}][{_SIGNS}+]?\d[\d.,]*"  # 10−4: a range, a difference or a power
    rf"|(?<![\d.,])[1-9]\d{{0,2}}(?:[{_SPACES}'’_]\d{{3}})+(?![\d])(?:\.\d+)?"  # 1 000 000
    r"|\d[\d.,]*[eE][-−–+]?\d+"
    r"|\d[\d.,]*(?:[kKMGBT]|bn|mn)(?![A-Za-z0-9])|\d[\d.,]*[ \u00a0]?[百千万亿]"  # 1.5k, 2M, 3 万
)
_LIST = re.compile(r"\d+(?:\.\d+)?(?:/\d+(?:\.\d+)?){2,}")  # 12/13/14: no two of them are a rate
_RANGE = re.compile(r"(\d+)–(\d+)")
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
_CLEAN = str.maketrans({**dict.fromkeys("−–‐‑", "-"), **dict.fromkeys(_SPACES, " "), "％": "%", "，": ","})


def written(text: str) -> Fraction:
    """A number as a source writes it: 2,384, −0.5, 37.7 %, 1e-4, 92/244, six or 两. Raises ``ExpressionError``.

    Words are read up to twelve. A sign of per cent divides by a hundred; a comma is read only where it groups
    three digits, and so is a space.
    """
    clean = text.translate(_CLEAN).strip()
    if clean.casefold() in _WORDS:
        return Fraction(_WORDS[clean.casefold()])
    first, slash, second = clean.partition("/")
    if slash:
        if "/" in second:
            raise ExpressionError(f"number: got {text[:80]!r}, expected one / at most: n/N")
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
        clean = clean.replace(",", "").replace(" ", "")
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
    """Where ``wanted`` stands in a text as a whole number: "44" does not stand in "244", nor "5" in "0.5" or "-5".

    Nor in a longer number that is written apart or with a power, a range or a multiple: 1 000 000, 3×10^5, 10−4, 2M.
    """
    found, start = [], text.find(wanted)
    longer = _longer(text, wanted) if start != -1 else []
    while start != -1:
        stop = start + len(wanted)
        apart = all(last <= start or stop <= first or (start <= first and last <= stop) for first, last in longer)
        if apart and _whole_before(text, start) and _whole_after(text, stop):
            found.append(start)
        start = text.find(wanted, start + 1)
    return found


def is_cut(text: str, place: int) -> bool:
    """Whether ``place`` lies within a word or a number of a text: "95 of", "12,000" and "-5" are not cut in two."""
    if not 0 < place < len(text):
        return False
    left, right = text[place - 1], text[place]
    if _of_word(left) and _of_word(right):
        return True
    around, at = text[max(0, place - CONTEXT) : place + CONTEXT], min(place, CONTEXT)
    if any(item.start() < at < item.end() for item in _WHOLE.finditer(around)):
        return True
    if right.isdigit():
        return bool(re.search(rf"\d[.,/]\Z|(?:\A|[^\w.)\]])\.\Z|(?:\A|[^\w)\]])[{_SIGNS}+]\Z", around[:at]))
    return left.isdigit() and re.match(r"[.,/]\d|[ \u00a0]?[%‰％]", around[at:]) is not None


def _of_word(char: str) -> bool:
    """A letter or digit of a script that parts its words by spaces."""
    return char.isalnum() and (ord(char) < 0x2E80 or 0xFF10 <= ord(char) <= 0xFF19)


def _longer(text: str, wanted: str) -> list[tuple[int, int]]:
    """Spans of a text of which ``wanted`` may not be a part."""
    if wanted[:1].isalpha():
        return []
    found = [item.span() for item in _WHOLE.finditer(text) if not _ascends(item.group())]
    return found + [item.span() for item in _LIST.finditer(text) if "/" in wanted]


def _ascends(text: str) -> bool:
    """Whether it is a range with the dash of ranges, from the lesser to the greater: 19–23."""
    found = _RANGE.fullmatch(text.rstrip(".,"))
    return found is not None and len(text) < MOST_TEXT and int(found[1]) < int(found[2])


def open_edge(number: str, first: bool) -> bool:
    """Whether a number at the ``first`` or last place of a transcription may be the rest of a longer one.

    Such are whole numbers of one or two digits, or that begin with 0, and words; three digits, decimals, rates and a
    word that begins a sentence are taken as they were transcribed.
    """
    if number[:1].isalpha():
        return not (first and number[:1].isupper())
    digits = number.lstrip(f"+{_SIGNS}")
    return digits.isdigit() and (len(digits) < 3 or digits.startswith("0"))


def _whole_before(text: str, start: int) -> bool:
    """Whether no digit, point or sign before it belongs to the number."""
    before = text[:start]
    if not before:
        return True
    if text[start].isalpha():  # a word: no letter of its script, no numeral before it
        return not (before[-1].isascii() and before[-1].isalnum()) and before[-1] not in _NUMERALS
    if text[start] in f"+{_SIGNS}":
        return not before[-1].isalnum() and before[-1] not in f"+{_SIGNS}%)]"
    named = _IDENTIFIER.search(before) and not _LABEL.search(before)
    if before[-1].isdigit() or named or re.search(r"\d[.,]\Z|(?:\A|[^\w.)\]])\.\Z", before):
        return False
    return re.search(rf"(?:\A|[^\w)\]])[{_SIGNS}]\Z|−\Z", before) is None


def _whole_after(text: str, stop: int) -> bool:
    """Whether no digit, decimal part or exponent after it belongs to the number."""
    if text[stop - 1].isalpha():
        after = text[stop : stop + 1]
        return not (after.isascii() and after.isalnum()) and (not after or after not in _NUMERALS)
    return re.match(r"\d|[.,]\d|[eE][-−–+]?\d", text[stop:]) is None
