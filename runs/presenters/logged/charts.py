"""The few charts that stand on the page of a logged run: the main ones of what was written last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runs.metrics.read import series_of
from runs.models import MetricLatest, Run
from runs.presenters.layers.cards import FIRST, LAYERS, cards_of
from runs.presenters.layers.charts import ChartView, chart_view
from workbench.importers.mapping import map_name

MOST = 8  # charts on the page; two rows on a desk
RECENT = 0.1  # of the time over which the run wrote: a name that was silent for longer stands behind
ORDER = ("L3", "L1", "L2", "L5", "L4", "L6")  # reward first: what a researcher looks at when opening a run


@dataclass(frozen=True)
class MainCharts:
    """``charts`` of ``total`` names that have a point."""

    charts: tuple[ChartView, ...]
    total: int


def _importance(framework: str, name: str) -> tuple[int, int, int]:
    """Place of a name: (its layer, whether it is one of ours, whether it is among the layer's first); low is first."""
    mapping = map_name(framework, name) if framework else None
    if mapping is None or mapping.layer not in LAYERS:
        return (len(ORDER), 0, 0)
    nearest = mapping.nearest.rpartition("/")[0]
    first = FIRST[mapping.layer]
    return (ORDER.index(mapping.layer), 0 if nearest else 1, first.index(nearest) if nearest in first else len(first))


def main_names(framework: str, newest: Mapping[str, int], most: int = MOST) -> list[str]:
    """At most ``most`` of the names, by the time (ms since 1970) of each one's newest point.

    Those written within the last tenth of the time that the run has been writing come before those that
    fell silent; among them one of each layer in turn, reward and stability first, then names that no table
    maps, in order of names. So the same points always choose the same charts, and a batch that writes its
    names in another order changes nothing.
    """
    if not newest:
        return []
    last, begin = max(newest.values()), min(newest.values())
    silent = last - max(RECENT * (last - begin), 60_000)
    found: list[str] = []
    for rows in ([n for n in newest if newest[n] >= silent], [n for n in newest if newest[n] < silent]):
        found += _in_turn(framework, rows)
    return found[:most]


def _in_turn(framework: str, names: Iterable[str]) -> list[str]:
    """Names of the layers in turn, the most important of each first; unmapped ones behind all of them."""
    queues: dict[int, list[tuple[tuple[int, int, int], str]]] = {}
    for name in names:
        place = _importance(framework, name)
        queues.setdefault(place[0], []).append((place, name))
    unmapped = sorted(queues.pop(len(ORDER), []))
    ranked = [(turn, item[0][0], item[1]) for queue in queues.values() for turn, item in enumerate(sorted(queue))]
    return [name for _, _, name in sorted(ranked)] + [name for _, name in unmapped]


def main_charts(run: Run) -> MainCharts:
    """Charts of a logged run with their newest values. Two queries; no point is read."""
    rows = list(MetricLatest.objects.filter(run=run).values_list("series_id", "name", "time_ms", "value"))
    newest: dict[str, int] = {}
    for _, name, time_ms, _ in rows:
        newest[name] = max(time_ms, newest.get(name, time_ms))
    names = main_names(run.tracked.framework, newest)
    latest = {series: value for series, _, _, value in rows if value is not None}
    cards = [card for group in cards_of(run, series_of(run, names=names)).values() for card in group]
    cards.sort(key=lambda card: names.index(card.name))
    return MainCharts(tuple(chart_view(card, {}, latest) for card in cards), len(newest))
