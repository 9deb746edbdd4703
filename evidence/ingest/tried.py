"""Trials of an execution as documents that pages can cite: the pilot, each arm, and what both took.

Counts, rates and medians hold no time, so equal runs give equal bytes; seconds and the sandbox stand apart. Every value
is the one that the pages of edit credit show. ``None``: there is nothing to count, which is no 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runs.actions.plans import plan_body
from runs.models import Execution, PlanVersion, Run, Trial, TrialSet
from runs.presenters.trials.coefficients import close
from runs.presenters.trials.costs import Cost, costs_of
from runs.presenters.trials.funnel import Column, build_columns, executes
from runs.presenters.trials.rows import PILOT, Middle, Rate, middle, read_rows, shrinkage
from runs.presenters.trials.study import changes_of, credits_of
from workbench.contracts import layout
from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.records import PREFLIGHT
from workbench.contracts.trials import INTERVENTION, ORIGINAL, PASSED, UNAVAILABLE

SCHEMA = "workbench.edit-credit/1"
PILOT_FILE, ARMS_FILE = "trials/pilot.json", "trials/arms.json"
PILOT_TIMES_FILE, TIMES_FILE = "trials/pilot-times.json", "trials/times.json"
TITLES: Mapping[str, tuple[str, str]] = {
    PILOT_FILE: ("Mechanism pilot of {}", "{} 的机制试点"),
    ARMS_FILE: ("Edit credit by arm, {}", "{} 各臂的编辑信用"),
    PILOT_TIMES_FILE: ("What the pilot of {} took", "{} 的试点用时"),
    TIMES_FILE: ("What the trials of {} took", "{} 的试验用时"),
}
INCLUDES, EXCLUDES = ("setup", "verification", "cleanup"), ("waiting",)  # of a service time
APPLIED = "applied"


def asks_pilot(body: dict[str, Any]) -> bool:
    """Whether a frozen plan tries the groups of its preflight."""
    return bool(body["plan"]["preflight"]) and layout.trial_settings(body, PREFLIGHT, None) is not None


def pilot_ended(version: PlanVersion) -> bool:
    """Whether every group of the pilot has been tried, or was given up as its record says; False without a pilot."""
    body = plan_body(version)
    if not asks_pilot(body):
        return False
    tried = TrialSet.objects.filter(plan_version=version, purpose=PREFLIGHT).count()
    return bool(tried == body["plan"]["preflight"]["groups"])


def trial_documents(execution: Execution) -> Iterator[tuple[str, bytes]]:
    """(file, bytes): of an ended pilot, and of the arms too once the execution is closed; nothing without trials."""
    version = execution.plan_version
    ended, closed = pilot_ended(version), execution.state == "closed"
    if not ended and not (closed and TrialSet.objects.filter(plan_version=version).exists()):
        return
    runs = list(Run.objects.filter(execution=execution).select_related("head", "arm").order_by("pk"))
    credits = credits_of(version) if closed else {}
    columns = build_columns(version, runs, read_rows(version), credits, ended=True)
    costs = {cost.key: cost for cost in costs_of(execution, columns, runs, execution.updated_at)}
    levels = _levels(version)
    tried = [column for column in columns if column.mode is not None]
    if ended:
        parts = _parts(version, columns[0])
        yield PILOT_FILE, _bytes(version, {"pilot": {**_scope(columns[0]), "positive_of_failed": parts}})
        yield PILOT_TIMES_FILE, _bytes(version, {"pilot": _took(costs["pilot"], levels.get(PILOT, []))})
    if closed:
        changed = {item.arm: item for item in changes_of(version, {c.scope: c.key for c in columns if c.scope})}
        arms = {}
        for column in columns[1:]:
            own = changed[column.key]
            arms[column.key] = {
                **(_scope(column) if column.mode is not None else {"mode": None}),
                "letter": column.letter,
                "terms": _terms(column, credits.get(column.scope or 0, [])),
                "updates": {"changed": _rate(own.moved), "skipped": own.skipped, "edit_only_groups": own.edit_only},
            }
        yield ARMS_FILE, _bytes(version, {"arms": arms})
        took = {column.key: _took(costs[column.key], levels.get(column.scope, [])) for column in tried}
        yield TIMES_FILE, _bytes(version, {"scopes": took})


def _bytes(version: PlanVersion, body: dict[str, Any]) -> bytes:
    return canonical_bytes({"schema": SCHEMA, "plan_sha256": version.sha256, **body})


def _rate(rate: Rate) -> dict[str, int]:
    return {"n": rate.n, "of": rate.of}


def _middle(found: Middle) -> dict[str, Any]:
    return {"median": found.value, "n": found.n}


def _signs(signs: Any) -> dict[str, int]:
    return {
        "usable": signs.usable, "nonzero": signs.nonzero.n, "positive": signs.positive, "negative": signs.negative,
        "zero": signs.zero,
    }  # fmt: skip


def _scope(column: Column) -> dict[str, Any]:
    """Funnel, signal, geometry, repeatability and missing feedback of the pilot or of an arm."""
    return {
        "mode": column.mode,
        "planned": column.planned,
        "recorded": column.recorded,
        "excluded": {key: column.count[key] for key in (*UNAVAILABLE, "never", "waiting")},
        "usable": column.usable.n,
        "chosen_only": column.count["selected"],
        "signs": _signs(column.signs),
        "failed": {"known": column.known_failed, **_signs(column.failed)},
        "succeeded": _signs(column.succeeded),
        "geometry": {
            "chosen": len(column.chosen),
            "ratio": _middle(column.ratio),
            "touched": _middle(column.touched),
            "empty": _rate(column.empty),
            "elsewhere": _rate(column.elsewhere),
            **_computed(column),
        },
        "replays": _rate(column.replays),
        "repeats": _rate(column.repeats),
        "missing": _rate(column.missing),
        "missing_failed": _rate(column.missing_failed),
        "missing_succeeded": _rate(column.missing_succeeded),
        "untried": column.broken,
    }


def _computed(column: Column) -> dict[str, Any]:
    """s of the differences other than 0 as the definition gives it; None where arms differ in lambda or c."""
    some = [row for row in column.rows if row.difference]
    if column.weight is None or column.cap is None or not executes(column):
        return {"shrinkage": None, "capped": None}
    found = [s for row in some if (s := shrinkage(column.weight, column.cap, row)) is not None]
    return {"shrinkage": _middle(middle(found)), "capped": {"n": sum(s < 1.0 for s in found), "of": len(found)}}


def _terms(column: Column, credits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Terms that updates applied. ``masses``: signed and L1 mass are those that B and M share, of the terms applied."""
    own = [item for item in credits if item["status"] == APPLIED]
    moved = [item for item in own if item["l1_mass"] > 0]
    masses = None
    if column.letter in ("B", "M") and column.weight is not None:
        masses = {"n": sum(_agrees(item, column.weight) for item in own), "of": len(own)}
    return {
        "stored": len(credits),
        "applied": len(own),
        "nonzero": len(moved),
        "capped": {"n": sum(bool(item["capped"]) for item in own), "of": len(moved)},
        "shrinkage": _middle(middle(item["shrinkage"] for item in moved)),
        "masses": masses,
    }


