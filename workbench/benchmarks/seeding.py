"""Equal contents for both servers: many runs with metrics, parameters and tags, and one long metric with a spike.

Rows are written straight into both databases, since sending them would take the slower server half an hour.
The long metric goes through the product's own write function.
"""

from __future__ import annotations

import sqlite3
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from runs.models import Run, Study

METRICS = ("loss", "reward", "kl", "entropy", "length")
START_MS = 1_780_000_000_000
SPIKE = 25.0
NAME = "long"
SERIES_BLOCK = 50_000
LAST_STEP = 199


@dataclass(frozen=True)
class Contents:
    """What both hold. ``values``: of the long metric at steps 0, 1, …; ``spike``: the step of its one outlier."""

    runs: int
    values: NDArray[np.float64]
    spike: int
    last: NDArray[np.float64]  # runs x METRICS


def contents(runs: int, points: int, seed: int) -> Contents:
    """The same for the same arguments."""
    generator = np.random.default_rng(seed)
    values = generator.normal(size=points)
    spike = int(generator.integers(1, points - 1))
    values[spike] = SPIKE
    return Contents(runs, values, spike, generator.random((runs, len(METRICS))))


def _uid(number: int) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"bench:{number}").hex


def fill_mlflow(database: Path, what: Contents) -> str:
    """Rows of MLflow's tables in experiment 0; returns the id of the run with the long metric."""
    with sqlite3.connect(database) as connection:
        runs, latest, params, tags = [], [], [], []
        for number in range(what.runs):
            uid = _uid(number)
            runs.append((uid, f"run {number}", "UNKNOWN", "", "", "bench", "FINISHED", START_MS + number, "active", 0))
            latest += [
                (name, float(value), START_MS, LAST_STEP, 0, uid)
                for name, value in zip(METRICS, what.last[number], strict=True)
            ]
            params += [("lr", f"{number % 7}e-4", uid), ("seed", str(number), uid)]
            tags += [("mlflow.runName", f"run {number}", uid), ("group", f"g{number % 10}", uid)]
        connection.executemany(
            "INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time,"
            " lifecycle_stage, experiment_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            runs,
        )
        insert = "INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid) VALUES (?, ?, ?, ?, ?, ?)"
        connection.executemany(insert, latest)
        long = _uid(0)
        connection.executemany(
            "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, 0)",
            [(key, value, time_ms, uid, step) for key, value, time_ms, step, _, uid in latest],
        )
        connection.executemany(
            "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, 0)",
            ((NAME, float(value), START_MS + step, long, step) for step, value in enumerate(what.values)),
        )
        end = len(what.values) - 1
        connection.execute(insert, (NAME, float(what.values[-1]), START_MS + end, end, 0, long))
        connection.executemany("INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)", params)
        connection.executemany("INSERT INTO tags (key, value, run_uuid) VALUES (?, ?, ?)", tags)
    return long


def fill_ours(what: Contents) -> tuple[str, str, str]:
    """(experiment id, id of the run with the long metric, token) in this process's database, which must be empty."""
    from django.utils import timezone

    from runs.actions.actors import person_actor
    from runs.actions.studies import create_study
    from runs.actions.tokens import issue_token
    from runs.metrics import codec
    from runs.metrics.sealing import seal
    from runs.metrics.store import log_rows
    from runs.models import User

    now, user = timezone.now(), User.objects.create_user("bench")
    token = issue_token(user, name="bench", scopes=("read", "write", "log"), expires_at=None, at=now)[1]
    study = create_study("bench", title={"en": "bench"}, summary={}, by=user, at=now)
    first = seed_runs(study, what, now)[0]
    for begin in range(0, len(what.values), SERIES_BLOCK):
        block = what.values[begin : begin + SERIES_BLOCK]
        points = np.zeros(len(block), codec.LANDING)
        points["step"] = np.arange(begin, begin + len(block))
        points["time_ms"] = START_MS + points["step"]
        points["value"] = block
        log_rows(first, [NAME], points, source="api", actor=person_actor(user), at=now)
    seal(first, at=now)
    return str(study.pk), first.uid.hex, token


def seed_runs(study: Study, what: Contents, now: datetime) -> list[Run]:
    """Logged runs of a study with the newest value of each of ``METRICS``, two parameters and two tags; in order."""
    from django.db import transaction

    from runs.models import Run, RunParameter, RunTag, TrackedRun

    start = datetime.fromtimestamp(START_MS / 1000, UTC)
    with transaction.atomic():
        made = [
            Run(uid=uuid.UUID(_uid(number)), origin=Run.TRACKED, name=f"run {number}", seed="", created_at=now)
            for number in range(what.runs)
        ]
        Run.objects.bulk_create(made, batch_size=500)
        rows = list(Run.objects.filter(origin=Run.TRACKED).order_by("pk"))
        TrackedRun.objects.bulk_create(
            [
                TrackedRun(
                    run=run, study=study, external_id=run.uid.hex, name=run.name, status="finished",
                    started_at=start + timedelta(milliseconds=number), updated_at=now,
                )
                for number, run in enumerate(rows)
            ],
            batch_size=500,
        )  # fmt: skip
        _seed_series(rows, what)
        RunParameter.objects.bulk_create(
            [
                RunParameter(run=run, key=key, value=value, at=now)
                for number, run in enumerate(rows)
                for key, value in (("lr", f"{number % 7}e-4"), ("seed", str(number)))
            ],
            batch_size=500,
        )
        RunTag.objects.bulk_create(
            [
                RunTag(run=run, key=key, value=value, at=now)
                for number, run in enumerate(rows)
                for key, value in (("mlflow.runName", run.name), ("group", f"g{number % 10}"))
            ],
            batch_size=500,
        )
    return rows


def _seed_series(rows: list[Run], what: Contents) -> None:
    from runs.metrics.names import LOGGED, logged_series_uid
    from runs.models import MetricLatest, MetricSeries

    series = [
        MetricSeries(
            uid=logged_series_uid(str(run.uid), "0", name), run=run, definition=LOGGED, phase="", split="",
            labels={}, labels_key="{}", segment="0", name=name,
        )
        for run in rows for name in METRICS
    ]  # fmt: skip
    MetricSeries.objects.bulk_create(series, batch_size=500)
    keys = list(MetricSeries.objects.filter(definition=LOGGED).order_by("pk").values_list("pk", "run_id", "name"))
    MetricLatest.objects.bulk_create(
        [
            MetricLatest(series_id=pk, run_id=run, name=name, step=LAST_STEP, time_ms=START_MS, value=float(value))
            for (pk, run, name), value in zip(keys, what.last.reshape(-1), strict=True)
        ],
        batch_size=500,
    )
