"""One evaluation cell (checkpoint x condition x split): counts, rates, means, pass@k, families, gap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from workbench.contracts.canonical import encode_float
from workbench.contracts.records import INFRASTRUCTURE_INVALID

from .bootstrap import Bootstrap, gap_interval, task_interval
from .estimators import NO_EXPOSURE, Rate, count_rate, mean_rate, pass_at_k, pass_hat_k
from .items import BINARY, COUNT, JUDGED, METRICS, MISSING, ItemFacts, Metric

MIXED_VERIFIERS = "judged by different verifiers: not averaged"
IN_DISTRIBUTION = ("validation", "test")
OUT_OF_DISTRIBUTION = "out_of_distribution"
GAP_METRICS = ("reward", "success", "finish", "recovery_all")


def by_task(items: Iterable[ItemFacts]) -> dict[tuple[str, str], list[ItemFacts]]:
    """Items by (split, task key), sorted; repeats in order."""
    ordered = sorted(items, key=lambda item: item.slot)
    return {key: list(rows) for key, rows in groupby(ordered, key=lambda item: (item.split, item.task_key))}


def task_means(items: Iterable[ItemFacts], metric: Metric) -> dict[tuple[str, str], float]:
    """Per task, the mean of ``metric`` over its valid, measured repeats; tasks without any are absent."""
    means: dict[tuple[str, str], float] = {}
    for key, rows in by_task(items).items():
        rate = mean_rate(value for row in rows if row.valid and (value := metric.read(row)) is not None)
        if rate.value is not None:
            means[key] = rate.value
    return means


def mixed(items: Iterable[ItemFacts], name: str) -> bool:
    """Whether ``name`` was judged by more than one verifier among the items."""
    return name in JUDGED and len({item.verifier for item in items if item.valid}) > 1


def refused(note: str) -> dict[str, Any]:
    """A rate that is not formed: no numerator, no denominator, no value, and the reason."""
    return {"numerator": None, "denominator": None, "value": None, "note": note}


def _raw_note(items: Sequence[ItemFacts]) -> str | None:
    broken = sum(item.status == INFRASTRUCTURE_INVALID for item in items)
    missing = sum(item.status == MISSING for item in items)
    parts = []
    if broken:
        parts.append(f"{broken} infrastructure-invalid in the denominator, never in the numerator")
    if missing:
        parts.append(f"{missing} missing in the denominator, not accounted for")
    return "; ".join(parts) or None


def raw_rate(items: Sequence[ItemFacts], metric: Metric) -> Rate:
    """Share over all requested items (what a user meets); items not measured leave the denominator."""
    values = [metric.read(item) for item in items if item.valid]
    unmeasured = sum(value is None for value in values)
    notes = [_raw_note(items), f"{unmeasured} not measured, left out of the denominator" if unmeasured else None]
    hits = sum(int(value) for value in values if value is not None)
    return Rate(hits, len(items) - unmeasured, "; ".join(note for note in notes if note) or None)


def valid_rate(items: Sequence[ItemFacts], metric: Metric) -> Rate:
    """Share over valid, measured items (nearer the policy)."""
    values = [metric.read(item) for item in items if item.valid]
    return count_rate(None if value is None else bool(value) for value in values)


def _binary_block(items: Sequence[ItemFacts], raw: bool) -> dict[str, Any]:
    block: dict[str, Any] = {}
    for metric in METRICS.values():
        if metric.kind == BINARY:
            rate = (raw_rate if raw else valid_rate)(items, metric)
            block[metric.name] = refused(MIXED_VERIFIERS) if mixed(items, metric.name) else rate.to_json()
    return block


def _conditional(items: Sequence[ItemFacts]) -> dict[str, Any]:
    """Rates over the items that met their condition, which each name says."""
    facts = [item.facts for item in items if item.valid and item.facts is not None]
    return {
        "premature_finish_of_finished": count_rate(f.premature_finish for f in facts if f.finished).to_json(),
        "continued_of_fatal": count_rate(
            f.continued_after_fatal for f in facts if f.fatal_confirmed is not None
        ).to_json(),
        "recovery_of_exposed": count_rate(bool(f.recovered) for f in facts if f.exposed).to_json(),
    }


def macro_over_families(items: Sequence[ItemFacts], metric: Metric) -> Rate:
    """Mean over families of the mean over the family's tasks."""
    family = {(item.split, item.task_key): item.family for item in items}
    grouped: dict[str, list[float]] = {}
    for key, value in task_means(items, metric).items():
        grouped.setdefault(family[key], []).append(value)
    missing = len(set(family.values())) - len(grouped)
    means = [math.fsum(grouped[name]) / len(grouped[name]) for name in sorted(grouped)]
    note = f"{missing} families without a measured item are left out" if missing else None
    return Rate(math.fsum(means), len(means), note)


def means_block(items: Sequence[ItemFacts], metric: Metric, bootstrap: Bootstrap) -> dict[str, Any]:
    """Micro over episodes, mean over tasks with its interval, macro over families; all without infrastructure."""
    if mixed(items, metric.name):
        empty = refused(MIXED_VERIFIERS)
        return {"micro_episodes": empty, "task_mean": empty, "interval": None, "macro_families": empty}
    means = task_means(items, metric)
    values = [means[key] for key in sorted(means)]
    lost = len(by_task(items)) - len(values)
    note = f"{lost} tasks without a measured item are left out" if lost else None
    return {
        "micro_episodes": mean_rate(metric.read(item) for item in items if item.valid).to_json(),
        "task_mean": Rate(math.fsum(values), len(values), note).to_json(),
        "interval": task_interval(values, bootstrap).to_json(),
        "macro_families": macro_over_families(items, metric).to_json(),
    }