def _agrees(item: Mapping[str, Any], weight: float) -> bool:
    signed = item["shrinkage"] * weight * item["difference"] * item["tokens"]
    return close(item["signed_mass"], signed) and close(item["l1_mass"], abs(signed))


def _parts(version: PlanVersion, column: Column) -> dict[str, int]:
    """Positive D of failed originals: by fail-to-pass tests, or by the regression indicator alone; tasks they fall in.

    ``fail_to_pass``: without the block another share of the fail-to-pass tests passes.
    """
    wanted = [row.trajectory for row in column.rows if row.failed and (row.difference or 0) > 0]
    passed: dict[Any, dict[str, int]] = {}
    tasks = set()
    rows = Trial.objects.filter(
        trial_set__plan_version=version, trajectory__uid__in=wanted, kind__in=(ORIGINAL, INTERVENTION)
    )
    names = ("trajectory__uid", "kind", "observed", "trial_set__fail_to_pass", "trial_set__group__task_id")
    for uid, kind, observed, listed, task in rows.values_list(*names):
        good = {item["test"] for item in observed if item["status"] == PASSED}
        passed.setdefault(uid, {})[kind] = len(good & set(listed))
        tasks.add(task)
    by_tests = sum(found[ORIGINAL] != found[INTERVENTION] for found in passed.values())
    return {"fail_to_pass": by_tests, "regression_only": len(passed) - by_tests, "tasks": len(tasks)}


def _seconds(value: float | None) -> float | None:
    """To the microsecond: the order in which rows are added up shows in no document."""
    return None if value is None else round(value, 6)


def _levels(version: PlanVersion) -> dict[int | None, list[dict[str, Any]]]:
    """Level of isolation of every executed trial by scope."""
    found: dict[int | None, list[dict[str, Any]]] = {}
    rows = Trial.objects.filter(trial_set__plan_version=version).exclude(kind=ORIGINAL)
    for arm, level in rows.order_by("pk").values_list("trial_set__run__arm_id", "level"):
        found.setdefault(arm, []).append(level)
    return found


def _took(cost: Cost, levels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Tokens, executions and seconds of a scope, with the back ends that executed."""
    backends = Counter(str(level.get("backend", "")) for level in levels)
    return {
        "tokens": cost.tokens,
        "trajectories": cost.trajectories,
        "executed": cost.trials,
        "complete": sum(item.complete.n for item in cost.kinds),
        "kinds": {item.kind: _rate(item.complete) for item in cost.kinds},
        "jobs": cost.jobs,
        "service": {
            "mean": _seconds(cost.service_mean), "p95": _seconds(cost.tail), "sum": _seconds(cost.service_sum),
            "includes": list(INCLUDES), "excludes": list(EXCLUDES),
        },
        "queue": {"mean": _seconds(cost.queue_mean), "sum": _seconds(cost.queue_sum)},
        "wall": _seconds(cost.wall),
        "retried": _rate(cost.retried),
        "backends": dict(sorted(backends.items())),
        "unisolated": sum(bool(level.get("unisolated")) for level in levels),
    }  # fmt: skip
