"""Pages by position, not by number: a live list does not shift while one reads on.

A cursor holds the value and key of the last row that was shown and ``upto``, the highest key when the list was
opened. Rows made later are counted ("n new since") and not mixed in. Rows without a value in the sorted column
come last in both directions, in an order of their own, so that one index serves either part.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime

from runs.query.lists import ListSpec

SIZE = 50
CAP = 10_000


class BadCursor(ValueError):
    """A cursor that no page has given out for this list and order."""


@dataclass(frozen=True)
class Place:
    """Where a page begins: after the row with this value and key. ``value`` None: among rows without one."""

    sort: str
    value: Any
    key: int
    upto: int


def encode(place: Place) -> str:
    """Opaque text of a place."""
    value = place.value.isoformat() if isinstance(place.value, datetime) else place.value
    kind = "t" if isinstance(place.value, datetime) else "v"
    data = json.dumps([place.sort, kind, value, place.key, place.upto], separators=(",", ":"))
    return base64.urlsafe_b64encode(data.encode()).decode().rstrip("=")


def decode(text: str, sort: str) -> Place:
    """The place of a cursor. Raises ``BadCursor``."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        stored, kind, value, key, upto = json.loads(raw)
        if kind == "t":
            value = parse_datetime(value)
            if value is None:
                raise ValueError(text)
        good = stored == sort and kind in ("t", "v") and isinstance(value, str | int | float | datetime | None)
        if not good or not (type(key) is int and type(upto) is int) or not 0 <= key < 2**62 or not 0 <= upto < 2**62:
            raise ValueError(text)
        if isinstance(value, int) and not -(2**62) < value < 2**62:
            raise ValueError(text)
        return Place(sort, value, key, upto)
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise BadCursor(f"cursor: got {text[:40]!r}, expected one that this list gave out") from error


def _pieces(spec: ListSpec, sort: str) -> tuple[str, bool]:
    return spec.sorts[sort.lstrip("-")], sort.startswith("-")


def window(
    spec: ListSpec, rows: QuerySet[Any], sort: str, place: Place | None, size: int = SIZE, backward: bool = False
) -> list[Any]:
    """At most ``size`` rows after ``place`` in the order of ``sort``; ``backward``: before it, nearest first."""
    column, falling = _pieces(spec, sort)
    step = "lt" if falling != backward else "gt"
    sign = "-" if falling != backward else ""
    if column == "pk":
        if place is not None:
            rows = rows.filter(**{f"pk__{step}": place.key})
        return list(rows.order_by(f"{sign}pk")[:size])
    without, held = Q(**{f"{column}__isnull": True}), Q(**{f"{column}__isnull": False})
    after_key = Q(**{f"pk__{step}": place.key}) if place else Q()
    parts: list[tuple[Q, tuple[str, ...]]] = []
    if place is None or place.value is not None:
        beyond = Q()
        if place is not None:
            # The outer bound says nothing new; by it the planner begins in the index at this place.
            bound = Q(**{f"{column}__{step}e": place.value})
            beyond = bound & (Q(**{f"{column}__{step}": place.value}) | (Q(**{column: place.value}) & after_key))
        parts.append((held & beyond, (f"{sign}{column}", f"{sign}pk")))
    if not backward or (place is not None and place.value is None):
        among = after_key if place is not None and place.value is None else Q()
        parts.append((without & among, (f"{sign}pk",)))
    if backward and place is not None and place.value is None:
        parts.append((held, (f"{sign}{column}", f"{sign}pk")))
    found: list[Any] = []
    for where, order in parts:
        if len(found) < size:
            found += list(rows.filter(where).order_by(*order)[: size - len(found)])
    return found


def place_of(spec: ListSpec, sort: str, row: Any, upto: int) -> Place:
    """The place of a row, from which the next page or the next row is found."""
    column, _falling = _pieces(spec, sort)
    value = row
    if column == "pk":
        return Place(sort, None, row.pk, upto)
    for name in column.split("__"):
        value = getattr(value, name)
    return Place(sort, value, row.pk, upto)


def newest_key(rows: QuerySet[Any]) -> int:
    """Highest key of the table: what is made later has a higher one."""
    return rows.model._default_manager.order_by("-pk").values_list("pk", flat=True).first() or 0


def capped_count(rows: QuerySet[Any], cap: int = CAP) -> tuple[int, bool]:
    """(number of rows up to ``cap``, whether there are more): never reads further than it says."""
    found = rows.order_by().values("pk")[: cap + 1].count()
    return min(found, cap), found > cap
