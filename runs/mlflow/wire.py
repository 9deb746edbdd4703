"""Entities as MLflow's clients read them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from runs.models import MetricLatest, RunParameter, RunTag, Study, TrackedRun

STATUS = {
    "running": "RUNNING",
    "scheduled": "SCHEDULED",
    "finished": "FINISHED",
    "failed": "FAILED",
    "killed": "KILLED",
}
STATE = {word: state for state, word in STATUS.items()}
NONFINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
RUN_NAME, USER = "mlflow.runName", "mlflow.user"
INPUT, OUTPUT = "workbench.input/", "workbench.output/"  # tags that hold data sets and models, shown as such
IN_PARTS = 500  # keys of one query


def milliseconds(at: datetime) -> int:
    """Since 1970."""
    return round(at.timestamp() * 1000)


def time_of(value: Any) -> datetime | None:
    """A time out of milliseconds, as number or text; None where absent or 0. Raises ``ValueError``."""
    if value in (None, "", 0, "0"):
        return None
    number = int(value)
    if isinstance(value, bool) or abs(number) >= 2**53:
        raise ValueError(f"got {value!r}, expected milliseconds since 1970")
    return datetime.fromtimestamp(number / 1000, UTC)


def value_of(value: float | None, nonfinite: str) -> float | str:
    """A number, or the word of one that is not finite."""
    return NONFINITE[nonfinite] if value is None else value


def artifact_root(head: TrackedRun) -> str:
    """Where the client puts files: this server, below the run."""
    return f"mlflow-artifacts:/{head.study_id}/{head.external_id}/artifacts"


def experiment(study: Study) -> dict[str, Any]:
    """A study."""
    at = milliseconds(study.created_at)
    return {
        "experiment_id": str(study.pk),
        "name": study.title_en,
        "artifact_location": f"mlflow-artifacts:/{study.pk}",
        "lifecycle_stage": "active",
        "last_update_time": at,
        "creation_time": at,
        "tags": [{"key": "workbench.slug", "value": study.slug}],
    }


def run_info(head: TrackedRun, user: str) -> dict[str, Any]:
    """A run's head."""
    info = {
        "run_uuid": head.external_id,
        "run_id": head.external_id,
        "run_name": head.name,
        "experiment_id": str(head.study_id),
        "user_id": user,
        "status": STATUS[head.status],
        "start_time": milliseconds(head.started_at),
        "artifact_uri": artifact_root(head),
        "lifecycle_stage": "deleted" if head.deleted else "active",
    }
    if head.ended_at is not None:
        info["end_time"] = milliseconds(head.ended_at)
    return info


def runs(heads: Sequence[TrackedRun]) -> list[dict[str, Any]]:
    """Runs with their newest metrics, parameters, tags and inputs; a handful of queries for all of them."""
    keys = [head.run_id for head in heads]
    metrics, params, tags = _metrics(keys), _params(keys), _tags(keys)
    found = []
    for head in heads:
        mine = tags[head.run_id]
        plain = [{"key": key, "value": value} for key, value in mine.items() if not key.startswith((INPUT, OUTPUT))]
        found.append(
            {
                "info": run_info(head, mine.get(USER, "")),
                "data": {"metrics": metrics[head.run_id], "params": params[head.run_id], "tags": plain},
                "inputs": {
                    "dataset_inputs": [_stored(mine[key]) for key in mine if key.startswith(f"{INPUT}dataset/")],
                    "model_inputs": [_stored(mine[key]) for key in mine if key.startswith(f"{INPUT}model/")],
                },
                "outputs": {"model_outputs": [_stored(mine[key]) for key in mine if key.startswith(OUTPUT)]},
            }
        )
    return found


def _stored(text: str) -> Any:
    return orjson.loads(text)


def parts(keys: Sequence[int]) -> Iterable[Sequence[int]]:
    """Keys in lists that one query takes."""
    return (keys[start : start + IN_PARTS] for start in range(0, len(keys), IN_PARTS))


def _metrics(keys: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Newest value of each name, over all attempts, by (step, time)."""
    newest: dict[int, dict[str, tuple[int, int, float | None, str]]] = defaultdict(dict)
    for some in parts(keys):
        rows = MetricLatest.objects.filter(run__in=some).order_by("run", "name")
        for run, name, step, time_ms, value, nonfinite in rows.values_list(
            "run_id", "name", "step", "time_ms", "value", "nonfinite"
        ):
            before = newest[run].get(name)
            if before is None or (step, time_ms) >= before[:2]:
                newest[run][name] = (step, time_ms, value, nonfinite)
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for run, items in newest.items():
        found[run] = [
            {"key": name, "value": value_of(value, nonfinite), "timestamp": time_ms, "step": step}
            for name, (step, time_ms, value, nonfinite) in items.items()
        ]
    return found


def _params(keys: Sequence[int]) -> dict[int, list[dict[str, str]]]:
    found: dict[int, list[dict[str, str]]] = defaultdict(list)
    for some in parts(keys):
        rows = RunParameter.objects.filter(run__in=some).order_by("run", "key")
        for run, key, value in rows.values_list("run_id", "key", "value"):
            found[run].append({"key": key, "value": value})
    return found


def _tags(keys: Sequence[int]) -> dict[int, dict[str, str]]:
    newest: dict[int, dict[str, str | None]] = defaultdict(dict)
    for some in parts(keys):
        rows = RunTag.objects.filter(run__in=some).order_by("id")
        for run, key, value in rows.values_list("run_id", "key", "value"):
            newest[run][key] = value
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for run, items in newest.items():
        found[run] = {key: value for key, value in items.items() if value is not None}
    return found


def number_of(value: Any) -> float:
    """A metric's value: a number, or NaN, Infinity and -Infinity as words. Raises ``ValueError``."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"got {value!r}, expected a number")
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"):
        found = float(value)
        if not math.isfinite(found):
            raise ValueError(f"got {value!r}, expected a number")
        return found
    return float(value)
