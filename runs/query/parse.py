"""Reading a query: words, ``key:value`` terms, quotes, ``-`` for not. No evaluation, no regular grammar to guess at.

    query  = { term }
    term   = [ "-" ] ( key ":" value { "," value } | word )
    value  = word | quoted
    quoted = '"' any text, '\\"' for a quote '"'

A term in quotes as a whole is free text, also where it holds a colon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

MAX_LENGTH = 500
MAX_TERMS = 30
_KEY = frozenset("abcdefghijklmnopqrstuvwxyz_")


class QueryError(ValueError):
    """A term that cannot be understood: as typed, what was expected, and a corrected term where one is near."""

    def __init__(self, term: str, message: str, suggestion: str = "", possible: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.term, self.message, self.suggestion, self.possible = term, message, suggestion, possible


@dataclass(frozen=True)
class Term:
    """One condition. ``key`` empty: free text. ``values``: alternatives; ``source``: the text as typed."""

    key: str
    values: tuple[str, ...]
    negated: bool
    source: str


@dataclass(frozen=True)
class Query:
    """A parsed text. ``errors`` name what could not be read; the rest stands in ``terms``."""

    text: str
    terms: tuple[Term, ...] = ()
    errors: tuple[QueryError, ...] = field(default=())


def _chunks(text: str) -> Iterator[str]:
    """Pieces between blanks; a blank inside quotes does not separate. Raises ``QueryError`` for an open quote."""
    piece, quoted, escaped = "", False, False
    for sign in text:
        if escaped:
            piece, escaped = piece + sign, False
        elif sign == "\\" and quoted:
            piece, escaped = piece + sign, True
        elif sign.isspace() and not quoted:
            if piece:
                yield piece
            piece = ""
        else:
            quoted ^= sign == '"'
            piece += sign
    if quoted or escaped:
        raise QueryError(piece, _("the quotation mark is not closed"), piece + '"')
    if piece:
        yield piece


def _alternatives(text: str) -> list[str]:
    """Values between commas outside quotes, quotes removed."""
    found, piece, quoted, escaped = [], "", False, False
    for sign in text:
        if escaped:
            piece, escaped = piece + sign, False
        elif sign == "\\" and quoted:
            escaped = True
        elif sign == '"':
            quoted = not quoted
        elif sign == "," and not quoted:
            found.append(piece)
            piece = ""
        else:
            piece += sign
    return [*found, piece]


def _term(piece: str) -> Term:
    negated = piece.startswith("-") and len(piece) > 1
    body = piece[1:] if negated else piece
    key, colon, rest = body.partition(":")
    if colon and key and set(key.lower()) <= _KEY:
        values = tuple(_alternatives(rest))
        if not all(values):
            raise QueryError(
                piece, _("%(key)s: got nothing, expected a value after the colon") % {"key": key}, possible=()
            )
        return Term(key.lower(), values, negated, piece)
    word = "".join(_alternatives(body)) if '"' in body else body
    if not word:
        raise QueryError(piece, _("got an empty text between quotation marks, expected a word"))
    return Term("", (word,), negated, piece)


def parse(text: str) -> Query:
    """Terms of a text. Never raises: what is wrong stands in ``errors``."""
    text = text.strip()
    if len(text) > MAX_LENGTH:
        message = _("got %(n)d characters, expected at most %(most)d") % {"n": len(text), "most": MAX_LENGTH}
        return Query(text[:MAX_LENGTH], errors=(QueryError(text[:40] + "…", message),))
    if any((ord(sign) < 32 and not sign.isspace()) or 0xD800 <= ord(sign) <= 0xDFFF for sign in text):
        clean = "".join(s for s in text if (ord(s) >= 32 or s.isspace()) and not 0xD800 <= ord(s) <= 0xDFFF)
        return Query(clean, errors=(QueryError(clean, _("got a control character, expected readable text")),))
    terms: list[Term] = []
    errors: list[QueryError] = []
    try:
        for piece in _chunks(text):
            try:
                terms.append(_term(piece))
            except QueryError as error:
                errors.append(error)
    except QueryError as error:
        errors.append(error)
    if len(terms) > MAX_TERMS:
        message = _("got %(n)d terms, expected at most %(most)d") % {"n": len(terms), "most": MAX_TERMS}
        errors.append(QueryError(terms[MAX_TERMS].source, message))
    return Query(text, tuple(terms[:MAX_TERMS]), tuple(errors))


def quote(value: str) -> str:
    """A value as it must be typed."""
    plain = value and not any(sign.isspace() or sign in '",' for sign in value)
    return value if plain else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def without(query: Query, *keys: str) -> str:
    """The query's text without the terms of some keys."""
    return " ".join(term.source for term in query.terms if term.key not in keys)


def with_term(query: Query, key: str, value: str, raw: bool = False) -> str:
    """The query's text with one term of ``key`` in place of all that it had."""
    kept = without(query, key)
    return f"{kept} {key}:{value if raw else quote(value)}".strip()
