"""Finds every number in a text: digits of any script, number words in English and Chinese, numerals, per cent.

A page's text holds no number of its own, so what this module finds has to be bound or declared. It prefers to
find too much: an author can write ``{{name:...}}``; a number that is overlooked stands there unproved. Ordinals and
"one" count. Vague words (several, few, 几, 多) are no numbers. ``IDIOMS_ZH`` and ``IDIOMS_EN`` list the words
that hold a numeral and count nothing, each with the reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

DIGIT, WORD, ORDINAL, ROMAN, PERCENT, PART = (
    "digits", "a number word", "an ordinal", "a Roman numeral", "per cent", "a fraction or multiple",
)  # fmt: skip


@dataclass(frozen=True)
class BareNumber:
    """One number as it stands: code points ``start`` to ``stop``; ``why``: what makes it one, in words."""

    start: int
    stop: int
    text: str
    why: str


# What each idiom says; none of them counts anything.
IDIOMS_ZH: dict[str, str] = {
    "一致": "consistent", "统一": "uniform", "进一步": "further", "一般": "in general", "一样": "alike",
    "一定": "certain", "一些": "some", "一起": "together", "一直": "always", "一旦": "as soon as", "一切": "all",
    "一律": "without exception", "一并": "along with", "一同": "together", "一向": "always", "一概": "altogether",
    "一贯": "consistent", "一经": "as soon as", "一再": "again and again", "一味": "blindly", "一系列": "a series",
    "一体": "as a whole", "一度": "for a time", "一如": "just as", "一举": "at a stroke", "一目了然": "obvious",
    "同一": "the same", "唯一": "only", "单一": "uniform", "万一": "in case", "不一": "differing", "专一": "devoted",
    "逐一": "each in turn", "任一": "any", "某一": "some", "每一": "each", "这一": "this", "那一": "that",
    "另一": "another", "哪一": "which", "一方面": "on the other side", "一边": "beside", "一面": "beside",
    "一旁": "aside", "第三方": "an outside party", "十分": "very", "四处": "everywhere", "四周": "around",
    "五花八门": "of every kind", "千篇一律": "monotonous", "百科": "encyclopaedic", "万能": "all-purpose",
    "万分": "extremely", "零散": "scattered", "零星": "sporadic", "零件": "a machine part", "半径": "radius",
    "半导体": "semiconductor", "一会": "a while", "一带": "thereabouts", "大半": "mostly", "多半": "probably",
    "一来": "for a start", "一番": "a round of", "万物": "all things", "亿万": "countless", "百般": "in every way",
}  # fmt: skip
IDIOMS_EN: dict[str, str] = {
    "no one": "nobody", "one another": "each other", "at once": "immediately", "at first": "in the beginning",
    "first of all": "above all", "third party": "an outsider", "third parties": "outsiders",
    "third-party": "of an outsider", "per second": "a unit of time", "in the first place": "to begin with",
    "second thoughts": "doubts", "once more": "again",
}  # fmt: skip

_ONES = "zero|nought|naught|nil|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_TEENS = "thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|fou?rty|fifty|sixty|seventy|eighty|ninety"
_LARGE = "hundred|thousand|million|billion|trillion|dozen|gross of"
_CARDINAL = (
    rf"(?:{_ONES}|{_TEENS}|{_TENS}|{_LARGE})s?"
    r"|ones|sixes|twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties"
)
_ORDINAL = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|"
    "fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth|fortieth|fiftieth|sixtieth|"
    "seventieth|eightieth|ninetieth|hundredth|thousandth|millionth|billionth|nth"
)
_PARTS = (
    "half|halves|halved|halving|halfway|thirds|quarters?|fourths|fifths|sixths|sevenths|eighths|ninths|tenths|"
    "hundredths|thousandths|once|twice|thrice|doubl(?:e|ed|es|ing)|tripl(?:e|ed|es|ing)|quadrupl(?:e|ed|es|ing)|"
    r"quintupl(?:e|ed|es|ing)|(?:two|three|four|five|six|seven|eight|nine|ten|hundred|thousand)-?fold|couple of|"
    "firstly|secondly|thirdly|fourthly|lastly but one"
)
_PERCENT_EN = r"per\s?cents?|per\s?centage\s+points?|per\s?mille"
_WORDS_EN = re.compile(rf"(?<![a-z])(?:{_PARTS}|{_ORDINAL}|{_CARDINAL}|{_PERCENT_EN})(?![a-z])", re.IGNORECASE)
_ORDINAL_EN = re.compile(rf"(?:{_ORDINAL})\Z|(?:first|second|third|fourth)ly\Z", re.IGNORECASE)
_PART_EN = re.compile(rf"(?:{_PARTS})\Z", re.IGNORECASE)
_IDIOM_EN = re.compile(rf"(?<![a-z])(?:{'|'.join(IDIOMS_EN)})(?![a-z])", re.IGNORECASE)
# Capital letters that are a numeral: more than a letter, or one letter where a numbered part is named.
_ROMAN = re.compile(
    r"(?<![A-Za-z0-9])(?:(?=[IVXL]{2})(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})|"
    r"(?<=part )[IVX]|(?<=step )[IVX]|(?<=phase )[IVX]|(?<=table )[IVX]|(?<=section )[IVX]|(?<=chapter )[IVX]|"
    r"(?<=appendix )[IVX]|(?<=type )[IVX]|(?<=stage )[IVX]|(?<=Part )[IVX]|(?<=Step )[IVX]|(?<=Phase )[IVX]|"
    r"(?<=Table )[IVX]|(?<=Section )[IVX]|(?<=Chapter )[IVX]|(?<=Appendix )[IVX]|(?<=Type )[IVX]|(?<=Stage )[IVX])"
    r"(?![A-Za-z0-9])"
)

_NUMERALS_ZH = "零〇一二三四五六七八九十百千万亿兆两俩仨廿卅卌半倍壹贰叁肆伍陆柒捌玖拾佰仟萬億兩貳參陸弌弍弎"
_WORDS_ZH = re.compile(
    rf"第?[{_NUMERALS_ZH}]+(?:成(?=$|[^功立为本员果长就分品熟绩因交型]))?|"
    rf"首(?=[次个轮批位例步条名])|百分(?:之|点|比点|数点)|千分之|万分之|翻番"
)
_IDIOM_ZH = re.compile("|".join(sorted(IDIOMS_ZH, key=len, reverse=True)))
_PERCENT_SIGNS = "%‰‱％﹪٪"

# Letters of other scripts that look like Latin ones: a number word stays one when a letter is swapped.
_LOOKALIKES = str.maketrans("аеорсухіѕһԁтнвмкοενικυхτρα", "aeopcyxishdthbmkoevikyxtpa")


def _fold(text: str) -> tuple[str, list[int]]:
    """Text in which disguised letters are plain ones, and for each of its characters the place in ``text``."""
    parts: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        if char.isascii():
            folded = char
        elif unicodedata.category(char) in ("Cf", "Mn"):
            continue  # invisible, or a mark on the letter before
        else:
            folded = unicodedata.normalize("NFKD", char).translate(_LOOKALIKES)
            folded = "".join(item for item in folded if unicodedata.category(item) not in ("Cf", "Mn")) or char
        parts.append(folded)
        places.extend([place] * len(folded))
    return "".join(parts), places


def _digits(text: str) -> Iterator[tuple[int, int, str]]:
    """Characters that Unicode gives a value and that are no ideographs, and signs of per cent."""
    for place, char in enumerate(text):
        if char in _PERCENT_SIGNS:
            yield place, place + 1, PERCENT
        elif unicodedata.category(char) in ("Nd", "Nl", "No"):
            roman = "ROMAN" in unicodedata.name(char, "")
            yield place, place + 1, ROMAN if roman else DIGIT


def _english(text: str) -> Iterator[tuple[int, int, str]]:
    idioms = [match.span() for match in _IDIOM_EN.finditer(text)]
    for match in _WORDS_EN.finditer(text):
        start, stop = match.span()
        if any(first <= start and stop <= last for first, last in idioms):
            continue
        word = match.group()
        why = WORD
        if re.match(r"per", word, re.IGNORECASE):
            why = PERCENT
        elif _ORDINAL_EN.match(word):
            why = ORDINAL
        elif _PART_EN.match(word):
            why = PART
        yield start, stop, why
    for match in _ROMAN.finditer(text):
        yield *match.span(), ROMAN


def _chinese(text: str) -> Iterator[tuple[int, int, str]]:
    """Numerals that no idiom covers; behind 第 every numeral counts."""
    covered: set[int] = set()
    for match in _IDIOM_ZH.finditer(text):
        if match.start() == 0 or text[match.start() - 1] != "第":
            covered.update(range(*match.span()))
    for match in _WORDS_ZH.finditer(text):
        start, stop = match.span()
        if all(place in covered for place in range(start, stop) if text[place] in _NUMERALS_ZH) and (
            not text.startswith(("百分", "千分", "万分之", "翻番", "首"), start)
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
            why = PART if set(text[start:stop]) & set("半倍成番") else WORD
        yield start, stop, why


_JOINT = re.compile(r"[\s.,:/·-]{0,2}|\s*(?:and|point|out of|of|之|分之|点)\s*", re.IGNORECASE)


def bare_numbers(text: str, language: str = "") -> list[BareNumber]:
    """Every number in ``text``, in order, neighbours joined ("twenty-three", "37.7 %", "three of five").

    Both languages are searched whatever ``language`` says, since a Chinese sentence may hold an English number.
    ``text`` is plain text: tokens are cut out before (``evidence.binding.tokens``).
    """
    folded, places = _fold(text)
    found = [(place, stop, why) for place, stop, why in _digits(text)]
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