def _raw_reward(items: Sequence[ItemFacts]) -> dict[str, Any]:
    """Raw mean reward exists only if every requested item has one: a lost item has no reward, not 0."""
    lost = sum(not item.valid for item in items)
    if lost:
        return refused(f"{lost} of {len(items)} requested items have no reward: infrastructure-invalid or missing")
    if mixed(items, "reward"):
        return refused(MIXED_VERIFIERS)
    return mean_rate(item.reward for item in items).to_json()


def _pass_block(items: Sequence[ItemFacts], raw: bool) -> dict[str, Any]:
    """pass@k and pass^k for k = 1 .. the largest number of repeats of any task."""
    if mixed(items, "success"):
        return {"pass_at_k": {}, "pass_hat_k": {}, "k": [], "note": MIXED_VERIFIERS}
    measured = [item for item in items if not item.valid or item.success is not None]
    per_task = [[bool(row.success) for row in rows if raw or row.valid] for rows in by_task(measured).values()]
    ks = range(1, max((len(repeats) for repeats in per_task), default=0) + 1)
    return {
        "pass_at_k": {str(k): pass_at_k(per_task, k).to_json() for k in ks},
        "pass_hat_k": {str(k): pass_hat_k(per_task, k).to_json() for k in ks},
        "k": list(ks),
        "note": (_raw_note(items) if raw else None) if per_task else NO_EXPOSURE,
    }


def _families(items: Sequence[ItemFacts], bootstrap: Bootstrap) -> list[dict[str, Any]]:
    rows = []
    for name in sorted({item.family for item in items}):
        own = [item for item in items if item.family == name]
        rows.append(
            {
                "family": name,
                "tasks": len(by_task(own)),
                "items": Rate(sum(item.valid for item in own), len(own)).to_json(),
                "verifiers": sorted({item.verifier for item in own}),
                "reward": means_block(own, METRICS["reward"], bootstrap),
                "success": valid_rate(own, METRICS["success"]).to_json()
                if not mixed(own, "success")
                else refused(MIXED_VERIFIERS),
            }
        )
    return rows


def item_counts(items: Sequence[ItemFacts]) -> dict[str, Any]:
    """Where the requested items went. ``complete``: every one is accounted for (valid or infrastructure-invalid)."""
    requested = len(items)
    valid = sum(item.valid for item in items)
    broken = sum(item.status == INFRASTRUCTURE_INVALID for item in items)
    return {
        "requested": requested,
        "accounted": Rate(valid + broken, requested).to_json(),
        "valid": Rate(valid, requested).to_json(),
        "infrastructure_invalid": Rate(broken, requested).to_json(),
        "missing": requested - valid - broken,
        "complete": valid + broken == requested,
    }


def describe_checkpoint(item: ItemFacts) -> dict[str, Any]:
    """Which checkpoint: uid, hash, arm and run seed (None: the parent), whether final."""
    return {
        "checkpoint_uid": item.checkpoint_uid,
        "checkpoint_sha256": item.checkpoint_sha256,
        "arm": item.arm,
        "run_seed": item.run_seed,
        "is_final": item.is_final,
    }


def build_cell(items: Sequence[ItemFacts], bootstrap: Bootstrap) -> dict[str, Any]:
    """All figures of one cell; ``items``: its requested items (``complete_grid``), of one or more named splits."""
    facts = [item.facts for item in items if item.valid and item.facts is not None]
    return {
        **describe_checkpoint(items[0]),
        "condition": items[0].condition,
        "splits": sorted({item.split for item in items}),
        "tasks": len(by_task(items)),
        "items": item_counts(items),
        "raw": {**_binary_block(items, raw=True), "reward": _raw_reward(items), **_pass_block(items, raw=True)},
        "without_infrastructure": {**_binary_block(items, raw=False), **_pass_block(items, raw=False)},
        "conditional": _conditional(items),
        "means": {
            metric.name: means_block(items, metric, bootstrap)
            for metric in METRICS.values()
            if metric.kind == COUNT or metric.name in (*JUDGED, "finish", "recovery_all", "policy_failure", "fatal")
        },
        "repeat_calls_total": sum(f.repeat_calls for f in facts),
        "failures_seen_total": sum(f.failures_seen for f in facts),
        "families": _families(items, bootstrap),
    }


def build_gap(inside: Sequence[ItemFacts], outside: Sequence[ItemFacts], bootstrap: Bootstrap) -> dict[str, Any]:
    """In-distribution minus out-of-distribution, mean over tasks, the two task sets resampled independently."""
    metrics: dict[str, Any] = {}
    for name in GAP_METRICS:
        if mixed([*inside, *outside], name):
            metrics[name] = {"inside": None, "outside": None, "gap": None, "interval": None, "note": MIXED_VERIFIERS}
            continue
        sides = [
            [means[key] for key in sorted(means)] for means in (task_means(s, METRICS[name]) for s in (inside, outside))
        ]
        first, second = (Rate(math.fsum(side), len(side)) for side in sides)
        measured = first.value is not None and second.value is not None
        metrics[name] = {
            "inside": first.to_json(),
            "outside": second.to_json(),
            "gap": encode_float(first.value - second.value)
            if first.value is not None and second.value is not None
            else None,
            "interval": gap_interval(sides[0], sides[1], bootstrap).to_json(),
            "note": None if measured else NO_EXPOSURE,
        }
    return {
        **describe_checkpoint(inside[0]),
        "condition": inside[0].condition,
        "inside_split": inside[0].split,
        "outside_split": outside[0].split,
        "complete": all(item_counts(side)["complete"] for side in (inside, outside)),
        "metrics": metrics,
    }
