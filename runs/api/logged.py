"""Logged runs: begun, written to, moved, linked to a plan, listed with a search, read as JSON, chart and Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import LOG_WRITE, get_visible, require, visible
from runs.actions import tracking
from runs.api import logged_serializers as bodies
from runs.api.base import ApiView, DetailView, Filter, ListView, PostView, check_parameters, limit_of, sparse
from runs.api.downloads import send_bytes
from runs.api.problems import ApiProblem, invalid
from runs.api.studies import get_study
from runs.metrics import codec
from runs.metrics.draw import draw
from runs.metrics.read import data_sha256, history, load, series_of
from runs.metrics.store import LoggedPoint, log_points
from runs.mlflow.errors import MlflowError
from runs.mlflow.search import where
from runs.models import MetricLatest, PlanVersion, Run, TrackedRun
from workbench.contracts.canonical import derive_uid, sha256_hex

ARROW = "application/vnd.apache.arrow.stream"
JSON_MOST = 100_000  # points of one JSON answer


def logged_runs() -> QuerySet[TrackedRun]:
    """Logged runs with what their representation reads."""
    return TrackedRun.objects.select_related("run", "study", "linked_plan")


class LoggedRuns(ListView):
    """Logged runs of visible studies."""

    tag, summary, serializer = "logged runs", "List logged runs", bodies.LoggedRunSerializer
    filters = (
        Filter("study", "study__slug"),
        Filter("status", "status", choices=TrackedRun.STATES),
        Filter("origin", "run__origin", choices=(Run.TRACKED, Run.IMPORTED)),
        Filter("framework", "framework"),
        Filter("name", "name"),
        Filter("deleted", "deleted", "boolean"),
        Filter("started_after", "started_at__gt", "time"),
    )
    extra = ("where",)
    parameters = (Filter("where", "", help="metrics.loss < 0.5 and params.lr = '0.1' (see docs/logging.md)"),)

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        rows = visible(self.principal, logged_runs())
        text = request.query_params.get("where")
        if text is None:
            return rows
        try:
            return where(rows, text)
        except MlflowError as error:
            raise invalid("where", text, str(error), 400) from error


class CreateLoggedRun(PostView):
    """Begin a run in a study."""

    tag, summary, serializer, status_code = "logged runs", "Begin a logged run", bodies.LoggedRunSerializer, 201
    body = bodies.NewLoggedRunBody

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, LOG_WRITE, get_study(self, kwargs["slug"]))

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), get_study(self, kwargs["slug"])
        head = None
        if given["key"] is not None:
            uid = derive_uid(study.uid, f"logged:{given['key']}")
            head = logged_runs().filter(run__uid=uid).first()
        if head is None:
            made = tracking.create_logged_run(
                study, given["name"], by=self.actor(), at=timezone.now(), framework=given["framework"],
                started_at=given["started_at"], tags=given["tags"], key=given["key"],
            )  # fmt: skip
            head = logged_runs().get(pk=made.pk)
        return Response(
            sparse(request, bodies.LoggedRunSerializer, [head])[0],
            status=201,
            headers={"Location": f"/api/v1/logged-runs/{head.run.uid}"},
        )


class OneLoggedRun(DetailView):
    """One logged run."""

    tag, summary, serializer = "logged runs", "Read a logged run", bodies.LoggedRunDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, logged_runs(), run__uid=kwargs["uid"])


class OfLoggedRun(PostView):
    """A change of one logged run."""

    tag = "logged runs"

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, LOG_WRITE, self.tracked(**kwargs).study)

    def tracked(self, **kwargs: Any) -> TrackedRun:
        """The run, where the caller sees it."""
        return get_visible(self.principal, logged_runs(), run__uid=kwargs["uid"])


class Log(OfLoggedRun):
    """Points, parameters and tags, together or not at all; a batch that was stored before stores nothing."""

    summary, serializer, body = "Log into a run", bodies.LoggedSerializer, bodies.LogBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        given = self.read_body(request)
        head, at = tracking.locked(self.tracked(**kwargs).run), timezone.now()
        tracking.must_be_active(head)
        points = [LoggedPoint(item["name"], item["value"], item["step"], item["time_ms"]) for item in given["points"]]
        done = log_points(head.run, points, source="api", actor=self.actor(), at=at, head=head)
        return Response(
            {
                "stored": done.stored,
                "repeated": done.repeated,
                "parameters": tracking.log_parameters(head, given["parameters"], at=at),
                "tags": tracking.set_tags(head, given["tags"], at=at),
            }
        )


class MoveLoggedRun(OfLoggedRun):
    """End a run, or take it up again: then what is logged belongs to its next attempt."""

    summary, serializer, body = "Set the status of a logged run", bodies.LoggedRunSerializer, bodies.StatusBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, head = self.read_body(request), self.tracked(**kwargs)
        tracking.set_status(
            head.run, given["status"], by=self.actor(), at=timezone.now(), ended_at=given["ended_at"],
            reason=given["reason"],
        )  # fmt: skip
        return Response(sparse(request, bodies.LoggedRunSerializer, [logged_runs().get(pk=head.pk)])[0])


class LinkLoggedRun(OfLoggedRun):
    """Say that a run belongs to a frozen plan of its study."""

    summary, serializer, body = "Link a logged run to a plan", bodies.LoggedRunSerializer, bodies.LinkBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, head = self.read_body(request), self.tracked(**kwargs)
        version = get_visible(
            self.principal, PlanVersion.objects.select_related("plan__study"), uid=given["plan_version"]
        )
        tracking.link_plan(head.run, version, by=self.actor(), at=timezone.now(), reason=given["reason"])
        return Response(sparse(request, bodies.LoggedRunSerializer, [logged_runs().get(pk=head.pk)])[0])


class Newest(ListView):
    """Series of a run with their newest points."""

    tag, summary, serializer = "logged runs", "List the metrics of a logged run", bodies.NewestSerializer
    filters = (Filter("name", "name"),)

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        head = get_visible(self.principal, logged_runs(), run__uid=kwargs["uid"])
        return MetricLatest.objects.filter(run=head.run).select_related("series")


def _bound(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    return None if text is None else int(Filter(name, "", "integer").value(text))


WINDOW = (
    Filter("name", "", help="the metric's name as it was logged"),
    Filter("start", "", "integer", help="first step"),
    Filter("stop", "", "integer", help="last step"),
)


class _Points(DetailView):
    """Points of one name within a window of steps."""

    tag = "logged runs"
    takes_fields = False
    parameters: tuple[Filter, ...] = WINDOW

    def points(self, request: Request, **kwargs: Any) -> tuple[str, codec.Points, str]:
        """(name, points, digest of what they rest on)."""
        check_parameters(request, [item.name for item in self.parameters])
        head = get_visible(self.principal, logged_runs(), run__uid=kwargs["uid"])
        name = request.query_params.get("name", "")
        series = [item for item in series_of(head.run, names=[name]) if item.is_logged] if name else []
        if not series:
            raise invalid("name", name, "the name of a metric of this run", 404 if name else 400)
        found = history(head.run, name, start=_bound(request, "start"), stop=_bound(request, "stop"))
        return name, found, data_sha256(head.run, series)


def _values(points: codec.Points) -> list[Any]:
    values: list[Any] = points.value.tolist()
    for position in np.flatnonzero(points.flag):
        values[position] = {"nonfinite": codec.NONFINITE[int(points.flag[position])]}
    return values


def _columns(points: codec.Points) -> dict[str, list[Any]]:
    return {"step": points.step.tolist(), "time_ms": points.time_ms.tolist(), "value": _values(points)}


class History(_Points):
    """All points of a name."""

    summary, serializer = "Read the points of a metric", bodies.HistorySerializer

    def get(self, request: Request, **kwargs: Any) -> Response:
        """Columns; more than fit into JSON are refused and come as Arrow."""
        name, points, sha256 = self.points(request, **kwargs)
        if len(points) > JSON_MOST:
            raise ApiProblem(
                413,
                f"history: got {len(points)} points, expected at most {JSON_MOST} as JSON; "
                "narrow start and stop, or read history.arrow",
            )
        return Response({"name": name, "points": len(points), "data_sha256": sha256, **_columns(points)})


class Chart(_Points):
    """At most ``limit`` points of a name for a chart."""

    summary, serializer = "Read what a chart of a metric draws", bodies.ChartSerializer
    parameters = (*WINDOW, Filter("limit", "", "integer", help="finite points, a multiple of 4 from 12 to 20000"))

    def get(self, request: Request, **kwargs: Any) -> Response:
        """Columns, and how many points stand behind them."""
        limit = limit_of(request, 2000, 20_000)
        if limit < 12 or limit % 4:
            raise invalid("limit", limit, "a multiple of 4 from 12 to 20000", 400)
        name, points, sha256 = self.points(request, **kwargs)
        drawn = draw(points, points.step, limit=limit)
        chosen = np.sort(np.concatenate((drawn.finite, drawn.marks)))
        shown = codec.take(points, chosen)
        counts = {"n_stored": drawn.stored, "n_shown": drawn.shown, "sampler": drawn.sampler}
        return Response({"name": name, **counts, "data_sha256": sha256, **_columns(shown)})


class HistoryArrow(ApiView):
    """Every point of a run, or of one name, as an Arrow stream."""

    tag, summary, media_type = "logged runs", "Download points as Arrow", ARROW
    is_download = True
    parameters = WINDOW

    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Columns name, segment, step, time_ms, value (null where not finite), nonfinite ("" or nan, inf, -inf)."""
        check_parameters(request, [item.name for item in WINDOW])
        head = get_visible(self.principal, logged_runs(), run__uid=kwargs["uid"])
        name = request.query_params.get("name")
        if name is not None and "\x00" in name:
            raise invalid("name", name, "text without U+0000", 400)
        series = [item for item in series_of(head.run, names=None if name is None else [name]) if item.is_logged]
        if name is not None and not series:
            raise Http404(f"name: got {name[:100]!r}, expected the name of a metric of this run")
        found = load(head.run, series, start=_bound(request, "start"), stop=_bound(request, "stop"))
        data = arrow_bytes([(item.name, item.segment, found[item.pk]) for item in series])
        return send_bytes(request, data, sha256_hex(data), f"logged-{head.external_id}.arrow", ARROW)


def arrow_bytes(series: list[tuple[str, str, codec.Points]]) -> bytes:
    """(name, segment, points) of each series as one Arrow stream."""
    words = pa.array(["", "nan", "inf", "-inf"])
    schema = pa.schema(
        {
            "name": pa.dictionary(pa.int32(), pa.string()),
            "segment": pa.dictionary(pa.int32(), pa.string()),
            "step": pa.int64(),
            "time_ms": pa.int64(),
            "value": pa.float64(),
            "nonfinite": pa.dictionary(pa.int8(), pa.string()),
        }
    )
    names = pa.array(sorted({name for name, _, _ in series}), pa.string())
    segments = pa.array(sorted({segment for _, segment, _ in series}), pa.string())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for name, segment, points in series:
            length = len(points)
            columns = [
                pa.DictionaryArray.from_arrays(np.full(length, names.index(name).as_py(), np.int32), names),
                pa.DictionaryArray.from_arrays(np.full(length, segments.index(segment).as_py(), np.int32), segments),
                pa.array(points.step),
                pa.array(points.time_ms),
                pa.array(points.value, mask=points.flag != codec.FINITE),
                pa.DictionaryArray.from_arrays(points.flag.astype(np.int8), words),
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return bytes(sink.getvalue())
