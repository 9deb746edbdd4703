"""Values of terms: numbers, times and hash prefixes, alone, compared (``>0.5``) or as a range (``0.2..0.6``)."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

_COMPARED = re.compile(r"^(>=|<=|>|<|=)?(.*)$", re.DOTALL)
_LOOKUPS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_TIME = re.compile(
    r"^(\d{4})(?:-(\d{2})(?:-(\d{2})(?:T(\d{2})(?::(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?)?)?)?(Z|[+-]\d{2}:\d{2})?$"
)
_AGO = re.compile(r"^(\d{1,5})(min|h|d)$")
_HEX = re.compile(r"^[0-9a-f]+$")


class Unreadable(ValueError):
    """A value that is not of the kind; the text says what was expected."""


def number(text: str) -> float:
    """A finite number; a true minus sign is read too."""
    try:
        value = float(text.replace("−", "-").replace("_", "x"))
    except ValueError as error:
        raise Unreadable(_("a number, as in >0.5, 3 or 0.2..0.6")) from error
    if not math.isfinite(value):
        raise Unreadable(_("a finite number, as in >0.5, 3 or 0.2..0.6"))
    return value


def whole(text: str) -> float:
    """A whole number within 2**53."""
    value = number(text)
    if value != int(value) or abs(value) > 2**53:
        raise Unreadable(_("a whole number, as in >3, 3 or 3..7"))
    return int(value)


def moment(text: str, now: datetime) -> tuple[datetime, datetime]:
    """[begin, end) of what a text names: a year, month, day, hour, minute or second in UTC, or "2h" ago."""
    expected = _("a date or time in UTC, as in >2026-11-01, 2026-11-01T08:30 or <2h (2 hours ago)")
    ago = _AGO.match(text)
    if ago:
        unit = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}[ago[2]]
        begin = now - int(ago[1]) * unit
        return begin, begin
    found = _TIME.match(text)
    if not found:
        raise Unreadable(expected)
    given = [int(part) for part in found.groups()[:6] if part is not None]
    try:
        zone = UTC if found[8] in (None, "Z") else datetime.strptime(found[8], "%z").tzinfo
        micro = int((found[7] or "0").ljust(6, "0"))
        begin = datetime(*[*given, 1, 1][: max(3, len(given))], microsecond=micro, tzinfo=zone)  # type: ignore[misc,arg-type]
        if len(given) == 1:
            end = begin.replace(year=begin.year + 1)
        elif len(given) == 2:
            end = (begin + timedelta(days=32)).replace(day=1)
        else:
            step = {3: timedelta(days=1), 4: timedelta(hours=1), 5: timedelta(minutes=1), 6: timedelta(seconds=1)}
            end = begin + (timedelta(microseconds=1) if found[7] else step[len(given)])
    except (ValueError, OverflowError) as error:
        raise Unreadable(expected) from error
    return begin, end


def numeric(field: str, text: str, read: Callable[[str], float] = number) -> Q:
    """Condition on a number column. Rows without a value never match."""
    if ".." in text:
        low, _dots, high = text.partition("..")
        found = Q(**{f"{field}__gte": read(low)}) if low else Q()
        if high:
            found &= Q(**{f"{field}__lte": read(high)})
        if not low and not high:
            raise Unreadable(_("a number on at least one side of .."))
        return found
    sign, rest = _COMPARED.match(text).groups()
    value = read(rest)
    return Q(**{f"{field}__{_LOOKUPS[sign]}" if sign in _LOOKUPS else field: value})


def temporal(field: str, text: str, now: datetime) -> Q:
    """Condition on a time column: ``>2026-11`` is after November, ``2026-11`` within it, ``>2h`` the last two hours."""
    if ".." in text:
        low, _dots, high = text.partition("..")
        if not low and not high:
            raise Unreadable(_("a date on at least one side of .."))
        found = Q(**{f"{field}__gte": moment(low, now)[0]}) if low else Q()
        return found & Q(**{f"{field}__lt": moment(high, now)[1]}) if high else found
    sign, rest = _COMPARED.match(text).groups()
    begin, end = moment(rest, now)
    if sign == ">":
        return Q(**{f"{field}__gte": end})
    if sign == ">=":
        return Q(**{f"{field}__gte": begin})
    if sign == "<":
        return Q(**{f"{field}__lt": begin})
    if sign == "<=":
        return Q(**{f"{field}__lt": end})
    return Q(**{f"{field}__gte": begin, f"{field}__lt": end})


def hash_prefix(field: str, text: str) -> Q:
    """Hashes that begin with a prefix, as a range of the index: LIKE would read the whole table on SQLite."""
    prefix = text.lower()
    if not _HEX.match(prefix) or not 2 <= len(prefix) <= 64:
        raise Unreadable(_("2 to 64 hexadecimal digits, the beginning of a hash"))
    if len(prefix) == 64:
        return Q(**{field: prefix})
    return Q(**{f"{field}__gte": prefix, f"{field}__lt": prefix + "g"})


def uid_prefix(field: str, text: str) -> Q:
    """Uids that begin with a prefix, hyphens or not."""
    digits = text.lower().replace("-", "")
    if not _HEX.match(digits) or not 2 <= len(digits) <= 32:
        raise Unreadable(_("2 to 32 hexadecimal digits, the beginning of a uid"))
    low, high = (uuid.UUID(digits.ljust(32, fill)) for fill in "0f")
    return Q(**{f"{field}__gte": low, f"{field}__lte": high})


def text_range(prefix: Any) -> bool:
    """Whether a word can be the beginning of a hash or uid: at least four hexadecimal digits."""
    digits = str(prefix).lower().replace("-", "")
    return 4 <= len(digits) <= 64 and bool(_HEX.match(digits))
