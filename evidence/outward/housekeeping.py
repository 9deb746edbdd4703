"""What the scheduler does once a minute: anchor what has grown, sign it, have it stamped, draft yesterday's journal.

What was appended since the last tick is in no anchor yet: who cuts it off together with its receipts within that minute
is found by no head. A review and an answer anchor at once (``evidence.actions.reviews``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime

from evidence.actions.journal import draft_due
from evidence.actions.signing import anchor_now
from evidence.outward.timestamps import StampRefused, stamp_newest
from runs.models import StreamHead

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


def anchor_grown(*, at: datetime) -> None:
    """Anchor and sign where a stream has grown since the newest anchor; sign what a dead process left unsigned.

    A home without a receipt has nothing to anchor.
    """
    if StreamHead.objects.filter(seq__gt=0).exists():
        anchor_now(at=at)


def tick(at: datetime, *, clock: Callable[[], float] = time.monotonic) -> None:
    """Do what is due. One thing that fails is logged and does not hold up the others; nothing is lost by it."""
    now = clock()
    if not _due("tick", now):
        return
    for name, work in (("journal", lambda: draft_due(at=at)), ("anchor", lambda: anchor_grown(at=at))):
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
