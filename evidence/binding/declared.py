"""What a declared piece may hold: names, days, paths and formulas, none of which carries a number of its own.

A digit belongs to a name only where it is attached to a letter; a formula knows 0 and 1 in the places where they are
part of its form; a path has a letter beside its digits. Every rule reads a value as it is seen
(``evidence.binding.glyphs``) and answers what was expected, or None.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date

from evidence.binding.glyphs import fold, mixed_words, shows_number
from evidence.binding.numbers import PERCENT_SIGNS, bare_numbers

NAME, DATE, CODE, FORMULA = "name", "date", "code", "formula"
MOST_NAME, MOST_WORDS = 40, 3
FIRST_YEAR, LAST_YEAR = 1900, 2100
_BOUND = "a number is bound as [[figure.key]]"
# Letters with digits behind them (E2F, Qwen3), a version behind a letter (v2.1), a size in capitals (2B).
_ATTACHED = r"[^\W\d_]+(?:[0-9]+[^\W\d_]*)*"
_VERSION = r"[vV][0-9]{1,3}(?:\.[0-9]{1,3}){1,3}|[^\W\d_]+[1-9][0-9]?(?:\.[0-9]{1,2}){1,2}"
_PART = rf"(?:{_VERSION}|{_ATTACHED}|[0-9]{{1,3}}[A-Z]{{1,2}})"
_NAME_WORD = re.compile(rf"(?:{_VERSION}|{_ATTACHED})(?:[-_./@]{_PART}|(?<=[^\W\d_])-[0-9]{{1,4}}(?![\d.])|′)*")
_DIGITS = re.compile(r"[0-9]")
_MONTH = re.compile(r"(\d{4})-(?:0[1-9]|1[0-2])", re.ASCII)
_DAY = re.compile(r"(\d{4})-\d\d-\d\d", re.ASCII)
_HASH = re.compile(r"(?=[0-9]*[a-f])(?![0-9]+e[0-9]{1,11}\Z)[0-9a-f]{6,64}")
_FILE = re.compile(
    r"(?:[12][0-9]{3}-[01][0-9]-[0-3][0-9][-_])?[^\W\d][\w-]*(?:\.[^\W\d][\w-]*)*\.[A-Za-z][A-Za-z0-9]{0,7}"
)
_CODE_PART = re.compile(r"[^\W\d_]\w*|_+\w*[^\W\d_]\w*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?|[.,]\d+(?:[eE][-+]?\d+)?")
_COMPARED = re.compile(r"(?:[=≡]\s*)\Z")
_NO_EQUALS = re.compile(r"[<>≤≥≠≈≃~∼:!+*/-]\s*[=≡]\s*\Z|[=≡]\s*[=≡]\s*\Z")
_BOUNDING = re.compile(r"(?:clip|clamp|min|max)\s*\Z", re.IGNORECASE)
_SIGNS = str.maketrans({"−": "-", "–": "-", "‐": "-", "‑": "-", "﹣": "-", "∣": "|", "＝": "="})


def _has_letter(value: str) -> bool:
    return any(char.isalpha() for char in value)


def _without_digits(value: str) -> bool:
    """Whether a value says a number in words, whatever digits stand attached in it."""
    return not bare_numbers(_DIGITS.sub("_", value))


def _plain(value: str) -> bool:
    """Whether a value is written in signs that are what they look like."""
    return not mixed_words(value) and all(
        char.isascii() or (len(fold(char)[0]) == 1 and unicodedata.normalize("NFKC", char) == char) for char in value
    )


def _name(value: str) -> str | None:
    if len(value) > MOST_NAME:
        return f"a name of at most {MOST_NAME} characters"
    if not _plain(value):
        return "a name in the letters of one alphabet, without signs that are not seen"
    words = value.split(" ")
    if len(words) > MOST_WORDS or not all(_NAME_WORD.fullmatch(word) for word in words):
        return (
            f"a name that holds a letter: one to {MOST_WORDS} words joined by - _ . / @, every digit behind a letter "
            f"(E2F, RTX-4060, v2.1); {_BOUND}"
        )
    if len(words) > 1 and any(word.islower() and not _DIGITS.search(word) for word in words):
        return "a name whose words begin with capitals; a sentence is written as text"
    return None if _without_digits(value) else f"a name without a number word; {_BOUND}"


def _date(value: str) -> str | None:
    for part in value.split("/", 1):
        found = _MONTH.fullmatch(part) or _DAY.fullmatch(part)
        try:
            if not found or not FIRST_YEAR <= int(found[1]) <= LAST_YEAR:
                raise ValueError(part)
            date.fromisoformat(part if len(part) == 10 else f"{part}-01")
        except ValueError:
            years = f"of the years {FIRST_YEAR} to {LAST_YEAR}"
            return f"a day as 2026-10-01 or a month as 2026-10, {years}, or two of them joined by /"
    return None


def _code_segment(segment: str) -> bool:
    """Whether a segment of a path holds a letter in every part that holds a digit."""
    if _HASH.fullmatch(segment) or _FILE.fullmatch(segment):
        return not re.search(r"\d[.,]\d", segment)
    parts = [part for part in re.split(r"[._~\-]+", segment) if _DIGITS.search(part)]
    return all(_HASH.fullmatch(part) or _CODE_PART.fullmatch(part) for part in parts)


def _code(value: str) -> str | None:
    if any(char.isspace() for char in value):
        return "a path or identifier without spaces"
    if not _plain(value) or not re.fullmatch(r"[\w./@:#~\-]+", value) or not _has_letter(value):
        return f"a path or identifier of letters, digits and . _ - / @ : # ~; {_BOUND}"
    if any(shows_number(char) and not char.isascii() for char in value) or re.search(r"(?<![\w])[-+]\d", value):
        return f"a path or identifier; {_BOUND}"
    segments = [segment for segment in re.split(r"[/:@#]", value) if segment]
    left = value
    for item in reversed(bare_numbers(value)):
        left = left[: item.start] + left[item.stop :]
    if not all(_code_segment(segment) for segment in segments) or not (_has_letter(left) or _HASH.fullmatch(value)):
        return f"a path, a file name, a hash, or an identifier with a letter before each of its digits; {_BOUND}"
    return None


def seen_formula(value: str) -> str:
    """A formula in plain signs: digits of any script as ASCII, raised ones behind ^, lowered ones behind _."""
    parts = []
    for char in value:
        form = unicodedata.decomposition(char)
        mark = "^" if form.startswith("<super>") else "_" if form.startswith("<sub>") else ""
        plain = str(unicodedata.decimal(char)) if char.isdecimal() else unicodedata.normalize("NFKC", char)
        parts.append((mark if mark and plain.isdecimal() else "") + plain)
    return "".join(parts).translate(_SIGNS)


def _bounds(text: str, start: int, stop: int) -> bool:
    """Whether a number is a whole argument of clip, min or max."""
    if not re.search(r"[(,]\s*-?\s*\Z", text[:start]) or not re.match(r"\s*[,)]", text[stop:]):
        return False
    depth = 0
    for place in range(start - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[place], 0)
        if depth < 0:
            return bool(_BOUNDING.search(text[:place]))
    return False


def _in_form(text: str, start: int, stop: int) -> bool:
    """Whether a 0 or 1 is an exponent, a subscript, a bound, the 1 of ``1 - x``, or what a condition compares with."""
    before, after = text[:start], text[stop:]
    if re.search(r"[\^_]\{?-?\Z", before) or (before[-1:].isalpha() and not re.match(r"\s*[.,]?\d", after)):
        return True
    ends = re.match(r"\s*(?:[,;)\]}]\s*(?!\d)|\Z)|\s+(?=[^\W\d])", after) is not None
    if _COMPARED.search(before) and not _NO_EQUALS.search(before) and ends:
        return True
    if text[start:stop] == "1" and re.match(r"\s*-\s*[^\W\d]|\s*-\s*[(|]", after):
        return re.search(r"(?:\A|[(\[{,|*·×=])\s*\Z", before) is not None
    return _bounds(text, start, stop)


def _formula(value: str) -> str | None:
    text = seen_formula(value)
    if not _has_letter(text) or mixed_words(re.sub(r"[ΔδΣμσπλθα-ω]", "", value)):
        return f"a formula that holds a variable; {_BOUND}"
    if any(sign in text for sign in PERCENT_SIGNS) or any(shows_number(char) and not char.isascii() for char in text):
        return f"a formula without per cent and other numerals; {_BOUND}"
    found = list(_NUMBER.finditer(text))
    if any(match[0] not in ("0", "1") or not _in_form(text, *match.span()) for match in found):
        return (
            "a formula of symbols that gives no value: 0 and 1 only as exponents, subscripts, bounds of clip, min or "
            f"max, in 1 - x, or behind = as a condition; {_BOUND}"
        )
    return None if _without_digits(text) else f"a formula without a number word; {_BOUND}"


DECLARED = {NAME: _name, DATE: _date, CODE: _code, FORMULA: _formula}


def check_declared(kind: str, value: str) -> str | None:
    """What a declared piece should have been; None where it is right."""
    return DECLARED[kind](value)
