"""Verdict words of a pre-registered endpoint, from rules alone, and what a page may and may not say.

Rules (spec: evaluation statistics; evidence and notes, "Claim"): improvement needs a pre-registered
direction and an interval that excludes 0 in it; equivalence a pre-registered interval that contains
the whole interval; non-inferiority a pre-registered margin. Rules of our own, stricter than those:
every seed's own difference obeys equivalence or non-inferiority too; a zero-width interval supports
neither, and improvement only where the two-sided sign test over tasks agrees; a mean over seeds
below two standard deviations is "not distinguished", which asserts no equivalence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.contracts.errors import Problem

from .bootstrap import Bootstrap, Interval
from .contrasts import PASS_METRICS, SeedContrasts
from .items import METRICS

INCREASE, DECREASE, NO_DIRECTION = "increase", "decrease", "none"
PAIR, PARENT = "pair", "parent"
IMPROVEMENT, EQUIVALENCE, NON_INFERIORITY = "improvement", "equivalence", "non_inferiority"
NOT_DISTINGUISHED = "not_distinguished"
OBSERVED = "observed_on_this_frozen_sample"
PENDING, MEASURED, PARTIAL = "pending", "measured", "partial"
RULED = (IMPROVEMENT, EQUIVALENCE, NON_INFERIORITY)
SENTENCES = (  # ids that pages turn into sentences; docs/statistics.md says what each means
    IMPROVEMENT,
    EQUIVALENCE,
    NON_INFERIORITY,
    NOT_DISTINGUISHED,
    OBSERVED,
    "no_regression_observed",
    "no_effect",
    "holds_over_training_seeds",
    "holds_beyond_these_tasks",
    "general_ability",
    "production_robustness",
    "safety",
)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_endpoint(endpoint: Mapping[str, Any], arms: frozenset[str] | None = None) -> list[Problem]:
    """Every fault of an endpoint document; ``arms``: the plan's arms, where known."""
    name = str(endpoint.get("id", "?"))
    problems: list[Problem] = []

    def need(ok: bool, field: str, expected: str) -> None:
        if not ok:
            problems.append(Problem(f"endpoints.{name}.{field}", repr(endpoint.get(field.split(".")[0])), expected))

    for field in ("id", "definition", "unit", "split", "condition"):
        need(isinstance(endpoint.get(field), str) and bool(endpoint.get(field)), field, "non-empty text")
    direction, margin, region = (endpoint.get(field) for field in ("direction", "margin", "equivalence"))
    need(direction in (INCREASE, DECREASE, NO_DIRECTION), "direction", "increase | decrease | none")
    need(
        endpoint.get("metric") in (*METRICS, *PASS_METRICS), "metric", "one of " + ", ".join([*METRICS, *PASS_METRICS])
    )
    k = endpoint.get("k")
    need(k is None or (isinstance(k, int) and not isinstance(k, bool) and k >= 1), "k", "null or an integer from 1")
    need(margin is None or (_number(margin) and margin >= 0), "margin", "null or a number >= 0")
    need(margin is None or direction != NO_DIRECTION, "direction", "increase | decrease where a margin stands")
    ordered = isinstance(region, list | tuple) and len(region) == 2 and all(map(_number, region))
    need(region is None or (ordered and region[0] < region[1]), "equivalence", "null or [low, high] with low < high")
    level = endpoint.get("interval")
    need(_number(level) and 0 < float(level or 0) < 1, "interval", "a level between 0 and 1")
    compare = endpoint.get("compare")
    kind, listed = (compare.get("kind"), compare.get("arms")) if isinstance(compare, Mapping) else (None, None)
    need(kind in (PAIR, PARENT), "compare.kind", "pair | parent")
    texts = isinstance(listed, list | tuple) and len(listed) > 0 and all(isinstance(arm, str) for arm in listed)
    need(texts and len(set(listed or ())) == len(listed or ()), "compare.arms", "distinct arm names")
    need(kind != PAIR or (texts and len(listed or ()) == 2), "compare.arms", "two arms, baseline first, for a pair")
    need(
        arms is None or not texts or set(listed or ()) <= arms,
        "compare.arms",
        f"arms of the plan: {sorted(arms or ())}",
    )
    return problems


