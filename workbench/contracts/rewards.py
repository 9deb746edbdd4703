"""What a reward's components make of each other: the one rule by which a total follows from them."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.contracts.records import RewardComponent, RewardRecord

FAIL_TO_PASS, REGRESSION, FORMAT_ERROR = "fail_to_pass", "regression", "format_error"


def reward_total(gate: float, components: Iterable[RewardComponent]) -> float:
    """gate * clip(sum of points, max(-1, sum of the negative weights), 1).

    Without a negative weight that is the range from 0 to 1; components that can only subtract widen it downwards, to
    -1 at most. Components without points (not measured) count for nothing, their weights neither.
    """
    measured = [part for part in components if part.points is not None]
    lowest = max(-1.0, sum(min(0.0, part.weight) for part in measured))
    points = sum(part.points for part in measured if part.points is not None)
    return gate * min(1.0, max(lowest, points))


def utility_of(reward: RewardRecord) -> float | None:
    """U as a reward of repairs stores it: fail-to-pass share minus regression. None where it has no such parts."""
    points = {part.name: part.points for part in reward.components}
    share, regression = points.get(FAIL_TO_PASS), points.get(REGRESSION)
    return None if share is None or regression is None else share + regression
