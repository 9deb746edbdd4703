"""The aggregate of an evaluation: every cell, gap, comparison and pre-registered endpoint, with denominators.

Canonical-JSON-able and free of time: the same items, plan and settings give the same bytes in any
order of the items and on any machine. ``verify`` rebuilds it from the item manifests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.contracts.canonical import digest
from workbench.contracts.errors import PlanInvalid, RecordError
from workbench.contracts.seeds import derive_seed

from .bootstrap import GENERATOR, LEVEL, METHOD, RESAMPLES, TRAINING_SEEDS, Bootstrap, spread
from .cells import IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, build_cell, build_gap, mixed, task_means
from .contrasts import SeedContrasts, contrast, task_table
from .estimators import mean_rate
from .items import METRICS, ItemFacts, check_item, complete_grid
from .verdicts import PAIR, check_endpoint, judge, pending_result

FORMAT = "workbench.evaluation_aggregate/1"
CONTRASTED = tuple(METRICS)
Cells = dict[tuple[str, str, str], list[ItemFacts]]  # (checkpoint uid, condition, split)

__all__ = ["CONTRASTED", "FORMAT", "ItemFacts", "build_aggregate", "check_endpoint", "check_item", "task_table"]


def _cells(grid: Iterable[ItemFacts]) -> Cells:
    cells: Cells = {}
    for item in grid:
        cells.setdefault((item.checkpoint_uid, item.condition, item.split), []).append(item)
    return cells


class _Finals:
    """Final checkpoints by (arm, run seed), and the parent, with their cells."""

    def __init__(
        self,
        grid: Sequence[ItemFacts],
        cells: Cells,
        unchanged: Sequence[tuple[str, str]],
        planned: Mapping[str, Sequence[str]],
    ):
        self.cells, self.planned = cells, planned
        self.parent = next((item.checkpoint_uid for item in grid if item.arm is None), None)
        self.runs: dict[tuple[str, str], str] = {
            (item.arm, str(item.run_seed)): item.checkpoint_uid
            for item in grid
            if item.arm is not None and item.is_final
        }
        for run in unchanged:
            if run in self.runs:
                raise RecordError(f"unchanged: got {run}, expected a run without a checkpoint of its own")
            if self.parent is not None:
                self.runs[run] = self.parent
        self.places = sorted({(item.condition, item.split) for item in grid})
        self.arms = sorted({arm for arm, _ in self.runs})

    def seeds(self, *arms: str) -> list[str]:
        """Run seeds at which any of the arms has a final checkpoint."""
        return sorted({seed for arm, seed in self.runs if arm in arms})

    def common_seeds(self, first: str, second: str) -> list[str]:
        """Run seeds of either arm, but for those that the plan gives to one of them alone: they have no partner."""
        known = [set(self.planned[arm]) for arm in (first, second) if arm in self.planned]
        return [seed for seed in self.seeds(first, second) if all(seed in seeds for seeds in known)]

    def items(self, arm: str, seed: str, place: tuple[str, str]) -> list[ItemFacts]:
        """Items of an arm's final checkpoint at one condition and split; empty where not evaluated."""
        return self.cells.get((self.runs.get((arm, seed), ""), *place), [])

    def of_parent(self, place: tuple[str, str]) -> list[ItemFacts]:
        """Items of the parent at one condition and split."""
        return self.cells.get((self.parent or "", *place), [])

    def against_parent(self, arm: str, place: tuple[str, str], metric: str, k: int | None = None) -> SeedContrasts:
        """Each run of ``arm`` minus the parent."""
        found, absent = {}, {}
        for seed in self.seeds(arm):
            treatment, baseline = self.items(arm, seed, place), self.of_parent(place)
            if treatment and baseline:
                found[seed] = contrast(baseline, treatment, metric, k)
            else:
                absent[seed] = "arm_not_evaluated" if not treatment else "parent_not_evaluated"
        return SeedContrasts(found, absent)

    def pair(self, first: str, second: str, place: tuple[str, str], metric: str, k: int | None = None) -> SeedContrasts:
        """``second`` minus ``first`` at every seed that both are planned for."""
        found, absent = {}, {}
        for seed in self.common_seeds(first, second):
            baseline, treatment = self.items(first, seed, place), self.items(second, seed, place)
            if treatment and baseline:
                found[seed] = contrast(baseline, treatment, metric, k)
            else:
                absent[seed] = "arm_not_evaluated"
        return SeedContrasts(found, absent)


def _pair_arms(pair: Mapping[str, Any] | Sequence[str]) -> tuple[str, str]:
    arms = pair.get("arms") if isinstance(pair, Mapping) else pair
    if isinstance(arms, str) or arms is None or len(arms) != 2 or not all(isinstance(arm, str) for arm in arms):
        raise ValueError(f"strict_pairs: got {pair!r}, expected two arm names, baseline first")
    return str(arms[0]), str(arms[1])


def _over_splits(cells: Cells, bootstrap: Bootstrap) -> list[dict[str, Any]]:
    """One cell over all splits of a checkpoint and condition, named by its splits; never instead of them."""
    grouped: dict[tuple[str, str], list[list[ItemFacts]]] = {}
    for (uid, condition, _), items in cells.items():
        grouped.setdefault((uid, condition), []).append(items)
    return [
        build_cell([item for items in parts for item in items], bootstrap)
        for parts in grouped.values()
        if len(parts) > 1
    ]


