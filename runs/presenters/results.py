"""Results of a plan: outcomes by condition as n of N, paired tasks, stored intervals, what may be said."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.actions.plans import plan_body
from runs.models import Document, EvaluationItem, Execution, PlanVersion
from runs.parsed import Parsed
from runs.presenters.evaluation import CellView, cells_of, planned_items
from runs.presenters.terms import term
from runs.templatetags.ui import format_number
from workbench.contracts.canonical import decode_float

PARENT = "parent"
SENTENCES: dict[str, Any] = {
    "pending": gettext_lazy("Nothing yet: not measured."),
    "improvement": gettext_lazy("An improvement on this frozen sample, in the registered direction."),
    "equivalence": gettext_lazy("Equivalent within the registered region, on this frozen sample."),
    "non_inferiority": gettext_lazy("Not inferior by more than the registered margin, on this frozen sample."),
    "not_distinguished": gettext_lazy("Not distinguished from seed noise. This asserts no equivalence."),
    "observed_on_this_frozen_sample": gettext_lazy("The counts, as observed on this frozen sample."),
    "no_regression_observed": gettext_lazy("No seed ran against the registered direction."),
    "no_effect": gettext_lazy("That there is no effect."),
    "holds_over_training_seeds": gettext_lazy("That it holds over training seeds."),
    "holds_beyond_these_tasks": gettext_lazy("That it holds beyond these tasks."),
    "general_ability": gettext_lazy("Anything about general ability."),
    "production_robustness": gettext_lazy("Anything about robustness in production."),
    "safety": gettext_lazy("Anything about safety."),
}
VERDICTS: dict[str, Any] = {
    "improvement": gettext_lazy("improvement"),
    "equivalence": gettext_lazy("equivalence"),
    "non_inferiority": gettext_lazy("non-inferiority"),
    "not_distinguished": gettext_lazy("not distinguished"),
    "observed_on_this_frozen_sample": gettext_lazy("observed on this frozen sample"),
    "pending": gettext_lazy("pending"),
}
METRICS: list[tuple[str, Any]] = [
    ("reward", gettext_lazy("reward")),
    ("success", gettext_lazy("success")),
    ("recovery_all", gettext_lazy("recovery")),
]
DOT_WIDTH, ROW = 420.0, 16.0


@dataclass(frozen=True)
class ArmColumn:
    """One column of the outcome tables: an arm's final policies, or the parent."""

    key: str
    title: Any
    seeds: list[str]
    planned_seeds: int
    cells: dict[tuple[str, str], CellView]


@dataclass(frozen=True)
class TaskRow:
    """One paired task: per-arm means over seeds and repeats. ``x`` in drawing units; ``y`` of its line."""

    task: str
    left: float
    right: float
    x1: float
    x2: float
    y: float
    pairs: int


@dataclass(frozen=True)
class PairedDots:
    """Paired tasks of one condition, split and metric, with the stored contrast where there is one."""

    condition: str
    split: str
    metric: str
    word: Any
    rows: list[TaskRow]
    better: int
    worse: int
    tied: int
    contrast: dict[str, Any] | None
    height: float


@dataclass(frozen=True)
class EndpointView:
    """A pre-registered endpoint with its verdict; pending where no aggregate is stored."""

    endpoint: dict[str, Any]
    arms: list[str]
    verdict: str
    word: Any
    reason: str | None
    contrast: dict[str, Any] | None
    may: list[Any] = field(default_factory=list)
    may_not: list[Any] = field(default_factory=list)
    opposite: bool | None = None

    @property
    def name(self) -> str:
        """Its id, with the arm where one endpoint covers several against the parent."""
        several = self.endpoint["compare"]["kind"] == "parent" and len(self.endpoint["compare"]["arms"]) > 1
        return f"{self.endpoint['id']} ({', '.join(self.arms)})" if several else str(self.endpoint["id"])


_AGGREGATES = Parsed("aggregate", most=4)


def stored_aggregate(execution: Execution | None) -> tuple[dict[str, Any] | None, Document | None]:
    """The aggregate that closing stored, with its document; (None, None) before that. Treat it as read-only.

    Megabytes of canonical text are read and parsed once for each hash, and their hash is checked then.
    """
    if execution is None:
        return None, None
    document = Document.objects.filter(kind="aggregate", subject_uid=execution.uid).defer("bytes").first()
    if document is None:
        return None, None
    return _AGGREGATES.get(document.sha256, lambda: bytes(document.bytes)), document


