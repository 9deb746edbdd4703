"""Readings of a run: every rule of the table on the run's own series, with what people said of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.actions.plans import plan_body
from runs.metrics.codec import Points
from runs.metrics.read import SeriesInfo, load, series_of
from runs.models import ReadingVerdict, Run
from runs.readings.rules import FIRED, Outcome
from runs.readings.signals import Signals, line_of
from runs.readings.table import READINGS, Reading
from workbench.contracts.canonical import digest


@dataclass(frozen=True)
class Found:
    """A reading with its outcome. ``fired_sha256`` digests rule, steps and evidence.

    ``verdict`` was given on exactly that; ``earlier`` on another firing of the rule. None: nobody said anything.
    """

    reading: Reading
    outcome: Outcome
    fired_sha256: str
    verdict: ReadingVerdict | None
    earlier: ReadingVerdict | None

    @property
    def is_dismissed(self) -> bool:
        """Whether somebody dismissed exactly this firing."""
        return self.verdict is not None and self.verdict.verdict == ReadingVerdict.DISMISSED

    @property
    def statement(self) -> str:
        """The sentence with its numbers; empty where the rule did not fire."""
        if self.outcome.state != FIRED:
            return ""
        return stated(self.reading, self.outcome.facts)


def stated(reading: Reading, facts: Mapping[str, Any]) -> str:
    """A reading's sentence with these facts."""
    return str(reading.statement).format(**{name: Fact(value) for name, value in facts.items()})


@dataclass(frozen=True)
class Fact:
    """A number of a statement: four digits where its place says nothing, else as it says, ``{share:.0%}`` a share."""

    value: Any

    def __format__(self, spec: str) -> str:
        if not spec or self.value is None or not math.isfinite(self.value):
            return shown(self.value)
        return format(self.value, spec).replace("%", " %")


def shown(value: Any) -> str:
    """A fact as text: four significant digits, whole numbers as they are, an em dash for None."""
    if value is None:
        return "—"
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else str(value)
    return str(value)


def signals_from(run: Run, series: Sequence[SeriesInfo], points: Mapping[int, Points]) -> Signals:
    """The lines that rules read of a run's series, whose points are at hand."""
    lines = [
        line_of(item.definition, item.phase, item.split, item.labels, points[item.pk])
        for item in series
        if not item.is_logged and item.pk in points
    ]
    if run.plan_version is None:
        return Signals(lines)
    rollout = plan_body(run.plan_version)["plan"]["rollout"]
    return Signals(lines, budget=rollout["max_decisions"], group_size=rollout["group_size"])


def signals_of(run: Run) -> Signals:
    """The lines that rules read of a native run; nothing of a logged run, whose names mean what their trainer says."""
    series = [item for item in series_of(run) if not item.is_logged]
    return signals_from(run, series, load(run, series))


def fired_sha256(reading: Reading, outcome: Outcome) -> str:
    """Digest of what a verdict is about."""
    evidence = [
        [item.definition, item.phase, item.split, item.labels, [list(point) for point in item.points]]
        for item in outcome.evidence
    ]
    steps = None if outcome.steps is None else list(outcome.steps)
    return digest({"rule": reading.id, "steps": steps, "evidence": evidence})


def readings_of(run: Run, *, signals: Signals | None = None, readings: Sequence[Reading] = READINGS) -> list[Found]:
    """Every rule of the table in its order, fired or not."""
    signals = signals_of(run) if signals is None else signals
    said: dict[str, list[ReadingVerdict]] = {}
    for row in ReadingVerdict.objects.filter(run=run).select_related("actor").order_by("-id"):
        said.setdefault(row.rule, []).append(row)
    found = []
    for reading in readings:
        outcome = reading.rule(signals, reading.thresholds)
        sha256 = fired_sha256(reading, outcome)
        newest = next(iter(said.get(reading.id, [])), None)
        mine = next((row for row in said.get(reading.id, []) if row.fired_sha256 == sha256), None)
        found.append(Found(reading, outcome, sha256, mine, newest if newest is not None and mine is None else None))
    return found
