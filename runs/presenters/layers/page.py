"""What the layer page of a run shows: sections, charts, distributions, readings, and what was not recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as now
from django.utils.translation import gettext_lazy as _

from runs.actions.plans import plan_body
from runs.metrics import codec
from runs.metrics.codec import Points
from runs.metrics.read import SeriesInfo, load, series_of
from runs.models import Run
from runs.presenters.layers.answers import Answer, answers_of
from runs.presenters.layers.cards import LAYERS, UNMAPPED, Card, cards_of
from runs.presenters.layers.heat import QUANTITIES, Heat, heat_of
from runs.presenters.layers.titles import title_of
from runs.readings.fire import Found, readings_of, shown
from runs.readings.rules import FIRED, QUIET, UNMEASURED
from runs.readings.signals import Signals, line_of
from workbench.contracts.metrics import METRIC_DEFINITIONS

SYSTEM = "system"
SECTION_TITLES: dict[str, str | Promise] = {
    "L1": _("Stability"),
    "L2": _("Behaviour"),
    "L3": _("Signal"),
    "L4": _("Exploration"),
    "L5": _("Generalisation"),
    "L6": _("Reasoning"),
    SYSTEM: _("Throughput and counters"),
    UNMAPPED: _("Unmapped names"),
}
HEAT_TITLES: dict[str, str | Promise] = {
    "reward": _("Reward of trajectories"),
    "advantage": _("Advantage of trajectories"),
    "length": _("Policy tokens of trajectories"),
    "staleness": _("Age of trained trajectories"),
}
HEAT_LAYERS = {"reward": "L3", "advantage": "L3", "length": "L2", "staleness": "L1"}
EAGER = 400  # series whose points the page reads to say last values; beyond it the charts alone say them


@dataclass(frozen=True)
class ChartView:
    """A card with what stands beside it before a script runs. ``last`` None: nothing finite was recorded."""

    card: Card
    title: str | Promise
    last: float | None
    change: float | None
    stored: int | None

    @property
    def uids(self) -> str:
        """Series of the card, comma-separated."""
        return ",".join(line.series.uid for line in self.card.lines)

    @property
    def labels(self) -> str:
        """JSON list of the lines' labels, in the order of ``uids``."""
        return json.dumps([line.label for line in self.card.lines])


@dataclass(frozen=True)
class ReadingView:
    """A reading with the sentence that it says, and what its evidence is in words."""

    found: Found
    evidence: tuple[dict[str, Any], ...]

    @property
    def is_warning(self) -> bool:
        """Whether it speaks of something that may be wrong."""
        return self.found.reading.kind == "warning"


@dataclass(frozen=True)
class Section:
    """One layer. ``absent``: titles of definitions of the layer without a single point, with ids."""

    key: str
    title: str | Promise
    answer: Answer | None
    charts: tuple[ChartView, ...]
    heats: tuple[tuple[str | Promise, Heat, str], ...]
    fired: tuple[ReadingView, ...]
    quiet: tuple[Found, ...]
    unmeasured: tuple[Found, ...]
    absent: tuple[tuple[str | Promise, str], ...]


def _chart(card: Card, points: dict[int, Points]) -> ChartView:
    title = title_of(card.name) if card.definition is not None else card.name
    lines = [points[line.series.pk] for line in card.lines if line.series.pk in points]
    if not lines:
        return ChartView(card, title, None, None, None)
    first = next((line for line in lines if (line.flag == codec.FINITE).any()), None)
    stored = sum(len(line) for line in lines)
    if first is None:
        return ChartView(card, title, None, None, stored)
    values = first.value[first.flag == codec.FINITE]
    change = float(values[-1] - values[0]) if len(values) > 1 else None
    return ChartView(card, title, float(values[-1]), change, stored)


def _heats(run: Run) -> dict[str, list[tuple[str | Promise, Heat, str]]]:
    found: dict[str, list[tuple[str | Promise, Heat, str]]] = {}
    for quantity in QUANTITIES:
        heat = heat_of(run, quantity)
        if heat.stored:
            plain = {"x": heat.steps, "edges": heat.edges, "z": heat.counts, "width": heat.width}
            found.setdefault(HEAT_LAYERS[quantity], []).append((HEAT_TITLES[quantity], heat, json.dumps(plain)))
    return found


def _evidence(found: Found) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "title": title_of(item.definition.rpartition("/")[0]),
            "definition": item.definition,
            "labels": ", ".join(item.labels.values()),
            "phase": item.phase,
            "trend": item.trend,
            "z": None if item.z is None else shown(item.z),
            "points": [(step, shown(value), uid) for step, value, uid in item.points],
        }
        for item in found.outcome.evidence
    )


def _absent(layer: str, cards: Sequence[Card]) -> tuple[tuple[str | Promise, str], ...]:
    there = {card.definition.id for card in cards if card.definition is not None}
    return tuple(
        (title_of(item.name), item.id)
        for item in METRIC_DEFINITIONS.values()
        if item.layer == layer and item.id not in there
    )


def _signals(run: Run, series: Sequence[SeriesInfo], points: dict[int, Points]) -> Signals:
    lines = [
        line_of(item.definition, item.phase, item.split, item.labels, points[item.pk])
        for item in series
        if not item.is_logged
    ]
    budget = None
    if run.plan_version is not None:
        budget = plan_body(run.plan_version)["plan"]["rollout"]["max_decisions"]
    return Signals(lines, budget=budget)


def build_sections(run: Run) -> list[Section]:
    """The page's sections: the six layers always, others where something was logged under them."""
    series = series_of(run)
    cards = cards_of(run, series)
    points = load(run, series) if len(series) <= EAGER else {}
    native = run.origin == Run.NATIVE
    signals = _signals(run, series, points) if native and points else Signals(())
    answers, heats = answers_of(signals), _heats(run)
    readings = readings_of(run, signals=signals) if native else []
    found = []
    for key in (*LAYERS, SYSTEM, UNMAPPED):
        mine = cards.get(key, [])
        if key not in LAYERS and not mine:
            continue
        said = [item for item in readings if item.reading.layer == key]
        fired = tuple(ReadingView(item, _evidence(item)) for item in said if item.outcome.state == FIRED)
        found.append(
            Section(
                key,
                SECTION_TITLES[key],
                answers.get(key),
                tuple(_chart(card, points) for card in mine),
                tuple(heats.get(key, [])),
                fired,
                tuple(item for item in said if item.outcome.state == QUIET),
                tuple(item for item in said if item.outcome.state == UNMEASURED),
                _absent(key, mine) if native and key in LAYERS else (),
            )
        )
    return found


def headline(sections: Sequence[Section]) -> str:
    """The page's first sentence: how many layers were measured and which warnings fired."""
    measured = [section for section in sections if section.key in LAYERS and section.charts]
    warnings = [view for section in sections for view in section.fired if view.is_warning]
    text = now("%(n)d of 6 layers measured") % {"n": len(measured)}
    if not measured:
        return now("Nothing measured yet")
    if not warnings:
        return now("%(text)s, no warning fired") % {"text": text}
    titles = now(", ").join(str(view.found.reading.title) for view in warnings[:3])
    more = len(warnings) - 3
    if more > 0:
        titles = now("%(titles)s and %(n)d more") % {"titles": titles, "n": more}
    return now("%(text)s; may be wrong: %(titles)s") % {"text": text, "titles": titles}