def arm_columns(version: PlanVersion) -> list[ArmColumn]:
    """The parent and every arm, each over all its seeds' evaluated checkpoints. One query per column."""
    planned, items = planned_items(version), EvaluationItem.objects.filter(plan_version=version)
    seeds: dict[str, set[str]] = {}
    for key, seed in items.filter(run__isnull=False).values_list("run__arm__key", "run__seed").distinct():
        seeds.setdefault(key, set()).add(seed)
    columns = [
        ArmColumn(PARENT, gettext_lazy("parent"), [], 0, _by_place(cells_of(items.filter(run__isnull=True), planned)))
    ]
    for arm in version.arms.order_by("position"):
        scaled = {place: n * max(1, len(arm.seeds)) for place, n in planned.items()}
        cells = cells_of(items.filter(run__arm=arm), scaled)
        columns.append(
            ArmColumn(
                arm.key,
                {"en": arm.title_en, "zh": arm.title_zh},
                sorted(seeds.get(arm.key, ())),
                len(arm.seeds),
                _by_place(cells),
            )
        )
    return columns


def _by_place(cells: list[CellView]) -> dict[tuple[str, str], CellView]:
    return {(cell.condition, cell.split): cell for cell in cells}


def _value(metric: str, row: Mapping[str, Any]) -> float | None:
    if row["trajectory__status"] != "valid":
        return None
    raw = (
        row["trajectory__reward_total"]
        if metric == "reward"
        else row["trajectory__success"]
        if metric == "success"
        else bool(row["trajectory__recovered"])
    )
    return None if raw is None else float(raw)


def paired_dots(version: PlanVersion, arms: tuple[str, str], aggregate: dict[str, Any] | None) -> list[PairedDots]:
    """Paired tasks of two arms by condition, split and metric, registered metrics first.

    Pairs match on seed, task and repeat.
    """
    rows = list(
        EvaluationItem.objects.filter(plan_version=version, run__arm__key__in=arms).values(
            "condition",
            "split",
            "repeat",
            "task__key",
            "run__arm__key",
            "run__seed",
            "trajectory__status",
            "trajectory__reward_total",
            "trajectory__success",
            "trajectory__recovered",
        )
    )
    here_are = {(row["condition"], row["split"]) for row in rows}
    registered = {
        (e["condition"], e["split"], e["metric"])
        for e in plan_body(version)["plan"]["endpoints"]
        if tuple(e["compare"]["arms"]) == arms
    }
    found = []
    for place in [place for place in planned_items(version) if place in here_are]:
        here = [row for row in rows if (row["condition"], row["split"]) == place]
        for metric, word in METRICS:
            if metric == "recovery_all" and place[0] != "stress":
                continue
            tasks = _paired_tasks(here, arms, metric)
            if tasks:
                found.append(_dots(place, metric, word, tasks, _contrast(aggregate, arms, place, metric)))
    return sorted(found, key=lambda d: (d.condition, d.split, d.metric) not in registered)


def _paired_tasks(
    rows: Iterable[Mapping[str, Any]], arms: tuple[str, str], metric: str
) -> dict[str, list[tuple[float, float]]]:
    slots: dict[tuple[str, str, int], dict[str, float]] = {}
    for row in rows:
        value = _value(metric, row)
        if value is not None:
            slots.setdefault((row["task__key"], row["run__seed"], row["repeat"]), {})[row["run__arm__key"]] = value
    tasks: dict[str, list[tuple[float, float]]] = {}
    for (task, _seed, _repeat), sides in sorted(slots.items()):
        if len(sides) == 2:
            tasks.setdefault(task, []).append((sides[arms[0]], sides[arms[1]]))
    return tasks


def _dots(
    place: tuple[str, str],
    metric: str,
    word: Any,
    tasks: dict[str, list[tuple[float, float]]],
    contrast: dict[str, Any] | None,
) -> PairedDots:
    means = [
        (task, statistics.fmean(a for a, _ in pairs), statistics.fmean(b for _, b in pairs), len(pairs))
        for task, pairs in tasks.items()
    ]
    means.sort(key=lambda item: (item[2] - item[1], item[0]), reverse=True)
    rows = [
        TaskRow(task, a, b, round(a * DOT_WIDTH, 1), round(b * DOT_WIDTH, 1), round(ROW * (i + 0.5), 1), n)
        for i, (task, a, b, n) in enumerate(means)
    ]
    better, worse = sum(r.right > r.left for r in rows), sum(r.right < r.left for r in rows)
    return PairedDots(*place, metric, word, rows, better, worse, len(rows) - better - worse, contrast, ROW * len(rows))


