"""Seconds left of a part: the pace since its first report, nothing before it is known."""

from __future__ import annotations

from typing import Any

from worker.left import said, timed


def _reports(values: list[Any], times: list[float]) -> list[Any]:
    clock, seen = iter(times), []
    report = timed(seen.append, lambda: next(clock))
    for value in values:
        report(value)
    return seen


def _part(done: int, total: int = 320, part: str = "sft") -> dict[str, Any]:
    return {"stage": "warm_start", "part": part, "done": done, "total": total}


def test_the_pace_of_a_part_gives_its_time_left() -> None:
    """First report at 1 of 320; 20 steps later 10 s have gone: 299 steps left at 0.5 s are 149.5, so 150 s."""
    first, later, last = _reports([_part(1), _part(21), _part(320)], [100.0, 110.0, 260.0])
    assert first["left_s"] is None and later == {**_part(21), "left_s": 150} and last["left_s"] is None
    assert said(later) == ", about 150 s left of this part" and said(first) == said(last) == said("x") == ""


def test_each_part_is_timed_by_itself_and_anew_where_it_begins_anew() -> None:
    seen = _reports(
        [_part(0), _part(0, part="copying"), _part(10), _part(0), _part(10)], [0.0, 50.0, 10.0, 200.0, 205.0]
    )
    assert [value.get("left_s") for value in seen] == [None, None, 310, None, 155]


def test_what_counts_nothing_says_so() -> None:
    """Said, so that a reader who keeps the newest fields forgets the time left of the part before."""
    assert _reports(["describe", {"stage": "code"}], []) == ["describe", {"stage": "code", "left_s": None}]