def _sign_test_agrees(differences: Mapping[Any, float], sign: float, level: float) -> bool:
    """Two-sided sign test of tasks that all differ in the direction ``sign``."""
    return all(value * sign > 0 for value in differences.values()) and 2 * 0.5 ** len(differences) <= 1 - level


def _sign(endpoint: Mapping[str, Any]) -> float:
    return {INCREASE: 1.0, DECREASE: -1.0}.get(str(endpoint["direction"]), 0.0)


def ruled_words(endpoint: Mapping[str, Any], seeds: SeedContrasts, interval: Interval) -> list[str]:
    """Which of improvement, equivalence and non-inferiority the rules allow."""
    if interval.low is None or interval.high is None:
        return []
    sign, margin, region = _sign(endpoint), endpoint["margin"], endpoint["equivalence"]
    words = []
    excluded = (sign > 0 and interval.low > 0) or (sign < 0 and interval.high < 0)
    precise = not interval.degenerate or _sign_test_agrees(seeds.task_differences(), sign, interval.level)
    if excluded and precise and seeds.seed_spread().distinguished is not False:
        words.append(IMPROVEMENT)
    each = seeds.estimates()
    if region is not None and not interval.degenerate:
        inside = region[0] <= interval.low and interval.high <= region[1]
        if inside and all(region[0] <= value <= region[1] for value in each):
            words.append(EQUIVALENCE)
    if margin is not None and sign and not interval.degenerate:
        worst = min(sign * interval.low, sign * interval.high)
        if worst > -margin and all(sign * value > -margin for value in each):
            words.append(NON_INFERIORITY)
    return words


def _sentences(endpoint: Mapping[str, Any], words: list[str], seeds: SeedContrasts) -> dict[str, list[str]]:
    distinguished = seeds.seed_spread().distinguished
    may = {OBSERVED, *words}
    if distinguished is False:
        may.add(NOT_DISTINGUISHED)
    estimates, sign = seeds.estimates(), _sign(endpoint)
    if sign and estimates and all(sign * value >= 0 for value in estimates):
        may.add("no_regression_observed")
    if distinguished and words:
        may.add("holds_over_training_seeds")
    return {
        "may_say": [name for name in SENTENCES if name in may],
        "may_not_say": [n for n in SENTENCES if n not in may],
    }


def pending_result(reason: str, arms: list[str]) -> dict[str, Any]:
    """An endpoint without data: a first-class value, never 0. ``reason`` is a code."""
    return {
        "arms": arms,
        "state": PENDING,
        "reason": reason,
        "contrast": None,
        "verdict": PENDING,
        "holds": [],
        "opposite_direction": None,
        "may_say": [PENDING],
        "may_not_say": list(SENTENCES),
    }


def judge(endpoint: Mapping[str, Any], seeds: SeedContrasts, arms: list[str], bootstrap: Bootstrap) -> dict[str, Any]:
    """State, verdict word, words that hold, and sentence ids of one endpoint.

    With a requested pair still missing the state is ``partial`` and the verdict stays pending: the
    estimate is shown, no word is read off before all items are in.
    """
    if not seeds.measured:
        reasons = sorted({*(one.reason or "not_measured" for one in seeds.by_seed.values()), *seeds.absent.values()})
        return pending_result("+".join(reasons) or "no_items", arms)
    own = bootstrap.at(float(endpoint["interval"]))
    interval = seeds.interval(own)
    unsettled = seeds.missing > 0 or bool(seeds.absent) or len(seeds.measured) < len(seeds.by_seed)
    contrast = seeds.to_json(own)
    if unsettled:
        reason = "items_missing" if seeds.missing else "seeds_incomplete"
        return {**pending_result(reason, arms), "state": PARTIAL, "contrast": contrast}
    words = ruled_words(endpoint, seeds, interval)
    distinguished = seeds.seed_spread().distinguished
    verdict = next(iter(words), NOT_DISTINGUISHED if distinguished is False else OBSERVED)
    sign = _sign(endpoint)
    opposite = (
        bool((sign > 0 and interval.high < 0) or (sign < 0 and interval.low > 0))
        if sign and interval.low is not None and interval.high is not None
        else None
    )
    return {
        "arms": arms,
        "state": MEASURED,
        "reason": None,
        "contrast": contrast,
        "verdict": verdict,
        "holds": words,
        "opposite_direction": opposite,
        **_sentences(endpoint, words, seeds),
    }
