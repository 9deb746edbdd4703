"""Following by long polling: receipts since a cursor, none lost and none twice, and a progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import WaitTimeout
from .reading import build
from .records import Receipt
from .transport import Transport

T = TypeVar("T")
WAIT_SECONDS = 20  # that one request stays open
SLACK_SECONDS = 15.0  # beyond it, before the connection counts as lost
EARLY_SECONDS = 1.0  # an empty answer before this: the server has no place to wait; pause before the next
Look = Callable[[], tuple[T, bool, tuple[int, int, str]]]


@dataclass(frozen=True)
class Scope:
    """What is followed: one of study (slug), plan, execution, run."""

    transport: Transport
    of: dict[str, Any]

    def poll(self, cursor: str | None, *, wait: float, begin: str = "beginning") -> tuple[list[Receipt], str, bool]:
        """(receipts after the cursor, the next cursor, whether there are more already)."""
        seconds = int(max(0, min(WAIT_SECONDS, wait)))
        given = {**self.of, "wait": seconds, **({"cursor": cursor} if cursor else {"from": begin})}
        value = self.transport.get("events", given, timeout=seconds + SLACK_SECONDS).value
        return [build(Receipt, item, "events") for item in value["items"]], value["cursor"], bool(value["more"])

    def events(self, *, begin: str = "beginning") -> Iterator[Receipt]:
        """Receipts as they come, endlessly."""
        cursor: str | None = None
        while True:
            started = time.monotonic()
            found, cursor, more = self.poll(cursor, wait=WAIT_SECONDS, begin=begin)
            yield from found
            if not found and not more and time.monotonic() - started < EARLY_SECONDS:
                self.transport.sleep(EARLY_SECONDS)


def _bar(unit: str, wanted: bool) -> Any:
    """A progress bar on standard error; none where it is not wanted or not installed."""
    if not wanted:
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    interval = 0.2 if sys.stderr.isatty() else 10.0
    return tqdm(total=0, unit=unit, file=sys.stderr, dynamic_ncols=True, mininterval=interval)


def _show(bar: Any, at: tuple[int, int, str]) -> None:
    if bar is not None:
        done, total, text = at
        bar.total = total or None
        bar.set_description(text, refresh=False)
        bar.update(done - bar.n)
        bar.refresh()


def follow_to_end(
    scope: Scope, look: Look[T], unit: str, progress: bool, on_event: Callable[[Receipt], None] | None,
    timeout: float | None,
) -> T:  # fmt: skip
    """What ``look`` returns once it says that the end is reached.

    ``look``: (state, whether it is the end, (done, total, text)). It is asked after every answer of the
    events, and the events are read to their end once more after it: the last receipt is told too.
    """
    end = None if timeout is None else time.monotonic() + timeout
    cursor: str | None = None
    bar = _bar(unit, progress)
    try:
        while True:
            state, is_end, at = look()
            _show(bar, at)
            left = float("inf") if end is None else end - time.monotonic()
            if not is_end and left <= 0:
                raise WaitTimeout(f"{at[2]}: {at[0]} of {at[1]} after {timeout:g} s; it goes on")
            started = time.monotonic()
            found, cursor, more = scope.poll(cursor, wait=0 if is_end else left)
            for receipt in found:
                if on_event is not None:
                    on_event(receipt)
            if is_end and not found and not more:
                return state
            pause = min(EARLY_SECONDS, left)
            if not found and not is_end and time.monotonic() - started < pause:
                scope.transport.sleep(pause)
    finally:
        if bar is not None:
            bar.close()
