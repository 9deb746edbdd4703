"""What the scheduler does once a minute: sign what is unsigned, have it stamped, draft yesterday's journal."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime

from evidence.actions.journal import draft_due
from evidence.actions.signing import sign_missing
from evidence.outward.timestamps import StampRefused, stamp_newest

logger = logging.getLogger(__name__)
EVERY_S, AFTER_REFUSAL_S = 60.0, 600.0
_next: dict[str, float] = {}


def forget() -> None:
    """Begin anew, as a process that has just started."""
    _next.clear()


def _due(name: str, now: float, pause: float = EVERY_S) -> bool:
    if now < _next.get(name, 0.0):
        return False
    _next[name] = now + pause
    return True


def tick(at: datetime, *, clock: Callable[[], float] = time.monotonic) -> None:
    """Do what is due. One thing that fails is logged and does not hold up the others; nothing is lost by it."""
    now = clock()
    if not _due("tick", now):
        return
    for name, work in (("signatures", lambda: sign_missing(at=at)), ("journal", lambda: draft_due(at=at))):
        try:
            work()
        except Exception:
            logger.exception("%s", name)
    if _due("stamp", now):
        try:
            stamp_newest(at=at)
        except StampRefused as error:
            _next["stamp"] = now + AFTER_REFUSAL_S
            logger.warning("%s", error)
        except Exception:
            _next["stamp"] = now + AFTER_REFUSAL_S
            logger.exception("time stamp")