def _contrast(
    aggregate: dict[str, Any] | None, arms: tuple[str, str], place: tuple[str, str], metric: str
) -> dict[str, Any] | None:
    if aggregate is None:
        return None
    for item in aggregate["comparisons"]["strict_pairs"]:
        if tuple(item["arms"]) == arms and item["metric"] == metric and (item["condition"], item["split"]) == place:
            return _plain(item["over_seeds"])
    return None


def _plain(over: dict[str, Any] | None) -> dict[str, Any] | None:
    """Numbers of ``over_seeds`` that a template can format."""
    if over is None:
        return None
    interval, spread = over["interval"], over["spread"]
    return {
        "difference": decode_float(over["task_difference"]["value"]),
        "low": decode_float(interval["low"]),
        "high": decode_float(interval["high"]),
        "level": interval["level"],
        "tasks": interval["tasks"],
        "note": interval["note"],
        "seeds": over["seeds"]["numerator"],
        "sd": decode_float(spread.get("sd")) if isinstance(spread, dict) else None,
        "distinguished": over["distinguished"],
    }


def endpoint_views(document: dict[str, Any], aggregate: dict[str, Any] | None) -> list[EndpointView]:
    """Every registered endpoint; before closure each is pending, with what fills it."""
    if aggregate is None:
        why = _("the aggregate is computed when the execution closes")
        return [
            EndpointView(
                e,
                e["compare"]["arms"],
                "pending",
                VERDICTS["pending"],
                why,
                None,
                [SENTENCES["pending"]],
                [v for k, v in SENTENCES.items() if k != "pending"],
            )
            for e in document["endpoints"]
        ]
    found = []
    for item in aggregate["endpoints"]:
        for result in item["results"]:
            contrast = _plain(result["contrast"]["over_seeds"]) if result["contrast"] else None
            found.append(
                EndpointView(
                    item["endpoint"],
                    result["arms"],
                    result["verdict"],
                    VERDICTS.get(result["verdict"], result["verdict"]),
                    result["reason"],
                    contrast,
                    [SENTENCES.get(name, name) for name in result["may_say"]],
                    [SENTENCES.get(name, name) for name in result["may_not_say"]],
                    result["opposite_direction"],
                )
            )
    return found


@dataclass(frozen=True)
class Sayings:
    """``may``: sentences with the endpoints that allow them; ``may_not``: sentences that no endpoint allows."""

    may: list[tuple[str, list[str]]]
    may_not: list[str]


def sayings(endpoints: list[EndpointView]) -> Sayings:
    """What may be said over all endpoints, each sentence once."""
    may: dict[str, list[str]] = {}
    may_not: dict[str, None] = {}
    for endpoint in endpoints:
        for text in endpoint.may:
            may.setdefault(str(text), []).append(endpoint.name)
        may_not.update(dict.fromkeys(str(text) for text in endpoint.may_not))
    return Sayings(list(may.items()), [text for text in may_not if text not in may])


def headline(endpoints: list[EndpointView], columns: list[ArmColumn]) -> str:
    """The sentence that opens the page: never stronger than the stored verdicts, and never silent on one against."""
    settled = [e for e in endpoints if e.verdict != "pending"]
    evaluated = sum(bool(column.seeds) for column in columns)
    if not settled:
        if evaluated:
            return _("Pending: %(n)d of %(of)d arms have evaluation items; no comparison is stored yet.") % {
                "n": evaluated,
                "of": len(columns) - 1,
            }
        return _("Pending: no arm has been evaluated yet.")
    shown = settled[:2] + [endpoint for endpoint in settled[2:] if endpoint.opposite]
    return " ".join(_finding(endpoint) for endpoint in shown)


def _finding(view: EndpointView) -> str:
    """One settled endpoint in a sentence: what, how much, how sure, which word."""
    contrast = view.contrast or {}
    pair = view.endpoint["compare"]["kind"] == "pair"
    parts = {
        "metric": term(view.endpoint["metric"]),
        "condition": view.endpoint["condition"].upper(),
        "a": view.arms[0] if pair else _("the parent"),
        "b": view.arms[1] if pair else view.arms[0],
        "difference": format_number(contrast.get("difference"), 3, signed=True),
        "low": format_number(contrast.get("low"), 3, signed=True),
        "high": format_number(contrast.get("high"), 3, signed=True),
        "word": view.word,
    }
    if view.opposite:
        parts["direction"] = term(view.endpoint["direction"])
        return (
            _(
                "%(b)s against %(a)s, %(metric)s under %(condition)s: %(difference)s [%(low)s, %(high)s], the interval "
                "lies against the registered direction (%(direction)s); %(word)s."
            )
            % parts
        )
    return (
        _("%(b)s against %(a)s, %(metric)s under %(condition)s: %(difference)s [%(low)s, %(high)s], %(word)s.") % parts
    )
