"""A chart as the page says it before a script runs: title, key, newest values, and whether there is a line at all."""

from __future__ import annotations

import json
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs.metrics import codec
from runs.metrics.codec import Points
from runs.metrics.read import SeriesInfo
from runs.presenters.layers.answers import number
from runs.presenters.layers.cards import TRAIN, Card
from runs.presenters.layers.titles import title_of, word_of
from runs.readings.signals import whole

RANKED = ("decision", "q")  # labels that are numbers on a scale: drawn from light to dark, not told apart by dashes


@dataclass(frozen=True)
class Key:
    """A line in words: ``mark`` how it is drawn, ``value`` its newest finite value ("" none), with its interval.

    ``part`` and ``split`` say the label in two, for a table of them.
    """

    uid: str
    label: str
    mark: str
    value: str
    low: str = ""
    high: str = ""
    part: str = ""
    split: str = ""


@dataclass(frozen=True)
class ChartView:
    """A card with what stands beside it.

    ``change``: of the only line since its first point, "0" for none; "" below two points, with several
    lines, or where an interval says more.
    ``single``: no line has two steps, so that the values say everything and nothing is plotted.
    ``stored`` None: the points were not counted.
    """

    card: Card
    title: str | Promise
    keys: tuple[Key, ...]
    change: str
    single: bool
    stored: int | None

    @property
    def uids(self) -> str:
        """Series of the card, comma-separated, bounds included."""
        return ",".join(item.uid for item in self.card.series)

    @property
    def lines(self) -> str:
        """JSON: uid, label, bounds' uids and place on a scale of each line."""
        return json.dumps(
            [
                {
                    "uid": line.series.uid,
                    "label": line.label,
                    "low": line.low.uid if line.low is not None else "",
                    "high": line.high.uid if line.high is not None else "",
                    "rank": _rank(line.series),
                }
                for line in self.card.lines
            ]
        )

    @property
    def is_alone(self) -> bool:
        """Whether the card has one line without a name of its own."""
        return len(self.card.lines) == 1 and not self.card.lines[0].label

    @property
    def columns(self) -> list[str]:
        """Splits of a single card, as columns; empty where it has one, and a list says it."""
        found = list(dict.fromkeys(key.split for key in self.keys))
        return found if self.single and len(found) > 1 else []

    @property
    def rows(self) -> list[tuple[str, list[Key | None]]]:
        """Values of a single card by part and split; None where a split has no such line."""
        at = {(key.part, key.split): key for key in self.keys}
        parts = dict.fromkeys(key.part for key in self.keys)
        return [(part, [at.get((part, split)) for split in self.columns]) for part in parts]

    @property
    def phase_word(self) -> str | Promise:
        """The phase, where it is neither training nor the probe, which all of L6 is."""
        return "" if self.card.phase in ("", TRAIN, "probe") else word_of(self.card.phase)

    @property
    def step_word(self) -> str | Promise:
        """What its steps count: updates in training, checkpoints' policy versions elsewhere."""
        return _("step") if self.card.phase in ("", TRAIN) else _("policy version")


def _rank(series: SeriesInfo) -> float | None:
    return next((float(series.labels[key]) for key in RANKED if key in series.labels), None)


def _finite(points: Points | None) -> list[float]:
    if points is None:
        return []
    found: list[float] = points.value[whole(points) & (points.flag == codec.FINITE)].tolist()
    return found


def _end(points: dict[int, Points], series: SeriesInfo | None) -> str:
    values = [] if series is None else _finite(points.get(series.pk))
    return number(values[-1]) if values else ""


def _mark(place: int, rank: float | None, count: int) -> str:
    """Class of a key's swatch: colour and dash by place, or one of five shades for a place on a scale."""
    if rank is None:
        return f"k{place % 6 + 1}"
    return f"o{round(4 * place / (count - 1)) + 1 if count > 1 else 5}"


def _keys(card: Card, points: dict[int, Points], latest: dict[int, float]) -> tuple[Key, ...]:
    found = []
    for place, line in enumerate(card.lines):
        series, mark = line.series, _mark(place, _rank(line.series), len(card.lines))
        value = number(latest[series.pk]) if series.pk in latest else _end(points, series)
        low, high, split = _end(points, line.low), _end(points, line.high), str(word_of(series.split))
        found.append(Key(series.uid, line.label, mark, value, low, high, line.part, split))
    return tuple(found)


def _change(card: Card, points: dict[int, Points]) -> str:
    values = _finite(points.get(card.lines[0].series.pk))
    if len(card.lines) > 1 or card.lines[0].low is not None or len(values) < 2:
        return ""
    change = values[-1] - values[0]
    return f"+{number(change)}" if change > 0 else number(change)


def chart_view(card: Card, points: dict[int, Points], latest: dict[int, float]) -> ChartView:
    """The card with its newest values: from ``points`` where they were read, else from ``latest`` by series."""
    title = title_of(card.name) if card.definition is not None else card.name
    if card.over:
        title = _("%(title)s, %(over)s") % {"title": title, "over": word_of(card.over)}
    found = [points[line.series.pk] for line in card.lines if line.series.pk in points]
    single = bool(found) and all(len(set(item.step.tolist())) <= 1 for item in found)
    stored = sum(len(item) for item in found) if found else None
    return ChartView(card, title, _keys(card, points, latest), _change(card, points), single, stored)
