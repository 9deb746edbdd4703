"""When the rows of a list ended: bars, each of which narrows the list to its stretch of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from runs.query.lists import ListSpec
from runs.query.parse import Query, with_term

BARS = 48
LOOKED_AT = 1_000
WIDTH, HEIGHT = 960.0, 44.0


@dataclass(frozen=True)
class Bar:
    """Rows that ended in [begin, end); ``query`` narrows to them."""

    x: float
    y: float
    width: float
    height: float
    count: int
    begin: datetime
    end: datetime
    query: str


@dataclass(frozen=True)
class Histogram:
    """``of`` rows with a time were looked at, the newest ones; ``more``: there may be others."""

    bars: list[Bar]
    begin: datetime
    end: datetime
    of: int
    more: bool
    highest: int
    width: float = WIDTH
    height: float = HEIGHT


def _stretch(seconds: float) -> float:
    for step in (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400):
        if seconds <= step * BARS:
            return step
    return 365 * 86400


def build_histogram(spec: ListSpec, rows: QuerySet[Any], query: Query) -> Histogram | None:
    """None where fewer than two rows have a time."""
    if not spec.time:
        return None
    times: list[datetime] = list(
        rows.filter(**{f"{spec.time}__isnull": False}).order_by("-pk").values_list(spec.time, flat=True)[:LOOKED_AT]
    )
    if len(times) < 2:
        return None
    low, high = min(times), max(times)
    step = _stretch((high - low).total_seconds() + 1)
    base = datetime.fromtimestamp(int(low.timestamp() // step * step), UTC)
    counts: dict[int, int] = {}
    for moment in times:
        at = int((moment - base).total_seconds() // step)
        counts[at] = counts.get(at, 0) + 1
    last, highest = max(counts), max(counts.values())
    width = WIDTH / (last + 1)
    bars = []
    for at, count in sorted(counts.items()):
        begin = base + timedelta(seconds=at * step)
        end = begin + timedelta(seconds=step)
        tall = max(2.0, round(HEIGHT * count / highest, 2))
        until = end - timedelta(seconds=1)
        span = f"{begin:%Y-%m-%dT%H:%M:%S}..{until:%Y-%m-%dT%H:%M:%S}"
        narrowed = with_term(query, spec.time_key, span, raw=True)
        bars.append(
            Bar(round(at * width, 2), HEIGHT - tall, max(1.0, round(width - 1, 2)), tall, count, begin, end, narrowed)
        )
    return Histogram(bars, base, bars[-1].end, len(times), len(times) == LOOKED_AT, highest)
