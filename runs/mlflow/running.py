"""Runs: begun, read, ended and taken up again, marked as deleted and restored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from runs.actions import tracking
from runs.mlflow import wire
from runs.mlflow.base import actor_of, endpoint, may_log, run_of, text_of
from runs.mlflow.errors import answer, invalid
from runs.mlflow.experiments import by_id
from runs.mlflow.writing import _list, _pairs


def _time(given: dict[str, Any], name: str) -> datetime | None:
    try:
        return wire.time_of(given.get(name))
    except (ValueError, TypeError, OverflowError) as error:
        raise invalid(name, given.get(name), "milliseconds since 1970") from error


@endpoint("POST")
def create(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """A run in an experiment."""
    study = by_id(request, text_of(given, "experiment_id"))
    may_log(request, study)
    tags = _pairs(_list(given, "tags", 1000), "tags")
    name = text_of(given, "run_name", needed=False) or tags.get(wire.RUN_NAME, "")
    user = text_of(given, "user_id", needed=False)
    if user:
        tags.setdefault(wire.USER, user)
    with transaction.atomic():
        actor, at = actor_of(request), timezone.now()
        head = tracking.create_logged_run(
            study, name, by=actor, at=at, started_at=_time(given, "start_time"), tags=tags
        )
        if tags.get(wire.RUN_NAME) != head.name:
            tracking.set_tags(head, {wire.RUN_NAME: head.name}, at=at)
    return answer({"run": wire.runs([head])[0]})


@endpoint("GET")
def get(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """One run with its newest metrics, parameters and tags."""
    return answer({"run": wire.runs([run_of(request, given)])[0]})


@endpoint("POST")
def update(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Status, end and name. An ended run that is RUNNING again logs into its next attempt from then on."""
    status, name = given.get("status"), text_of(given, "run_name", needed=False)
    if status is not None and (not isinstance(status, str) or status not in wire.STATE):
        raise invalid("status", status, f"one of {', '.join(wire.STATE)}")
    with transaction.atomic():
        head = run_of(request, given, write=True)
        actor, at = actor_of(request), timezone.now()
        if name and name != head.name:
            head = tracking.rename(head.run, name, by=actor, at=at)
            tracking.set_tags(head, {wire.RUN_NAME: name}, at=at)
        if status is not None:
            head = tracking.set_status(head.run, wire.STATE[status], by=actor, at=at, ended_at=_time(given, "end_time"))
        user = tracking.tags_of(head.run).get(wire.USER, "")
    return answer({"run_info": wire.run_info(head, user)})


@endpoint("POST")
def delete(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Mark a run as deleted; nothing of it is removed."""
    return _mark(request, given, True)


@endpoint("POST")
def restore(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Take the mark away."""
    return _mark(request, given, False)


def _mark(request: HttpRequest, given: dict[str, Any], deleted: bool) -> HttpResponseBase:
    with transaction.atomic():
        head = run_of(request, given, write=True)
        tracking.set_deleted(head.run, deleted, by=actor_of(request), at=timezone.now())
    return answer({})
