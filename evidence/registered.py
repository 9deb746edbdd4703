"""What a frozen plan registered for an endpoint, and what its closed execution measured. Read, never decided here.

The verdict words come from the aggregate that the closure binds (``runs.statistics.verdicts``): this module
repeats none of those rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evidence.binding.closed import ClosedError, closed_execution
from evidence.models import ClaimVersion, FigureVersion
from evidence.wording import EQUIVALENCE, IMPROVEMENT, NON_INFERIORITY, Facts
from runs.actions.plans import plan_body
from runs.models import PlanVersion

MEASURED = "measured"
NO_REGRESSION_OBSERVED = "no_regression_observed"


@dataclass(frozen=True)
class Registered:
    """An endpoint of a frozen plan. ``results``: one for each comparison, empty unless the execution is closed."""

    endpoint: Mapping[str, Any]
    closed: bool
    results: tuple[Mapping[str, Any], ...]

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of claims for which it registered what they take."""
        found = set()
        if self.endpoint["direction"] != "none":
            found.add(IMPROVEMENT)
        if self.endpoint.get("equivalence") is not None:
            found.add(EQUIVALENCE)
        if self.endpoint.get("margin") is not None and self.endpoint["direction"] != "none":
            found.add(NON_INFERIORITY)
        return frozenset(found)

    def of_arms(self, arms: Iterable[str] = ()) -> tuple[Mapping[str, Any], ...]:
        """Results of the comparison of these arms; all of them where none are named."""
        wanted = list(arms)
        return tuple(item for item in self.results if not wanted or list(item["arms"]) == wanted)

    def measured(self, arms: Iterable[str] = ()) -> bool:
        """Whether every such comparison has all of its items."""
        found = self.of_arms(arms)
        return bool(found) and all(item["state"] == MEASURED for item in found)

    def holds(self, arms: Iterable[str] = ()) -> frozenset[str]:
        """Verdict words that hold in every such comparison, with ``no_regression_observed`` where it may be said."""
        found = [
            frozenset(item["holds"]) | ({NO_REGRESSION_OBSERVED} & frozenset(item["may_say"]))
            for item in self.of_arms(arms)
        ]
        return frozenset.intersection(*found) if found else frozenset()


def registered(version: PlanVersion | None, endpoint: str) -> Registered | None:
    """The endpoint of that id. None where the plan has none of it."""
    if version is None or not endpoint:
        return None
    for item in plan_body(version)["plan"]["endpoints"]:
        if item["id"] == endpoint:
            closed, results = _results(version, endpoint)
            return Registered(item, closed, results)
    return None


def _results(version: PlanVersion, endpoint: str) -> tuple[bool, tuple[Mapping[str, Any], ...]]:
    """(closed, results): nothing is read before the closure is stored and names the aggregate."""
    try:
        aggregate = closed_execution(version).aggregate
    except ClosedError:
        return False, ()
    found = [tuple(item["results"]) for item in aggregate["endpoints"] if item["endpoint"]["id"] == endpoint]
    return True, found[0] if found else ()


def facts_of(version: PlanVersion | None, endpoint: str, comparisons: Iterable[tuple[str, ...]] = ()) -> Facts:
    """What ``wording.check`` needs to know of a claim's endpoint.

    ``comparisons``: arms of each comparison that the claim shows; all of the endpoint's where it shows none. A verdict
    holds where it does in each of them.
    """
    found = registered(version, endpoint)
    if found is None:
        return Facts(plan=version is not None)
    shown = [*comparisons] or [()]
    holds = frozenset.intersection(*map(found.holds, shown)) if all(map(found.measured, shown)) else None
    return Facts(plan=True, endpoint=True, registered=found.kinds, holds=holds)


def carries_endpoint(figure: FigureVersion | None, version: ClaimVersion) -> bool:
    """Whether a figure is the native effect that the claim's endpoint measures."""
    return (
        figure is not None
        and figure.kind == "effect"
        and figure.origin == "native"
        and figure.binding.get("type") == "endpoint"
        and figure.plan_version_id is not None
        and figure.plan_version_id == version.plan_version_id
        and figure.endpoint == version.endpoint
    )


def compared(figures: Iterable[FigureVersion | None], version: ClaimVersion) -> list[tuple[str, ...]]:
    """Arms of each comparison of the claim's endpoint that these figures carry; [()], all of it, where none does."""
    carried = (item for item in figures if item is not None and carries_endpoint(item, version))
    return sorted({tuple(str(arm) for arm in item.binding.get("arms") or ()) for item in carried}) or [()]


def promises_endpoint(figure: FigureVersion | None, version: ClaimVersion) -> bool:
    """Whether a pending figure will be filled by the endpoint of the claim."""
    return (
        figure is not None
        and figure.kind == "effect"
        and figure.binding.get("type") == "pending"
        and figure.plan_version_id is not None
        and figure.plan_version_id == version.plan_version_id
        and figure.endpoint == version.endpoint
    )
