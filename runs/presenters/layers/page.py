"""What the layer page of a run shows: sections, charts, distributions, readings, and what was not recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from runs.metrics.read import SeriesInfo, load, series_of
from runs.models import MetricLatest, Run
from runs.presenters.layers.answers import Answer, answers_of, number
from runs.presenters.layers.cards import LAYERS, PHASES, TRAIN, UNMAPPED, Card, cards_of
from runs.presenters.layers.charts import ChartView, chart_view
from runs.presenters.layers.heat import QUANTITIES, Heat, heat_of
from runs.presenters.layers.titles import title_of, word_of
from runs.readings.fire import Found, readings_of, shown, signals_from
from runs.readings.rules import FIRED, QUIET, UNMEASURED
from runs.readings.signals import Signals
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
HEAT_UNITS: dict[str, str | Promise] = {
    "reward": _("reward"), "advantage": _("advantage"), "length": _("tokens"), "staleness": _("versions"),
}  # fmt: skip
BY_PHASE = ("L1", "L2", "L3", "L4")  # layers measured in several phases, of which the reader chooses one


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
class HeatView:
    """A distribution over versions, and its numbers for the script as JSON."""

    title: str | Promise
    unit: str | Promise
    heat: Heat
    plain: str


@dataclass(frozen=True)
class Section:
    """One layer. ``charts`` answer its question, ``more`` are folded behind them; ``measured``: in any phase.

    ``absent``: titles of definitions of the layer without a single point, with ids.
    """

    key: str
    title: str | Promise
    measured: bool
    answer: Answer | None
    charts: tuple[ChartView, ...]
    more: tuple[ChartView, ...]
    heats: tuple[HeatView, ...]
    fired: tuple[ReadingView, ...]
    quiet: tuple[Found, ...]
    unmeasured: tuple[Found, ...]
    absent: tuple[tuple[str | Promise, str], ...]

    @property
    def short(self) -> str:
        """Number of the layer; empty for what is none."""
        return self.key if self.key in LAYERS else ""

    @property
    def warnings(self) -> int:
        """Warnings that fired and that nobody dismissed."""
        return sum(view.is_warning and not view.found.is_dismissed for view in self.fired)


def _heats(run: Run) -> dict[str, list[HeatView]]:
    found: dict[str, list[HeatView]] = {}
    for quantity in QUANTITIES:
        heat = heat_of(run, quantity)
        if heat.stored and len(heat.edges) > 2:  # one value alone is no distribution: the card says it
            plain = {"x": heat.steps, "edges": heat.edges, "z": heat.counts, "width": heat.width}
            plain["whole"] = quantity in ("length", "staleness")
            view = HeatView(HEAT_TITLES[quantity], HEAT_UNITS[quantity], heat, json.dumps(plain))
            found.setdefault(HEAT_LAYERS[quantity], []).append(view)
    return found


def evidence_view(found: Found) -> tuple[dict[str, Any], ...]:
    """The lines that a rule looked at, in words."""
    return tuple(
        {
            "title": title_of(item.definition.rpartition("/")[0]),
            "definition": item.definition,
            "labels": gettext(", ").join(str(word_of(value)) for value in item.labels.values()),
            "phase": "" if item.phase == TRAIN else word_of(item.phase),
            "trend": item.trend,
            "z": None if item.z is None else number(item.z),
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


def phases_of(series: Iterable[SeriesInfo]) -> list[str]:
    """Phases that the reader may choose between, training first."""
    there = {item.phase for item in series if item.phase and not item.definition.startswith(("l5.", "l6."))}
    return sorted(there, key=lambda phase: (PHASES.index(phase) if phase in PHASES else len(PHASES), phase))


def _latest(run: Run) -> dict[int, float]:
    """Newest finite values of logged series, which stand beside the points so that none need be read."""
    rows = MetricLatest.objects.filter(run=run, value__isnull=False)
    return {series: value for series, value in rows.values_list("series_id", "value") if value is not None}


def _section(
    key: str,
    cards: Sequence[Card],
    charts: Sequence[ChartView],
    answer: Answer | None,
    heats: Sequence[HeatView],
    readings: Sequence[Found],
    native: bool,
) -> Section:
    said = [item for item in readings if item.reading.layer == key]
    fired = [ReadingView(item, evidence_view(item)) for item in said if item.outcome.state == FIRED]
    fired.sort(key=lambda view: (not view.is_warning, view.found.is_dismissed))
    return Section(
        key,
        SECTION_TITLES[key],
        bool(cards),
        answer,
        tuple(view for view in charts if view.card.is_first),
        tuple(view for view in charts if not view.card.is_first),
        tuple(heats),
        tuple(fired),
        tuple(item for item in said if item.outcome.state == QUIET),
        tuple(item for item in said if item.outcome.state == UNMEASURED),
        _absent(key, cards) if native and key in LAYERS else (),
    )


def build_sections(run: Run, phase: str = TRAIN) -> list[Section]:
    """The page's sections: of a native run the six layers always, others where something was logged under them.

    Native L1 to L4 show one ``phase``; L5 is of evaluations and L6 of probes whatever the phase.
    """
    native = run.origin == Run.NATIVE
    series = series_of(run)
    points = load(run, series) if native else {}
    latest = {} if native else _latest(run)
    signals = signals_from(run, series, points) if native else Signals(())
    answers, heats = answers_of(signals), _heats(run)
    readings = readings_of(run, signals=signals) if native else []
    cards = cards_of(run, series)
    found = []
    for key in (*LAYERS, SYSTEM, UNMAPPED):
        mine = cards.get(key, [])
        if not mine and not heats.get(key) and not (native and key in LAYERS):
            continue
        chosen = [card for card in mine if not (native and key in BY_PHASE) or card.phase == phase]
        charts = [chart_view(card, points, latest) for card in chosen]
        beside = heats.get(key, []) if phase == TRAIN or not native else []
        found.append(_section(key, mine, charts, answers.get(key), beside, readings, native))
    return found


def headline(sections: Sequence[Section]) -> str:
    """The page's first sentence: how many layers were measured and which warnings fired."""
    measured = [section for section in sections if section.key in LAYERS and section.measured]
    warnings = [
        view for section in sections for view in section.fired if view.is_warning and not view.found.is_dismissed
    ]
    text = gettext("%(n)d of 6 layers measured") % {"n": len(measured)}
    if not measured:
        return gettext("Nothing measured yet")
    if not warnings:
        return gettext("%(text)s, no warning fired") % {"text": text}
    titles = gettext(", ").join(str(view.found.reading.title) for view in warnings[:3])
    more = len(warnings) - 3
    if more > 0:
        titles = gettext("%(titles)s and %(n)d more") % {"titles": titles, "n": more}
    return gettext("%(text)s; may be wrong: %(titles)s") % {"text": text, "titles": titles}
