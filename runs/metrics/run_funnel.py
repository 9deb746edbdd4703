"""The throughput funnel of a whole run: counts and tokens of its batches, seconds and rates from receipts.

Counts, shares and tokens come from points that ``verify`` rebuilds. Seconds are what the machine took: they
stand in receipts, are hashed into no result, and differ between equal runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Max, Sum

from runs.models import MetricPoint, Receipt, Run
from runs.statistics.funnel import STAGES, Stage
from workbench.contracts.canonical import parse_canonical

COUNTS, TOKENS = "l3.funnel_trajectories/1", "l3.funnel_tokens/1"
COLLECTED = ("shard.collected", "shard.lost")


@dataclass(frozen=True)
class RunFunnel:
    """``collect_seconds``: engine seconds of the run's training shards; ``hours``: from its start to its last
    update, waiting included. Both None where no receipt tells.
    """

    stages: list[Stage]
    collect_seconds: float | None
    hours: float | None

    def rate(self, stage: Stage) -> float | None:
        """Trajectories of a stage an hour; None without a time."""
        return stage.trajectories / self.hours if self.hours else None

    def cost(self, stage: Stage) -> float | None:
        """Generated tokens of all that was started, a trajectory that reached the stage; None where none did."""
        return self.stages[0].tokens / stage.trajectories if stage.trajectories else None


def run_funnel(run: Run) -> RunFunnel | None:
    """The funnel of the batches that met their update; None before the first."""
    sums: dict[str, dict[str, int]] = {}
    rows = MetricPoint.objects.filter(series__run=run, series__definition__in=(COUNTS, TOKENS))
    for definition, labels, total in rows.values_list("series__definition", "series__labels").annotate(Sum("value")):
        sums.setdefault(definition, {})[labels["stage"]] = round(total or 0)
    if COUNTS not in sums:
        return None
    started = sums[COUNTS][STAGES[0]]
    stages = [
        Stage(name, sums[COUNTS][name], sums[COUNTS][name] / started if started else None, sums[TOKENS][name])
        for name in STAGES
    ]
    last = rows.aggregate(last=Max("wall_seconds"))["last"]
    hours = None if last is None else last / 3600.0
    return RunFunnel(stages, _collect_seconds(run), hours)


def _collect_seconds(run: Run) -> float | None:
    found: list[float] = []
    for row in Receipt.objects.filter(stream=f"run:{run.uid}", kind__in=COLLECTED).iterator(chunk_size=500):
        body: dict[str, Any] = parse_canonical(bytes(row.bytes))["body"]
        timing = body["machine"]["timing"]
        if body.get("purpose") == "train" and "seconds" in timing:
            found.append(float(timing["seconds"]))
    return sum(found) if found else None
