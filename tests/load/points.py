"""10,000 logged runs with 10,000,000 points, sealed: 5 metrics a run, 200 points a metric."""

from __future__ import annotations

from datetime import datetime

import numpy as np
from django.db import connection
from django.utils import timezone

from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study
from runs.metrics import codec
from runs.metrics.names import LOGGED
from runs.metrics.sealing import by_series
from runs.models import MetricChunk, MetricSeries, TrackedRun
from workbench.benchmarks.seeding import LAST_STEP, METRICS, START_MS, contents, seed_runs
from workbench.db import drop_triggers, install_triggers

STUDY = "logged-at-size"
POINTS = 200
BLOCK = 1_000  # series that are written in one statement


def add_logged(runs: int) -> int:
    """Fill once; the number of points that were written. 0: they are there already."""
    if TrackedRun.objects.exists():
        return 0
    now = timezone.now()
    study = ensure_study(
        STUDY,
        title={"en": STUDY, "zh": STUDY},
        summary={"en": STUDY, "zh": STUDY},
        by=service_actor("load"),
        at=now,
        visibility="public",
    )
    drop_triggers(connection)
    try:
        seed_runs(study, contents(runs, 8, seed=5), now)
        return _chunks(now)
    finally:
        install_triggers(connection)


def _chunks(now: datetime) -> int:
    """One chunk a series; its last point is the newest value that lists show."""
    found = list(
        MetricSeries.objects.filter(definition=LOGGED).order_by("pk").values_list("pk", "uid", "latest__value")
    )
    shape = np.random.default_rng(7).normal(scale=0.1, size=(len(METRICS) * 4, POINTS)).cumsum(axis=1)
    total = 0
    for begin in range(0, len(found), BLOCK):
        rows = []
        for place, (pk, uid, last) in enumerate(found[begin : begin + BLOCK]):
            points = np.zeros(POINTS, codec.LANDING)
            points["step"] = np.arange(POINTS) + LAST_STEP + 1 - POINTS
            values = shape[(begin + place) % len(shape)]
            points["series"], points["value"] = pk, values - values[-1] + last
            points["time_ms"] = START_MS - 1000 * np.arange(POINTS)[::-1]
            piece = codec.merge([codec.points_of(by_series(points)[pk])])
            payload, sha256 = codec.write_chunk(str(uid), piece)
            rows.append(
                MetricChunk(
                    series_id=pk, ordinal=0, points=len(piece), first_step=int(piece.step[0]),
                    last_step=int(piece.step[-1]), sha256=sha256, payload=payload, sealed_at=now,
                )
            )  # fmt: skip
            total += len(piece)
        MetricChunk.objects.bulk_create(rows, batch_size=200)
    return total