def _gaps(cells: Cells, bootstrap: Bootstrap) -> list[dict[str, Any]]:
    return [
        build_gap(items, outside, bootstrap)
        for (uid, condition, split), items in cells.items()
        if split in IN_DISTRIBUTION and (outside := cells.get((uid, condition, OUT_OF_DISTRIBUTION)))
    ]


def _arm_spreads(finals: _Finals) -> list[dict[str, Any]]:
    """Per arm, mean +- standard deviation over training seeds of the final checkpoints' task means."""
    rows = []
    for arm in finals.arms:
        for place in finals.places:
            parts = [items for seed in finals.seeds(arm) if (items := finals.items(arm, seed, place))]
            if not parts:
                continue
            metrics = {}
            for name, metric in METRICS.items():
                if mixed([item for items in parts for item in items], name):
                    values = []
                else:
                    values = [
                        v for items in parts if (v := mean_rate(task_means(items, metric).values()).value) is not None
                    ]
                metrics[name] = spread(values, TRAINING_SEEDS).to_json()
            rows.append(
                {
                    "arm": arm,
                    "condition": place[0],
                    "split": place[1],
                    "run_seeds": [seed for seed in finals.seeds(arm) if finals.items(arm, seed, place)],
                    "metrics": metrics,
                }
            )
    return rows


def _comparison(seeds: SeedContrasts, place: tuple[str, str], bootstrap: Bootstrap) -> dict[str, Any]:
    return {"condition": place[0], "split": place[1], **seeds.to_json(bootstrap)}


def _comparisons(finals: _Finals, pairs: Sequence[tuple[str, str]], bootstrap: Bootstrap) -> dict[str, Any]:
    """Every arm's runs against the parent, and every strict pair; descriptive unless an endpoint names it."""
    parent, strict = [], []
    for place in finals.places:
        for metric in CONTRASTED:
            for arm in finals.arms:
                found = finals.against_parent(arm, place, metric)
                if found.by_seed:
                    parent.append({"arm": arm, "metric": metric, **_comparison(found, place, bootstrap)})
            for first, second in pairs:
                found = finals.pair(first, second, place, metric)
                if found.by_seed:
                    strict.append({"arms": [first, second], "metric": metric, **_comparison(found, place, bootstrap)})
    return {"parent": parent, "strict_pairs": strict}


def _endpoint(endpoint: Mapping[str, Any], finals: _Finals, bootstrap: Bootstrap) -> dict[str, Any]:
    place = (endpoint["condition"], endpoint["split"])
    metric, k = endpoint["metric"], endpoint.get("k")
    arms = list(endpoint["compare"]["arms"])
    if endpoint["compare"]["kind"] == PAIR:
        found = [(arms, finals.pair(arms[0], arms[1], place, metric, k))]
    else:
        found = [([arm], finals.against_parent(arm, place, metric, k)) for arm in arms]
    results = []
    for names, seeds in found:
        absent = [name for name in names if name not in finals.arms]
        if absent:
            results.append(pending_result("arm_not_evaluated:" + ",".join(absent), names))
        else:
            results.append(judge(endpoint, seeds, names, bootstrap))
    return {"endpoint": dict(endpoint), "results": results}


def build_aggregate(
    *,
    plan_sha256: str,
    endpoints: Sequence[Mapping[str, Any]],
    strict_pairs: Sequence[Mapping[str, Any] | Sequence[str]],
    items: Iterable[ItemFacts],
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    unchanged: Sequence[tuple[str, str]] = (),
    planned: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The whole aggregate. ``strict_pairs``: {"arms": [baseline, treatment], ...} or two names.

    ``unchanged``: (arm, run seed) of runs that committed no step, so that their final checkpoint is the
    parent itself and its items are theirs; without an entry such a run counts as not evaluated.
    ``planned``: run seeds of each arm in the plan; a pair is compared at the seeds that both have.

    The bootstrap's seed derives from the plan hash. Raises ``PlanInvalid`` for faulty endpoints,
    ``RecordError`` for items that contradict themselves or each other, ``ValueError`` for settings.
    """
    problems = [problem for endpoint in endpoints for problem in check_endpoint(endpoint)]
    if problems:
        raise PlanInvalid(problems)
    pairs = [_pair_arms(pair) for pair in strict_pairs]
    bootstrap = Bootstrap(derive_seed("statistics.bootstrap", plan_sha256), level, resamples)
    grid = complete_grid(items)
    cells = _cells(grid)
    finals = _Finals(grid, cells, unchanged, planned or {})
    return {
        "format": FORMAT,
        "plan_sha256": plan_sha256,
        "bootstrap": {
            "method": METHOD,
            "generator": GENERATOR,
            "seed": bootstrap.seed,
            "resamples": resamples,
            "level": level,
        },
        "unchanged_runs": [{"arm": arm, "run_seed": seed} for arm, seed in sorted(unchanged)],
        "requested_rule": "union over checkpoints of the items of a condition and split",
        "cells": [build_cell(part, bootstrap) for part in cells.values()],
        "over_splits": _over_splits(cells, bootstrap),
        "gaps": _gaps(cells, bootstrap),
        "arms": _arm_spreads(finals),
        "comparisons": _comparisons(finals, pairs, bootstrap),
        "endpoints": [_endpoint(endpoint, finals, bootstrap) for endpoint in endpoints],
    }


def aggregate_sha256(aggregate: Mapping[str, Any]) -> str:
    """SHA-256 of the aggregate's canonical bytes."""
    return digest(aggregate)
