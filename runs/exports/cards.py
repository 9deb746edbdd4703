"""What a card or a comparison gives to each kind of file. Words of figures are English: papers are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from django.utils.translation import override

from runs.exports import latex, tables
from runs.exports.figures import Curve, Ribbon, Sheet
from runs.metrics import codec
from runs.metrics.codec import Points
from runs.metrics.draw import draw
from runs.metrics.read import SeriesInfo, axis_of, data_sha256, load
from runs.models import Run
from runs.presenters.layers.access import is_live, started_ms
from runs.presenters.layers.arms import LAST, Compared, Row
from runs.presenters.layers.cards import Card
from runs.presenters.layers.comparison import VERDICTS, drawn_lines, limit_of, thinned
from runs.presenters.layers.data import Window
from runs.presenters.layers.titles import title_of
from workbench.contracts.canonical import digest

PLOTTED, ALL = "plotted", "all"
TRIES = 3
AXIS_WORDS = {
    "step": "step", "trajectories": "trajectories", "tokens": "generated tokens", "wall": "seconds since start",
    "time": "milliseconds since 1970",
}  # fmt: skip


class Moving(RuntimeError):
    """The run stored more at every try; the file would not rest on one hash."""


@dataclass(frozen=True)
class Snapshot:
    """Points of series and the hash of the very bytes that they were read from."""

    points: Mapping[int, Points]
    sha256: str


def snapshot(run: Run, series: Sequence[SeriesInfo]) -> Snapshot:
    """Points that rest on one hash: read again where the run stored more meanwhile. Raises ``Moving``."""
    for _try in range(TRIES):
        before = data_sha256(run, series)
        points = load(run, series)
        if data_sha256(run, series) == before:
            return Snapshot(points, before)
    raise Moving(f"run {run.uid}: it stored points at each of {TRIES} tries, expected a moment of rest; ask again")


@dataclass(frozen=True)
class CardFile:
    """One card of one run, ready for every kind of file."""

    run: Run
    name: str
    card: Card
    window: Window
    found: Snapshot

    @property
    def title(self) -> str:
        """Title for papers: English, with the name as received where a trainer gave one."""
        with override("en"):
            return str(title_of(self.card.name)) if self.card.definition is not None else self.card.name

    @property
    def series(self) -> list[tuple[SeriesInfo, str]]:
        """Every series with its label; bounds of an interval stand behind their line."""
        found = []
        for line in self.card.lines:
            found.append((line.series, line.label))
            for bound, word in ((line.low, "low"), (line.high, "high")):
                if bound is not None:
                    found.append((bound, f"{line.label}, {word}" if line.label else word))
        return found

    def drawn(self) -> list[tuple[SeriesInfo, str, Any, Any]]:
        """(series, label, axis, what is drawn) of each line; axis and drawn None where it lacks the axis."""
        rows: list[tuple[SeriesInfo, str, Any, Any]] = []
        for item, label in self.series:
            points = self.found.points[item.pk]
            x = axis_of(points, self.window.axis, started_ms(self.run))
            if x is None or (x.dtype.kind == "f" and bool(np.isnan(x).any())):
                rows.append((item, label, None, None))
                continue
            shown = draw(points, x, start=self.window.start, stop=self.window.stop, limit=self.window.limit)
            rows.append((item, label, x, shown))
        return rows

    def batches(self, points: str) -> Iterator[pa.RecordBatch]:
        """Rows of the table: what is plotted, or every stored point."""
        kept: dict[int, Any] = {}
        if points == PLOTTED:
            for item, _label, _x, shown in self.drawn():
                none = np.zeros(0, np.int64)
                kept[item.pk] = none if shown is None else np.sort(np.concatenate((shown.finite, shown.marks)))
        return tables.point_batches(self.name, self.series, self.found.points, kept)

    def sheet(self) -> Sheet:
        """The figure."""
        curves, shown_sum, stored, samplers = [], 0, 0, set()
        for place, (item, label, x, shown) in enumerate(self.drawn()):
            points = self.found.points[item.pk]
            stored += len(points) if shown is None else shown.stored
            if shown is None:
                continue
            odd = [
                (float(x[i]), codec.NONFINITE[int(points.flag[i])])
                for i in shown.marks if points.flag[i] != codec.ABSENT
            ]  # fmt: skip
            curves.append(
                Curve(label or self.title, place + 1, place, x[shown.finite].tolist(),
                      points.value[shown.finite].tolist(), odd)
            )  # fmt: skip
            shown_sum += shown.shown
            samplers.add(shown.sampler)
        with override("en"):
            unit = str(self.card.unit)
        note = f"{self.name}, {shown_sum} of {stored} points shown, {' and '.join(sorted(samplers)) or 'none'}"
        return Sheet(self.title, unit, AXIS_WORDS[self.window.axis], curves, (), note, self.found.sha256)

    def table(self) -> latex.Table:
        """First, last, lowest and highest value of each line; the last one is pending while the run goes on."""
        live, rows = is_live(self.run), []
        for item, label in self.series:
            points = self.found.points[item.pk]
            values = points.value[points.flag == codec.FINITE]
            odd = int(((points.flag != codec.FINITE) & (points.flag != codec.ABSENT)).sum())
            ends = (values[0], values[-1], values.min(), values.max()) if len(values) else (None,) * 4
            first, last, low, high = (None if value is None else float(value) for value in ends)
            rows.append(
                [
                    latex.escaped(label or self.name) + _mark(self.run), f"${len(values)}$", f"${odd}$",
                    latex.cell(first), latex.cell(last, pending=live), latex.cell(low, pending=live),
                    latex.cell(high, pending=live),
                ]
            )  # fmt: skip
        columns = ["line", "finite", "not finite", "first", "last", "lowest", "highest"]
        return latex.Table(
            f"{latex.escaped(self.title)}, {latex.escaped(self.name)}", columns, [False] + [True] * 6, rows,
            [f"data sha256 {self.found.sha256}", f"metric {self.card.name}, run {self.run.uid}"],
        )  # fmt: skip


def _mark(run: Run) -> str:
    return "" if run.origin == Run.NATIVE else latex.EXPLORATORY


def compared_sha256(found: Compared) -> str:
    """Digest over the hash of each member's data, in the order of the runs."""
    return digest([data_sha256(member.run, member.series) for member in found.quantity.members])


