"""Search of runs: filters in the database, order and pages over row numbers, bodies of one page only."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase

from runs.mlflow import wire
from runs.mlflow.base import DEFAULT_ID, endpoint, text_of, visible_ids
from runs.mlflow.errors import answer, invalid
from runs.mlflow.experiments import default_study
from runs.mlflow.filters import ATTRIBUTE, METRIC, PARAM, Comparison, Order, is_like, parse_filter, parse_order
from runs.mlflow.paging import position_of, token_of
from runs.models import MetricLatest, RunParameter, RunTag, TrackedRun

MOST, DEFAULT = 50_000, 1000
VIEWS = {"ACTIVE_ONLY": Q(deleted=False), "DELETED_ONLY": Q(deleted=True), "ALL": Q()}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "IN": lambda value, given: value in given,
    "NOT IN": lambda value, given: value not in given,
    "LIKE": is_like,
    "ILIKE": lambda value, given: is_like(value.lower(), given.lower()),
    "IS NOT NULL": lambda value, given: True,
}  # fmt: skip
LOOKUPS = {"=": "", "<": "__lt", "<=": "__lte", ">": "__gt", ">=": "__gte", "IN": "__in"}
INFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def search_runs(
    studies: Iterable[int], filter_text: str, orders: list[Order], view: Q, *, start: int, most: int, upto: int
) -> tuple[list[int], int, bool]:
    """(run keys of a page in order, newest run of the walk, whether there are more)."""
    rows = TrackedRun.objects.filter(view, study__in=list(studies))
    upto = upto or rows.order_by("-run").values_list("run", flat=True).first() or 0
    rows, rest = _narrow(rows.filter(run__lte=upto), parse_filter(filter_text))
    rows = rows.order_by("-started_at", "-run")
    if not rest and not orders:
        found = list(rows.values_list("run_id", flat=True)[start : start + most + 1])
    else:
        found = list(rows.values_list("run_id", flat=True))
        for clause in rest:
            values = values_of(clause.entity, clause.key, rows)
            found = [run for run in found if run in values and _holds(clause, values[run])]
        for order in reversed(orders):  # each sort keeps the order of the later keys
            found = _sorted(found, values_of(order.entity, order.key, rows), order.descending)
        found = found[start : start + most + 1]
    return found[:most], upto, len(found) > most


def where(rows: QuerySet[TrackedRun], text: str) -> QuerySet[TrackedRun]:
    """Rows for which a filter holds. Raises ``MlflowError`` saying what cannot be read."""
    rows, rest = _narrow(rows, parse_filter(text))
    for clause in rest:
        values = values_of(clause.entity, clause.key, rows.order_by())
        rows = rows.filter(run__in=[run for run, value in values.items() if _holds(clause, value)])
    return rows


def _narrow(rows: QuerySet[TrackedRun], clauses: list[Comparison]) -> tuple[QuerySet[TrackedRun], list[Comparison]]:
    """Rows narrowed by what the database compares, and the comparisons that are left."""
    rest = []
    for clause in clauses:
        condition = _condition(clause)
        if condition is None:
            rest.append(clause)
        else:
            rows = rows.filter(condition)
    return rows, rest


def _condition(clause: Comparison) -> Any:
    """The comparison as a condition; None where it is made over values in memory."""
    if clause.operator in ("LIKE", "ILIKE"):
        return None
    if clause.entity == ATTRIBUTE:
        return _of_attribute(clause)
    if clause.entity == METRIC:
        return _of_metric(clause)
    model = RunParameter if clause.entity == PARAM else RunTag
    mine: QuerySet[Any] = model.objects.filter(run=OuterRef("run"), key=clause.key)
    if clause.entity != PARAM:
        newer = RunTag.objects.filter(run=OuterRef("run"), key=clause.key, pk__gt=OuterRef("pk"))
        mine = mine.filter(~Exists(newer), value__isnull=False)
    return _compared(mine, clause)


def _compared(mine: QuerySet[Any], clause: Comparison) -> Any:
    if clause.operator == "IS NULL":
        return ~Exists(mine)
    if clause.operator == "IS NOT NULL":
        return Exists(mine)
    if clause.operator in ("!=", "NOT IN"):
        name = "value" if clause.operator == "!=" else "value__in"
        return Exists(mine.exclude(**{name: clause.value}))
    return Exists(mine.filter(**{f"value{LOOKUPS[clause.operator]}": clause.value}))


def _of_metric(clause: Comparison) -> Any:
    mine = MetricLatest.objects.filter(run=OuterRef("run"), name=clause.key)
    newer = MetricLatest.objects.filter(run=OuterRef("run"), name=clause.key).filter(
        Q(step__gt=OuterRef("step")) | Q(step=OuterRef("step"), time_ms__gt=OuterRef("time_ms"))
    )
    mine = mine.filter(~Exists(newer))
    if clause.operator in ("IS NULL", "IS NOT NULL"):
        return _compared(mine, clause)
    if not math.isfinite(clause.value):
        return None
    holds = COMPARE[clause.operator]
    words = [word for word, value in INFINITE.items() if holds(value, clause.value)]
    finite = Q(value__isnull=False)
    finite &= (
        ~Q(value=clause.value) if clause.operator == "!=" else Q(**{f"value{LOOKUPS[clause.operator]}": clause.value})
    )
    return Exists(mine.filter(finite | Q(nonfinite__in=words)))


def _of_attribute(clause: Comparison) -> Any:
    columns = {"run_id": "external_id", "run_name": "name", "status": "status"}
    column = columns.get(clause.key)
    if column is None or clause.operator not in LOOKUPS | {"!=": "", "NOT IN": ""}:
        return None
    value = clause.value
    if column == "status":
        names = (value,) if isinstance(value, str) else value
        value = [wire.STATE.get(name, "") for name in names]
        value = value[0] if isinstance(clause.value, str) else value
    if clause.operator in ("!=", "NOT IN"):
        return ~Q(**{column if clause.operator == "!=" else f"{column}__in": value})
    return Q(**{f"{column}{LOOKUPS[clause.operator]}": value})


def _holds(clause: Comparison, value: Any) -> bool:
    return COMPARE[clause.operator](value, clause.value)


def values_of(entity: str, key: str, rows: QuerySet[TrackedRun]) -> dict[int, Any]:
    """Values of a key by run; runs without it are absent."""
    if entity == METRIC:
        return _metric_values(key)
    if entity == PARAM:
        return dict(RunParameter.objects.filter(key=key).values_list("run_id", "value"))
    if entity == ATTRIBUTE:
        return _attribute_values(key, rows)
    newest = dict(RunTag.objects.filter(key=key).order_by("id").values_list("run_id", "value"))
    return {run: value for run, value in newest.items() if value is not None}


def _metric_values(key: str) -> dict[int, float]:
    found = MetricLatest.objects.filter(name=key).order_by("step", "time_ms")
    return {
        run: INFINITE[nonfinite] if value is None else value
        for run, value, nonfinite in found.values_list("run_id", "value", "nonfinite")
    }


def _attribute_values(key: str, rows: QuerySet[TrackedRun]) -> dict[int, Any]:
    columns = {"run_id": "external_id", "run_name": "name", "status": "status", "start_time": "started_at",
               "end_time": "ended_at"}  # fmt: skip
    if key == "user_id":
        newest = dict(RunTag.objects.filter(key=wire.USER).order_by("id").values_list("run_id", "value"))
        return {run: value for run, value in newest.items() if value is not None}
    if key == "artifact_uri":
        return {head.run_id: wire.artifact_root(head) for head in rows}
    found = dict(rows.values_list("run_id", columns[key]))
    if key == "status":
        return {run: wire.STATUS[value] for run, value in found.items()}
    if key in ("start_time", "end_time"):
        return {run: wire.milliseconds(value) for run, value in found.items() if value is not None}
    return found


def _sorted(found: list[int], values: dict[int, Any], descending: bool) -> list[int]:
    """Runs by value, then those with NaN, then those without a value: the same in both directions."""
    plain, nan, absent = [], [], []
    for run in found:
        value = values.get(run)
        if value is None:
            absent.append(run)
        elif value != value:
            nan.append(run)
        else:
            plain.append(run)
    plain.sort(key=values.__getitem__, reverse=descending)
    return [*plain, *nan, *absent]


def _studies(request: HttpRequest, given: dict[str, Any]) -> list[int]:
    names = given.get("experiment_ids") or []
    if not isinstance(names, list) or not all(isinstance(name, str | int) for name in names):
        raise invalid("experiment_ids", names, "a list of ids")
    visible = set(visible_ids(request))
    wanted = {int(name) for name in map(str, names) if name.isascii() and name.isdigit() and len(name) < 18}
    if DEFAULT_ID in map(str, names):
        wanted.add(default_study(request).pk)
        visible = set(visible_ids(request)) | wanted & {default_study(request).pk}
    return sorted(wanted & visible)


@endpoint("POST", "GET")
def search(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Runs of experiments that the caller sees; those of others are left out."""
    most = given.get("max_results", DEFAULT)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST:
        raise invalid("max_results", most, f"a number from 1 to {MOST}")
    view = given.get("run_view_type") or "ACTIVE_ONLY"
    if view not in VIEWS:
        raise invalid("run_view_type", view, f"one of {', '.join(VIEWS)}")
    start, upto = position_of(given)
    keys, upto, more = search_runs(
        _studies(request, given), text_of(given, "filter", "filter_string", needed=False),
        parse_order(given.get("order_by")), VIEWS[view], start=start, most=most, upto=upto,
    )  # fmt: skip
    heads: dict[int, TrackedRun] = {}
    for some in wire.parts(keys):
        heads.update({head.run_id: head for head in TrackedRun.objects.filter(run__in=some)})
    body: dict[str, Any] = {"runs": wire.runs([heads[key] for key in keys])}
    if more:
        body["next_page_token"] = token_of(start + most, upto)
    return answer(body)
