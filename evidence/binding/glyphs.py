"""Disguised signs: letters that look like Latin ones, signs that show nothing, pictures that show a number.

``fold`` gives a text as it is seen, with the place of each character; ``mixed_words`` finds words whose letters come
from scripts that no word mixes. Tables: confusable letters by script; ranges of dice, dominoes, cards and clocks.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Shown as nothing, or as a blank that no rule of white space knows.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_UNSEEN = frozenset("\u034f\u17b4\u17b5\u180e")
# Letters of other scripts that look like Latin ones: a number word stays one when a letter is swapped.
_TABLES = (
    ("аеорсухіѕјһԁԛԝтнвмкьгԍӏүѵ", "aeopcyxisjhdqwthbmkbrglyv"),  # Cyrillic
    ("АЕОРСУХІЅЈТНВМКԌԚԜҮѴ", "AEOPCYXISJTHBMKGQWYV"),
    ("οενικυχτραηβγωσϲϳϝ", "oevikuxtpanbywocjf"),  # Greek
    ("ΟΕΝΙΚΥΧΤΡΑΗΒΖΜϹ", "OENIKYXTPAHBZMC"),
    ("օոսհցքւզյտցգձռԁո", "onuhgqiqjsgqdnln"),  # Armenian
    ("ՕՍՏԼԻ", "OUSLH"),
    ("ⲟⲥⲉⲓⲧⲣⲭⲕⲙⲛⲏⲁⲃⲩ", "oceitpxkmnhabu"),  # Coptic
    ("ⲞⲤⲈⲒⲦⲢⲬⲔⲘⲚⲎⲀⲂ", "OCEITPXKMNHAB"),
    ("ᎪᏴᏟᎠᎬᎻᎥᎫᏦᏞᎷᎾᏢᎡᏚᎢᏙᏔᏃᎵᏒᎳᎩᏀ", "ABCDEHiJKLMOPRSTVWZPRWYG"),  # Cherokee
    ("ꓐꓔꓑꓓꓖꓗꓙꓚꓜꓝꓠꓡꓢꓣꓤꓦꓪꓫꓬꓮꓰꓲꓳꓴꓟꓧ", "BTPDGKJCZFNLSRRVWXYAEIOUMH"),  # Lisu
    ("ɑɡıȷɩʋƖΙǀ", "agijivIII"),
)
_LOOKALIKES = {ord(a): b for first, second in _TABLES for a, b in zip(first, second, strict=False)}
# Squared, negative and regional letters by their first code point, each an alphabet in order.
_ALPHABETS = (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)
_SMALL_CAPITAL = re.compile(r"LATIN LETTER SMALL CAPITAL ([A-Z])\Z")
_STROKED = re.compile(r"LATIN (SMALL|CAPITAL) LETTER ([A-Z]) WITH\b")
# Pictures of numbers: mahjong, dominoes, cards; medals; a hundred, ten; clocks; dice; the sign before braille digits.
_PICTURED = (
    (0x1F000, 0x1F0FF), (0x1F947, 0x1F949), (0x1F4AF, 0x1F4AF), (0x1F51F, 0x1F51F), (0x1F550, 0x1F567),
    (0x2680, 0x2685), (0x283C, 0x283C), (0x20E3, 0x20E3),
)  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+")
_MICRO = re.compile("[\u00b5\u03bc][smgl]", re.IGNORECASE)  # a unit
# Scripts that stand beside Latin letters without a space, and no scripts at all.
_BESIDE = frozenset({
    "LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "MODIFIER", "FEMININE", "MASCULINE",
    "MICRO", "KATAKANA-HIRAGANA", "DOUBLE-STRUCK", "SCRIPT", "BLACK-LETTER", "VERTICAL", "HANGZHOU",
})  # fmt: skip


def unseen(char: str) -> bool:
    """Whether a character shows nothing of its own: format characters, marks on the letter before, fillers."""
    return not char.isascii() and (unicodedata.category(char) in ("Cf", "Mn", "Me") or char in _UNSEEN)


@lru_cache(maxsize=4096)
def _letters(char: str) -> str:
    """What a character is read as: itself where it disguises nothing."""
    code = ord(char)
    for first in _ALPHABETS:
        if first <= code < first + 26:
            return chr(ord("a") + code - first)
    plain = unicodedata.normalize("NFKD", char).translate(_LOOKALIKES)
    plain = "".join(item for item in plain if not unseen(item)) or char
    if len(plain) == 1 and not plain.isascii():
        name = unicodedata.name(plain, "")
        if found := _SMALL_CAPITAL.match(name):
            return found[1].lower()
        if found := _STROKED.match(name):
            return found[2].lower() if found[1] == "SMALL" else found[2]
    return plain


def fold(text: str, blank: str = "") -> tuple[str, list[int]]:
    """A text as it is seen, and for each of its characters the place in ``text``. ``blank``: what a filler is."""
    parts: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        if char.isascii():
            folded = char
        elif char in _BLANK:
            folded = blank
        else:
            folded = "" if unseen(char) else _letters(char)
        parts.append(folded)
        places.extend([place] * len(folded))
    return "".join(parts), places


def readings(text: str) -> list[tuple[str, list[int]]]:
    """``fold`` with fillers read as nothing and, where a text has any, as a space."""
    found = [fold(text)]
    return [*found, fold(text, " ")] if _BLANK & set(text) else found


@lru_cache(maxsize=4096)
def shows_number(char: str) -> bool:
    """Whether a character is a digit of any script, a numeral, or a sign or picture that holds one."""
    if unicodedata.category(char) in ("Nd", "Nl", "No"):
        return True
    code = ord(char)
    if any(first <= code <= last for first, last in _PICTURED):
        return True
    return not char.isascii() and any(item.isdecimal() for item in unicodedata.normalize("NFKC", char))


def _script(char: str) -> str:
    script = unicodedata.name(unicodedata.normalize("NFKC", char)[0], "LATIN").split(" ", 1)[0]
    return "LATIN" if script in _BESIDE else script


def mixed_words(text: str) -> list[tuple[int, int]]:
    """(start, stop) of words in which Latin letters stand among letters of another alphabet, or two alphabets meet."""
    if text.isascii():
        return []
    plain = "".join(" " if char in _BLANK else char for char in text)
    found = []
    for match in _WORD.finditer("".join("x" if unseen(char) else char for char in plain)):
        own = [char for char in plain[match.start() : match.end()] if char.isalpha() and not unseen(char)]
        latin = any(_script(char) == "LATIN" and not _is_ideograph(char) for char in own)
        others = {_script(char) for char in own} - {"LATIN"}
        if (len(others) > 1 or (others and latin)) and not _MICRO.fullmatch("".join(own)):
            found.append(match.span())
    return found


def _is_ideograph(char: str) -> bool:
    return unicodedata.name(char, "").startswith(("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"))
