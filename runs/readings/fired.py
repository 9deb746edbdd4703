"""Warnings that fired on a run, kept in the cache until something more is stored: cheap enough for every page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.db.models import Max

from runs.metrics.read import load, series_of
from runs.models import MetricPoint, ReadingVerdict, Run
from runs.readings.fire import readings_of, signals_from, stated
from runs.readings.rules import FIRED
from runs.readings.table import BY_ID, READINGS, WARNING, Reading

# Definitions that rules read; a test holds every rule to it.
READ = tuple(
    f"{name}/1"
    for name in (
        "l1.clip_high_share", "l1.clip_low_share", "l1.grad_norm", "l2.entropy_sampled",
        "l2.infrastructure_invalid_share", "l2.productive_call_rate", "l2.repeat_call_rate", "l2.response_length",
        "l2.tool_calls_mean", "l2.tool_calls_variance", "l3.pass_gap", "l3.reward_mean", "l3.success_rate",
        "l3.zero_all_right_share", "l3.zero_all_wrong_share", "l4.action_edit_distance", "l5.reward_gap",
        "l6.action_unchanged", "l6.answer_unchanged",
    )
)  # fmt: skip
KEPT_SECONDS = 24 * 3600
WARNINGS = tuple(item for item in READINGS if item.kind == WARNING)


@dataclass(frozen=True)
class FiredWarning:
    """A warning that fired and that nobody dismissed. ``steps``: first and last; ``facts`` of its statement."""

    reading: Reading
    steps: tuple[int, int]
    facts: dict[str, Any]

    @property
    def statement(self) -> str:
        """The sentence with its numbers, in the reader's language."""
        return stated(self.reading, self.facts)


def _states(runs: Sequence[Run]) -> dict[int, str]:
    """What was stored last of each run: two queries however many runs there are."""
    points = MetricPoint.objects.filter(series__run__in=runs).values_list("series__run").annotate(last=Max("pk"))
    said = ReadingVerdict.objects.filter(run__in=runs).values_list("run").annotate(last=Max("pk"))
    newest, verdicts = dict(points.order_by()), dict(said.order_by())
    return {run.pk: f"{newest.get(run.pk, 0)}.{verdicts.get(run.pk, 0)}" for run in runs}


def _look(run: Run) -> list[tuple[str, tuple[int, int], dict[str, Any]]]:
    series = [item for item in series_of(run, definitions=READ) if item.phase != "preflight"]
    signals = signals_from(run, series, load(run, series))
    return [
        (item.reading.id, item.outcome.steps or (0, 0), dict(item.outcome.facts))
        for item in readings_of(run, signals=signals, readings=WARNINGS)
        if item.outcome.state == FIRED and not item.is_dismissed
    ]


def fired_on(runs: Sequence[Run], *, fresh: int | None = None) -> dict[int, list[FiredWarning]]:
    """Warnings by run, in the table's order; none of a logged run.

    ``fresh`` bounds how many runs are looked at anew where the cache is behind; the next call goes on with
    the others. None: all of them.
    """
    native = [run for run in runs if run.origin == Run.NATIVE]
    keys = {pk: f"fired:{run.uid}:{state}" for run, (pk, state) in zip(native, _states(native).items(), strict=True)}
    known: dict[str, list[tuple[str, tuple[int, int], dict[str, Any]]]] = cache.get_many(keys.values())
    for run in [run for run in native if keys[run.pk] not in known][:fresh]:
        known[keys[run.pk]] = _look(run)
        cache.set(keys[run.pk], known[keys[run.pk]], KEPT_SECONDS)
    return {
        pk: [FiredWarning(BY_ID[name], steps, facts) for name, steps, facts in known.get(key, []) if name in BY_ID]
        for pk, key in keys.items()
    }


def fired_warnings(run: Run) -> list[FiredWarning]:
    """Warnings of one run."""
    return fired_on([run]).get(run.pk, [])
