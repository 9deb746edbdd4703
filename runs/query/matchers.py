"""How one value of a key becomes a condition on rows: choices, numbers, times, prefixes, names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from runs.query import values
from runs.query.resolve import Asker, Unknown

Condition = Callable[[Asker, str], Q]
Word = Q | Callable[[Asker], Q]


@dataclass(frozen=True)
class Matcher:
    """``read``: value to condition; ``words``: all that the value may be, None where it is open.

    ``compares``: a value may begin with ``<``, ``<=``, ``>`` or ``>=``.
    """

    read: Condition
    words: tuple[str, ...] | None = None
    compares: bool = False


def choice(words: Mapping[str, Word]) -> Matcher:
    """One out of fixed words."""

    def read(asker: Asker, value: str) -> Q:
        found = words.get(value.lower())
        if found is None:
            raise Unknown(_("one of %(words)s") % {"words": ", ".join(words)}, value, words)
        return found if isinstance(found, Q) else found(asker)

    return Matcher(read, tuple(words))


def column(field: str, words: tuple[str, ...], **also: str) -> Matcher:
    """One out of the values of a column; ``also``: other words for them."""
    return choice({word: Q(**{field: word}) for word in words} | {w: Q(**{field: v}) for w, v in also.items()})


def text(field: str) -> Matcher:
    """A column's text as a whole, large or small letters alike; ``*`` at the end for a beginning."""

    def read(asker: Asker, value: str) -> Q:
        if value.endswith("*") and len(value) > 1:
            return Q(**{f"{field}__istartswith": value[:-1]})
        return Q(**{f"{field}__iexact": value})

    return Matcher(read)


def name(field: str) -> Matcher:
    """A name as stored, found by its index; ``*`` at the end for a beginning."""

    def read(asker: Asker, value: str) -> Q:
        if value.endswith("*") and len(value) > 1:
            return Q(**{f"{field}__startswith": value[:-1]})
        return Q(**{field: value})

    return Matcher(read)


def exact(field: str) -> Matcher:
    """A column's text as stored."""
    return Matcher(lambda asker, value: Q(**{field: value}))


def number(field: str) -> Matcher:
    """A number, a comparison or a range."""
    return Matcher(lambda asker, value: values.numeric(field, value), compares=True)


def whole(field: str) -> Matcher:
    """A whole number, a comparison or a range."""
    return Matcher(lambda asker, value: values.numeric(field, value, values.whole), compares=True)


def time(field: str) -> Matcher:
    """A time, a comparison or a range."""
    return Matcher(lambda asker, value: values.temporal(field, value, asker.now), compares=True)


def sha(*fields: str) -> Matcher:
    """The beginning of a hash in one of some columns."""

    def read(asker: Asker, value: str) -> Q:
        found = Q()
        for field in fields:
            found |= values.hash_prefix(field, value)
        return found

    return Matcher(read)


def uid(field: str = "uid") -> Matcher:
    """The beginning of a uid."""
    return Matcher(lambda asker, value: values.uid_prefix(field, value))


def named(field: str, resolve: Callable[[Asker, str], Any]) -> Matcher:
    """A name that ``resolve`` turns into keys of rows."""
    return Matcher(lambda asker, value: Q(**{f"{field}__in": resolve(asker, value)}))
