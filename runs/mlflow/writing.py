"""What a trainer sends: metrics, parameters, tags, inputs and outputs. Each request is stored whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from numpy.typing import NDArray

from runs.actions.tracking import log_parameters, must_be_active, rename, set_tags, store_large_tags
from runs.metrics import codec
from runs.metrics.store import log_rows
from runs.mlflow import wire
from runs.mlflow.base import actor_of, endpoint, run_of, text_of
from runs.mlflow.errors import INVALID, MISSING, MlflowError, answer, invalid
from runs.mlflow.hot import head_to_log, no_run
from runs.models import TrackedRun

METRICS_MOST, PARAMS_MOST, TAGS_MOST, ITEMS_MOST = 1000, 100, 100, 1000
KEY_LENGTH = 250
SOURCE = "mlflow"


def _list(given: dict[str, Any], name: str, most: int) -> list[dict[str, Any]]:
    found = given.get(name) or []
    if not isinstance(found, list) or not all(type(item) is dict for item in found):
        raise invalid(name, found, "a list of objects")
    if len(found) > most:
        raise MlflowError(
            INVALID, f"A batch logging request can contain at most {most} {name}. Got {len(found)} {name}."
        )
    return found


def _column(items: Sequence[dict[str, Any]], name: str, default: Any = None) -> list[Any]:
    """One member of each item. Raises ``MlflowError`` naming the first item without it."""
    found = [item.get(name, default) for item in items]
    if None in found:
        position = found.index(None)
        raise MlflowError(INVALID, f"Missing value for required parameter 'metrics[{position}].{name}'.")
    return found


def _whole(values: list[Any], name: str) -> NDArray[np.int64]:
    """64-bit integers, given as numbers or as text. Raises ``MlflowError``."""
    if set(map(type, values)) != {int}:
        for position, value in enumerate(values):
            try:
                number = int(value)
                if isinstance(value, bool) or (isinstance(value, float) and number != value):
                    raise ValueError(value)
            except (TypeError, ValueError, OverflowError) as error:
                raise invalid(f"metrics[{position}].{name}", value, "a whole number") from error
            values[position] = number
    try:
        return np.array(values, np.int64)
    except OverflowError as error:
        raise invalid(f"metrics.{name}", "a number beyond 64 bits", "one within") from error


def _numbers(values: list[Any]) -> NDArray[np.float64]:
    if not set(map(type, values)) <= {float}:
        for position, value in enumerate(values):
            try:
                values[position] = wire.number_of(value)
            except (ValueError, OverflowError) as error:
                raise invalid(f"metrics[{position}].value", value, "a number, NaN, Infinity or -Infinity") from error
    return np.array(values, np.float64)


def _key(key: Any, field: str) -> str:
    if not isinstance(key, str) or not key:
        raise invalid(field, key, f"text of 1 to {KEY_LENGTH} characters")
    if len(key) > KEY_LENGTH:
        raise MlflowError(INVALID, f"'{key[:60]}…' exceeds the maximum length of {KEY_LENGTH} characters ({field})")
    return key


def rows_of(items: Sequence[dict[str, Any]]) -> tuple[list[str], NDArray[Any]]:
    """(names, landing rows whose ``series`` indexes them) of metrics as the client sends them."""
    keys = _column(items, "key")
    places: dict[Any, int] = {}
    try:
        series = [places.setdefault(key, len(places)) for key in keys]
    except TypeError as error:
        raise invalid("metrics.key", "a value of another type", "text") from error
    names = [_key(key, "metrics.key") for key in places]
    rows = np.zeros(len(items), codec.LANDING)
    rows["series"] = series
    rows["value"] = _numbers(_column(items, "value"))
    rows["time_ms"] = _whole(_column(items, "timestamp"), "timestamp")
    rows["step"] = _whole(_column(items, "step", 0), "step")
    return names, rows


def _pairs(items: Sequence[dict[str, Any]], name: str) -> dict[str, str]:
    """Keys and values as text. A key twice in one request must have one value (parameters), or the last (tags)."""
    found: dict[str, str] = {}
    for item in items:
        key = _key(item.get("key"), f"{name}.key")
        value = item.get("value", "")
        if not isinstance(value, str):
            raise invalid(f"{name}.{key[:60]}", value, "text")
        if name == "params" and found.get(key, value) != value:
            raise MlflowError(
                INVALID, f"Duplicate parameter keys have been submitted with different values: {key[:80]}"
            )
        found[key] = value
    return found


def _write(
    request: HttpRequest,
    given: dict[str, Any],
    metrics: Sequence[dict[str, Any]] = (),
    params: dict[str, str] | None = None,
    tags: dict[str, str] | None = None,
) -> TrackedRun:
    """Store what one request brings, under the run's lock."""
    batch = rows_of(metrics) if metrics else None
    external = text_of(given, "run_id", "run_uuid")
    if len(external) > 64 or "\x00" in external:
        raise no_run(external)
    with transaction.atomic():
        head = head_to_log(request, external)
        must_be_active(head)
        at = timezone.now()
        if batch is not None:
            log_rows(head.run, *batch, source=SOURCE, actor=actor_of(request), at=at, head=head)
        if params:
            log_parameters(head, params, at=at)
        if tags:
            set_tags(head, tags, at=at)
            name = tags.get(wire.RUN_NAME)
            if name and name != head.name:
                rename(head.run, name, by=actor_of(request), at=at)
    return head


