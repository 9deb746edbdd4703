"""Seconds left of a part that reports its progress, from the pace of that part so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Progress = Callable[[Any], None]


def timed(take: Progress, clock: Callable[[], float] = time.monotonic) -> Progress:
    """``take`` with ``left_s`` added to each report: for ``done`` of ``total`` of a part that has gone on a little.

    Whole seconds: (time since the part's first report) times (steps left) over (steps since that report). None
    before a part's second count, at its end and where nothing is counted. Other parts are not counted in.
    """
    begun: dict[tuple[str, str], tuple[float, int, int]] = {}  # time and count of its first report, newest count

    def report(value: Any) -> None:
        if not isinstance(value, dict):
            take(value)
            return
        done, total = value.get("done"), value.get("total")
        if not isinstance(done, int) or not isinstance(total, int):
            take({**value, "left_s": None})
            return
        now, part = clock(), (str(value.get("stage")), str(value.get("part")))
        at, first, newest = begun.get(part, (now, done, done))
        if done < newest:  # the part began anew
            at, first = now, done
        begun[part] = (at, first, done)
        left = round((now - at) * (total - done) / (done - first)) if first < done < total else None
        take({**value, "left_s": left})

    return report


def said(value: Any) -> str:
    """``", about 95 s left of this part"``, or nothing where a report does not say."""
    left = value.get("left_s") if isinstance(value, dict) else None
    return f", about {left} s left of this part" if left else ""
