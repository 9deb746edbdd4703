"""Finds every number in a text: digits of any script, number words in English and Chinese, numerals, per cent.

A page's text holds no number of its own, so what this module finds has to be bound or declared. It prefers to
find too much: an author can write ``{{name:...}}``; a number that is overlooked stands there unproved. Ordinals and
"one" count. Vague words (several, few, 几, 多) are no numbers. Words and idioms: ``evidence.binding.number_words``;
letters in disguise are read as what they look like (``evidence.binding.glyphs``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from evidence.binding.glyphs import readings, shows_number
from evidence.binding.number_words import (
    IDIOM_EN,
    IDIOM_ZH,
    NOT_ROMAN,
    NUMERALS_ZH,
    ORDINAL_EN,
    PART_EN,
    WORDS_EN,
    WORDS_ZH,
)  # fmt: skip
from evidence.binding.number_words import ROMAN as ROMAN_NUMERAL

DIGIT, WORD, ORDINAL, ROMAN, PERCENT, PART = (
    "digits", "a number word", "an ordinal", "a Roman numeral", "per cent", "a fraction or multiple",
)  # fmt: skip


PERCENT_SIGNS = "%‰‱％﹪٪"


@dataclass(frozen=True)
class BareNumber:
    """One number as it stands: code points ``start`` to ``stop``; ``why``: what makes it one, in words."""

    start: int
    stop: int
    text: str
    why: str


def _digits(text: str) -> Iterator[tuple[int, int, str]]:
    """Characters that show a number and are no ideographs, and signs of per cent."""
    for place, char in enumerate(text):
        if char in PERCENT_SIGNS:
            yield place, place + 1, PERCENT
        elif shows_number(char):
            roman = "ROMAN" in unicodedata.name(char, "")
            yield place, place + 1, ROMAN if roman else DIGIT


def _english(text: str) -> Iterator[tuple[int, int, str]]:
    idioms = [match.span() for match in IDIOM_EN.finditer(text)]
    for match in WORDS_EN.finditer(text):
        start, stop = match.span()
        if any(first <= start and stop <= last for first, last in idioms):
            continue
        word = match.group()
        why = WORD
        if re.match(r"per", word, re.IGNORECASE):
            why = PERCENT
        elif ORDINAL_EN.match(word):
            why = ORDINAL
        elif PART_EN.match(word):
            why = PART
        yield start, stop, why
    for match in ROMAN_NUMERAL.finditer(text):
        if match[0].lower() not in NOT_ROMAN:
            yield *match.span(), ROMAN


def _chinese(text: str) -> Iterator[tuple[int, int, str]]:
    """Numerals that no idiom covers; behind 第 every numeral counts."""
    covered: set[int] = set()
    for match in IDIOM_ZH.finditer(text):
        if match.start() == 0 or text[match.start() - 1] != "第":
            covered.update(range(*match.span()))
    for match in WORDS_ZH.finditer(text):
        start, stop = match.span()
        if all(place in covered for place in range(start, stop) if text[place] in NUMERALS_ZH) and (
            not text.startswith(("百分", "千分", "万分之", "翻番", "首", "对"), start)
        ):
            continue
        if text.startswith("第", start):
            if stop - start == 1:
                continue
            why = ORDINAL
        elif text.startswith("首", start):
            why = ORDINAL
        elif text.startswith(("百分", "千分之", "万分之"), start):
            why = PERCENT
        else:
            why = PART if set(text[start:stop]) & set("半倍成番折") else WORD
        yield start, stop, why


_JOINT = re.compile(r"[\s.,:/·-]{0,2}|\s*(?:and|point|out of|of|之|分之|点)\s*", re.IGNORECASE)


def bare_numbers(text: str, language: str = "") -> list[BareNumber]:
    """Every number in ``text``, in order, neighbours joined ("twenty-three", "37.7 %", "three of five").

    Both languages are searched whatever ``language`` says, since a Chinese sentence may hold an English number.
    ``text`` is plain text: tokens are cut out before (``evidence.binding.tokens``).
    """
    found = list(_digits(text))
    for folded, places in readings(text):
        for start, stop, why in (*_english(folded), *_chinese(folded)):
            found.append((places[start], places[stop - 1] + 1, why))
    joined: list[list[int | str]] = []
    for start, stop, why in sorted(found, key=lambda item: (item[0], -item[1])):
        if joined:
            last = joined[-1]
            gap = text[int(last[1]) : start]
            if start <= int(last[1]) or (not gap.isspace() and _JOINT.fullmatch(gap)) or gap in (" ", "\u00a0"):
                last[1] = max(int(last[1]), stop)
                continue
        joined.append([start, stop, why])
    return [BareNumber(int(start), int(stop), text[int(start) : int(stop)], str(why)) for start, stop, why in joined]