@dataclass(frozen=True)
class ComparedFile:
    """One quantity over several runs, ready for every kind of file."""

    found: Compared
    axis: str
    sha256: str

    @property
    def title(self) -> str:
        """Title for papers."""
        with override("en"):
            label = f" ({self.found.quantity.label})" if self.found.quantity.label else ""
            return f"{self.found.quantity.title}{label}"

    def _curves(self) -> list[tuple[Any, Any]]:
        lines = drawn_lines(self.found.lines)
        return [(line, thinned(line, limit_of(len(lines)))[0]) for line in lines]

    def batches(self, points: str) -> Iterator[pa.RecordBatch]:
        """Rows: each run's values, then mean and sd of each arm. ``all``: one value of every run at every step."""
        if points == PLOTTED:
            chosen = self._curves()
        else:
            chosen = [(line, np.arange(len(line.step))) for line in self.found.lines]
        for line, kept in chosen:
            yield self._run_rows(line, kept)
        for band in self.found.bands:
            n = len(band.step)
            texts = [["arm"] * n, [band.arm.label] * n, [None] * n, [None] * n, [self.found.quantity.name] * n]
            yield pa.record_batch(
                [*(pa.array(text, pa.string()) for text in texts), pa.array(band.step), pa.array(band.x),
                 pa.array(band.mean), pa.array(band.sd), pa.array(band.n, pa.int64()),
                 pa.array(["finite"] * n, pa.string())],
                schema=tables.COMPARED,
            )  # fmt: skip

    def _run_rows(self, line: Any, kept: Any) -> pa.RecordBatch:
        places = [None] * len(kept) if line.x is None else line.x[kept].tolist()
        odd = list(line.odd)
        n, m = len(kept), len(odd)
        texts = ["run", line.arm.label, line.member.run.name, line.member.run.seed or None,
                 line.member.received or self.found.quantity.name]  # fmt: skip
        values = line.value[kept].tolist() + [float(word) for _x, word in odd]
        return pa.record_batch(
            [
                *(pa.array([text] * (n + m), pa.string()) for text in texts),
                pa.array(line.step[kept].tolist() + [None] * m, pa.int64()),
                pa.array(places + [x for x, _word in odd], pa.float64()), pa.array(values, pa.float64()),
                pa.nulls(n + m, pa.float64()), pa.nulls(n + m, pa.int64()),
                pa.array(["finite"] * n + [word for _x, word in odd], pa.string()),
            ],
            schema=tables.COMPARED,
        )  # fmt: skip

    def sheet(self) -> Sheet:
        """The figure: bands of arms, single runs thin within them."""
        banded = {band.arm.key for band in self.found.bands}
        curves, shown = [], 0
        for line, kept in self._curves():
            curves.append(
                Curve(line.label, line.arm.colour, line.dash, line.x[kept].tolist(), line.value[kept].tolist(),
                      line.odd, thin=line.arm.key in banded)
            )  # fmt: skip
            shown += len(kept)
        ribbons = [
            Ribbon(f"{band.arm.label}, mean ± sd of runs", band.arm.colour, band.x.tolist(), band.mean.tolist(),
                   band.sd.tolist()) for band in self.found.bands
        ]  # fmt: skip
        stored = sum(line.stored for line in self.found.lines)
        note = f"{len(curves)} of {len(self.found.lines)} lines, {shown} of {stored} points shown"
        unit = "" if self.found.quantity.unit in ("", "none") else self.found.quantity.unit
        return Sheet(self.title, unit, AXIS_WORDS[self.axis], curves, ribbons, note, self.sha256)

    def table(self) -> latex.Table:
        """Arms at the common end. Pending: no value yet, or a run of the arm goes on or has none."""
        rows = [self._row(row) for row in self.found.rows]
        end = "pending" if self.found.end is None else f"{self.found.end:g}"
        facts = [
            f"data sha256 {self.sha256}",
            f"mean of the last {LAST} values up to {AXIS_WORDS[self.axis]} {end}; sd of runs, divisor n - 1",
            "a difference below two pooled standard deviations is not distinguished, which asserts no equivalence",
        ]
        columns = ["arm", "runs", "mean, sd", "difference", "reading"]
        return latex.Table(latex.escaped(self.title), columns, [False, True, True, True, False], rows, facts)

    def _row(self, row: Row) -> list[str]:
        pending = row.live or row.n < row.of
        label = f"{row.arm.label}: {row.received}" if row.received else row.arm.label
        first = row.verdict == "reference"
        with override("en"):
            word = str(VERDICTS[row.verdict])
        return [
            latex.escaped(label) + _mark(row.arm.runs[0]), f"${row.n}/{row.of}$",
            latex.spread(row.mean, row.sd, pending=pending),
            r"\textendash" if first and not pending else latex.cell(row.difference, pending=pending),
            latex.PENDING if pending else latex.escaped(word),
        ]  # fmt: skip
