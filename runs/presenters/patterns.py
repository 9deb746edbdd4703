"""Messages that were made in English, read by patterns: how a pattern finds the values, and the translation."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from django.utils.translation import get_language, gettext

HOLE = re.compile(r"%\((\w+)\)s")


def compiled(message: str) -> re.Pattern[str]:
    """A pattern that reads the values out of a message; what ``repr`` quotes may stand in either kind of marks."""
    parts, at = [], 0
    for number, hole in enumerate(HOLE.finditer(message)):
        start, stop = hole.span()
        quoted = message[start - 1 : start] == "'" == message[stop : stop + 1]
        start, stop = (start - 1, stop + 1) if quoted else (start, stop)
        name = hole.group(1)
        inside = rf"""(?P<q{number}>['"])(?P<{name}>.*?)(?P=q{number})""" if quoted else f"(?P<{name}>.+?)"
        parts += [re.escape(message[at:start]), inside]
        at = stop
    return re.compile("".join(parts) + re.escape(message[at:]), re.DOTALL)


@cache
def _all_compiled(messages: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((message, compiled(message)) for message in messages)


def is_translated() -> bool:
    """Whether the reader's language is another than that of the messages."""
    return (get_language() or "").startswith("zh")


def read(messages: tuple[str, ...], text: str, value: Callable[[str, str], str]) -> str:
    """The translation of the first of ``messages`` that reads ``text``; empty where none does.

    ``value``: what stands in a hole, from its name and what was read there.
    """
    for source, pattern in _all_compiled(messages):
        found = pattern.fullmatch(text)
        if found:
            values = found.groupdict().items()
            return gettext(source) % {name: value(name, text) for name, text in values if f"%({name})s" in source}
    return ""