def _leaves_own_record(request: HttpRequest) -> None:
    """An accepted batch of points is on record as such (who, when, its digest); a line more with each would bury
    the audit log. Refused ones are written there as always."""
    request.leaves_own_record = True  # type: ignore[attr-defined]


@endpoint("POST")
def log_batch(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Metrics, parameters and tags in one request; a batch that was stored before stores nothing."""
    metrics = _list(given, "metrics", METRICS_MOST)
    params, tags = _list(given, "params", PARAMS_MOST), _list(given, "tags", TAGS_MOST)
    if not params and not tags:
        _leaves_own_record(request)
    if (count := len(metrics) + len(params) + len(tags)) > ITEMS_MOST:
        text = f"A batch logging request can contain at most {ITEMS_MOST} metrics, params, and tags. Got {count}."
        raise MlflowError(INVALID, text)
    _write(request, given, metrics, _pairs(params, "params"), _pairs(tags, "tags"))
    return answer({})


@endpoint("POST")
def log_metric(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """One value."""
    text_of(given, "key")
    _leaves_own_record(request)
    _write(request, given, metrics=[given])
    return answer({})


@endpoint("POST")
def log_parameter(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """One parameter."""
    _write(request, given, params=_pairs([given], "params"))
    return answer({})


@endpoint("POST")
def set_tag(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """One tag."""
    _write(request, given, tags=_pairs([given], "tags"))
    return answer({})


@endpoint("POST")
def delete_tag(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Take a tag away; its earlier values stay on record."""
    key = _key(given.get("key"), "key")
    with transaction.atomic():
        head = run_of(request, given, write=True)
        if not set_tags(head, {key: None}, at=timezone.now()):
            raise MlflowError(MISSING, f"No tag with name: {key} in run with id {head.external_id}")
    return answer({})


@endpoint("POST")
def log_inputs(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Data sets and models that a run read, kept as they came."""
    found = {}
    for item in _list(given, "datasets", ITEMS_MOST):
        inner = item.get("dataset")
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str) or not inner.get("digest"):
            raise invalid("datasets.dataset", inner, "an object with name and digest")
        found[_tag(f"{wire.INPUT}dataset/", item)] = orjson.dumps(item).decode()
    for item in _list(given, "models", ITEMS_MOST):
        found[_tag(f"{wire.INPUT}model/", item)] = orjson.dumps(item).decode()
    return _keep(request, given, found)


@endpoint("POST")
def log_outputs(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Models that a run wrote, kept as they came; the models themselves are files of the run."""
    items = _list(given, "models", ITEMS_MOST)
    return _keep(request, given, {_tag(wire.OUTPUT, item): orjson.dumps(item).decode() for item in items})


def _tag(prefix: str, item: dict[str, Any]) -> str:
    return prefix + hashlib.sha256(orjson.dumps(item, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _keep(request: HttpRequest, given: dict[str, Any], found: dict[str, str]) -> HttpResponseBase:
    with transaction.atomic():
        head = run_of(request, given, write=True)
        store_large_tags(head, found, at=timezone.now())
    return answer({})
