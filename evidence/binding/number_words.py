"""Patterns of number words: English cardinals, ordinals and multiples, also joined; Roman numerals; Chinese numerals.

``IDIOMS_ZH`` and ``IDIOMS_EN`` list the words that hold a numeral and count nothing, each with the reason.
"""

from __future__ import annotations

import re

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
    "一旁": "aside", "第三方": "an outside party", "四周": "around",
    "五花八门": "of every kind", "千篇一律": "monotonous", "百科": "encyclopaedic", "万能": "all-purpose",
    "万分": "extremely", "零散": "scattered", "零星": "sporadic", "零件": "a machine part", "半径": "radius",
    "半导体": "semiconductor", "一会": "a while", "一带": "thereabouts", "大半": "mostly", "多半": "probably",
    "一来": "for a start", "一番": "a round of", "万物": "all things", "亿万": "countless", "百般": "in every way",
    "二进制": "binary notation", "十进制": "decimal notation",
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
_LARGE = (
    "hundred|thousand|lakh|crore|milliard|dozen|"
    "(?:m|b|tr|quadr|quint|sext|sept|oct|non|dec|undec|duodec|cent|z|gaz|baz)illion"
)
_ANY = rf"(?:{_ONES}|{_TEENS}|{_TENS}|{_LARGE})"
_ORDINAL = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|"
    "fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth|fortieth|fiftieth|sixtieth|"
    "seventieth|eightieth|ninetieth|hundredth|thousandth|[a-z]{1,8}illionth|dozenth|umpteenth|nth"
)
_CARDINAL = (
    rf"{_ANY}{{1,4}}s?|zeroes|ones|sixes|twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties|umpteen|"
    r"twain|(?:three|four)score|gross of|scores? of(?=\s+[a-z])(?<=a score of)"
)
_PARTS = (
    "half|halves|halved|halving|halfway|thirds|quarters?|fourths|fifths|sixths|sevenths|eighths|ninths|tenths|"
    "hundredths|thousandths|[a-z]{1,8}illionths|once|twice|thrice|doubl(?:e|ed|es|ing)|tripl(?:e|ed|es|ing|ets?)|"
    "trebl(?:e|ed|es|ing)|(?:quadr|quint|sext|sept|oct|non|dec|cent)upl(?:e|ed|es|ing|ets?)|"
    rf"{_ANY}{{1,4}}(?:[- ]?(?:and-)?{_ANY}{{1,4}})?[- ]?fold|{_ANY}somes?|couple of|firstly|secondly|thirdly|fourthly|"
    "lastly but one"
)
_PERCENT_EN = r"per\s?cents?|per\s?centage\s+points?|per\s?mille"
_ENGLISH = rf"(?<![a-z])(?:{_PARTS}|{_ANY}{{0,4}}(?:{_ORDINAL})|{_CARDINAL}|{_PERCENT_EN})(?![a-z])"
WORDS_EN = re.compile(_ENGLISH.replace("w", "(?:w|vv)"), re.IGNORECASE)  # two letters that look like one
ORDINAL_EN = re.compile(rf".*(?:{_ORDINAL})\Z|(?:first|second|third|fourth)ly\Z", re.IGNORECASE)
PART_EN = re.compile(rf"(?:{_PARTS})\Z", re.IGNORECASE)
IDIOM_EN = re.compile(rf"(?<![a-z])(?:{'|'.join(IDIOMS_EN)})(?![a-z])", re.IGNORECASE)

# One capital letter is a numeral where a numbered part is named.
_NUMBERED = ["part", "step", "phase", "table", "section", "chapter", "appendix", "type", "stage"]
_BEHIND = "|".join(rf"(?<={word} )" for name in _NUMBERED for word in (name, name.title()))
_VALID = r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
ROMAN = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?=[IVXLCDM]{{2}}){_VALID}|(?=[ivxlcdm]{{2}}){_VALID.lower()}|"
    rf"(?=[IVXLCDM][ivxlcdm]{{2}})(?i:{_VALID})|(?:{_BEHIND})[IVX])(?![A-Za-z0-9])"
)
# Words, abbreviations, units and suffixes that are valid numerals as well and count nothing.
NOT_ROMAN = frozenset({
    "mix", "div", "ci", "cli", "cd", "cv", "cc", "cm", "dc", "di", "dl", "li", "mc", "md", "mi", "ml", "mm", "mv", "vi",
})  # fmt: skip

NUMERALS_ZH = "零〇一二三四五六七八九十百千万亿兆两俩仨廿卅卌半倍壹贰叁肆伍陆柒捌玖拾佰仟萬億兩貳參陸弌弍弎弐壱皕卄亖"
WORDS_ZH = re.compile(
    rf"第?[{NUMERALS_ZH}]+(?:成(?=$|[^功立为本员果长就分品熟绩因交型]))?|"
    rf"首(?=[次个轮批位例步条名])|百分(?:之|点|比点|数点)|千分之|万分之|翻番|对折|对半"
)
# An adverb before the word that it strengthens, no count of points or minutes; "everywhere" before a verb, no places.
_VERY = (
    r"(?<!得了)(?<!打了)(?<![打考评给拿扣加减共计满])(?<![^觉显变]得)(?<!^得)"
    r"十分(?=[\u4e00-\u9fff])(?![之钟位数制满以等个的秒])"
)
_EVERYWHERE = r"四处(?=[奔寻找走游流散逃碰打蔓传求宣飞漂闲搜探跑张可])"
IDIOM_ZH = re.compile("|".join([*sorted(IDIOMS_ZH, key=len, reverse=True), _VERY, _EVERYWHERE]))
