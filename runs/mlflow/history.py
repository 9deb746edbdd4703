"""Every value of a metric, in order of time; pages of what the client asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
from django.http import HttpRequest, HttpResponseBase

from runs.metrics import codec
from runs.metrics.read import history
from runs.mlflow.base import endpoint, run_of, text_of
from runs.mlflow.errors import answer, invalid
from runs.mlflow.paging import position_of, token_of
from runs.models import TrackedRun

PAGE_MOST = 25_000
RUNS_MOST = 100
INTERVAL_MOST = 2500
_WORD = {codec.NAN: "NaN", codec.PLUS_INFINITY: "Infinity", codec.MINUS_INFINITY: "-Infinity"}


def _limit(given: dict[str, Any], default: int, most: int) -> int:
    text = given.get("max_results", default)
    try:
        number = int(text)
    except (TypeError, ValueError) as error:
        raise invalid("max_results", text, f"a number from 1 to {most}") from error
    if isinstance(text, bool) or not 1 <= number <= most:
        raise invalid("max_results", text, f"a number from 1 to {most}")
    return number


def metrics_of(points: codec.Points, key: str, extra: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """Points as the client reads them."""
    values: list[Any] = points.value.tolist()
    for position in np.flatnonzero(points.flag):
        values[position] = _WORD[int(points.flag[position])]
    more = extra or {}
    return [
        {"key": key, "value": value, "timestamp": time, "step": step, **more}
        for value, time, step in zip(values, points.time_ms.tolist(), points.step.tolist(), strict=True)
    ]


@endpoint("GET")
def get_history(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Values of one metric over all attempts. Without ``max_results``: all of them in one answer."""
    head, key = run_of(request, given), text_of(given, "metric_key")
    points = history(head.run, key)
    if "max_results" not in given and "page_token" not in given:
        return answer({"metrics": metrics_of(points, key)})
    limit, (start, upto) = _limit(given, PAGE_MOST, PAGE_MOST), position_of(given)
    if start > len(points) or (upto and upto > len(points)):
        raise invalid("page_token", given.get("page_token"), "the next_page_token of an earlier answer")
    upto = upto or len(points)  # what is logged meanwhile belongs to the next walk
    stop = min(start + limit, upto)
    body: dict[str, Any] = {"metrics": metrics_of(codec.part(points, start, stop), key)}
    if stop < upto:
        body["next_page_token"] = token_of(stop, upto)
    return answer(body)


def _runs(request: HttpRequest, given: dict[str, Any], name: str) -> list[TrackedRun]:
    found = given.get(name) or []
    names = found if isinstance(found, list) else [found]
    if not 1 <= len(names) <= RUNS_MOST:
        raise invalid(name, f"{len(names)} runs", f"1 to {RUNS_MOST}")
    return [run_of(request, {"run_id": item}) for item in names]


@endpoint("GET")
def get_history_bulk(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """The first values of one metric of several runs."""
    key = text_of(given, "metric_key")
    limit = _limit(given, PAGE_MOST, PAGE_MOST)
    found: list[dict[str, Any]] = []
    for head in _runs(request, given, "run_id"):
        points = history(head.run, key)
        found += metrics_of(codec.part(points, 0, limit - len(found)), key, {"run_id": head.external_id})
    return answer({"metrics": found})


@endpoint("GET")
def get_history_bulk_interval(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """At most ``max_results`` values of each of several runs between two steps; extremes are among them."""
    from runs.metrics.draw import draw

    key, limit = text_of(given, "metric_key"), _limit(given, 320, INTERVAL_MOST)
    bounds = []
    for name in ("start_step", "end_step"):
        text = given.get(name)
        try:
            bounds.append(None if text in (None, "") else int(str(text)))
        except ValueError as error:
            raise invalid(name, text, "a whole number") from error
    found: list[dict[str, Any]] = []
    for head in _runs(request, given, "run_ids"):
        points = history(head.run, key, start=bounds[0], stop=bounds[1])
        drawn = draw(points, points.step, limit=max(12, limit - limit % 4))
        chosen = np.sort(np.concatenate((drawn.finite, drawn.marks)))
        picked = codec.take(points, chosen)
        found += metrics_of(picked, key, {"run_id": head.external_id})
    return answer({"metrics": found})
