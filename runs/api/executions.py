"""Executions, runs and jobs: where they stand, and pause, resume and cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import RUN_CONTROL, get_visible, require, study_of, visible, visible_jobs
from runs.actions import runs_control
from runs.actions.advance import progress_of
from runs.api.base import DetailView, Filter, ListView, OfPlan, PostView, check_parameters, sparse
from runs.api.problems import invalid
from runs.api.serializers import ExecutionSerializer, JobSerializer, NumberOrNull, RunSerializer
from runs.models import Execution, Job, Run
from runs.models.plan import heavy
from runs.presenters.series import DEFINITIONS, Definition
from runs.states import JOB_TRANSITIONS, RUN_TRANSITIONS
from workbench.contracts.canonical import encode_float

VERBS = ("pause", "resume", "cancel")


def executions() -> QuerySet[Execution]:
    """Executions with what their representation reads."""
    return Execution.objects.select_related("plan_version__plan__study").defer(*heavy("plan_version__"))


def runs() -> QuerySet[Run]:
    """Runs with what their representation reads."""
    rows = Run.objects.select_related("head__checkpoint", "arm", "execution", "plan_version__plan__study")
    return rows.defer(*heavy("plan_version__"), "arm__config_bytes")


def jobs() -> QuerySet[Job]:
    """Jobs with what their representation reads."""
    return Job.objects.select_related("run", "execution")


class Executions(ListView):
    """Executions of visible plans."""

    tag, summary, serializer = "executions", "List executions", ExecutionSerializer
    filters = (
        Filter("study", "plan_version__plan__study__slug"),
        Filter("plan", "plan_version__plan__uid", "uuid"),
        Filter("state", "state"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, executions())


class ProgressSerializer(s.Serializer[Any]):
    """Jobs done of those expected, and what runs now."""

    state = s.CharField()
    phase = s.CharField()
    done = s.IntegerField()
    expected = s.IntegerField()
    now = s.ListField(child=s.JSONField())


class OneExecution(DetailView):
    """One execution."""

    tag, summary, serializer = "executions", "Read an execution", ExecutionSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, executions(), uid=kwargs["uid"])


class Progress(DetailView):
    """Progress of an execution."""

    tag, summary, serializer = "executions", "Progress of an execution", ProgressSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return progress_of(get_visible(self.principal, executions(), uid=kwargs["uid"]))


class ControlExecution(PostView):
    """Pause, resume or cancel an execution."""

    tag, serializer = "executions", ExecutionSerializer
    summary = "Pause, resume or cancel an execution"

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, RUN_CONTROL, study_of(get_visible(self.principal, executions(), uid=kwargs["uid"])))

    def change(self, request: Request, **kwargs: Any) -> Response:
        execution = executions().get(uid=kwargs["uid"])
        self.read_body(request)
        action: Callable[..., None] = {
            "pause": runs_control.pause_execution,
            "resume": runs_control.resume_execution,
            "cancel": runs_control.cancel_execution,
        }[kwargs["verb"]]
        action(execution, by=self.actor(), at=timezone.now())
        execution = executions().get(pk=execution.pk)
        return Response(sparse(request, ExecutionSerializer, [execution])[0])


class Runs(ListView):
    """Runs of visible studies."""

    tag, summary, serializer = "runs", "List runs", RunSerializer
    filters = (
        OfPlan("study", "plan_version__in", by="plan__study__slug"),
        OfPlan("plan", "plan_version__in", "uuid"),
        Filter("execution", "execution__uid", "uuid"),
        Filter("arm", "arm__key"),
        Filter("seed", "seed"),
        Filter("state", "head__state", choices=tuple(RUN_TRANSITIONS)),
        Filter("name", "name"),
        Filter("created_after", "created_at__gt", "time"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, runs())


class OneRun(DetailView):
    """One run."""

    tag, summary, serializer = "runs", "Read a run", RunSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, runs(), uid=kwargs["uid"])


class ControlRun(PostView):
    """Pause, resume or cancel a run."""

    tag, serializer = "runs", RunSerializer
    summary = "Pause, resume or cancel a run"

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, RUN_CONTROL, study_of(get_visible(self.principal, runs(), uid=kwargs["uid"])))

    def change(self, request: Request, **kwargs: Any) -> Response:
        run = runs().get(uid=kwargs["uid"])
        self.read_body(request)
        action: Callable[..., None] = {
            "pause": runs_control.pause_run,
            "resume": runs_control.resume_run,
            "cancel": runs_control.cancel_run,
        }[kwargs["verb"]]
        action(run, by=self.actor(), at=timezone.now())
        return Response(sparse(request, RunSerializer, [runs().get(pk=run.pk)])[0])


class SeriesSerializer(s.Serializer[Any]):
    """Every stored point of a series. ``y`` null: the metric does not exist there; never a zero."""

    key = s.CharField()
    title = s.CharField()
    unit = s.CharField()
    axis = s.CharField()
    layer = s.CharField()
    x = s.ListField(child=s.FloatField())
    y = s.ListField(child=NumberOrNull())


class DefinitionSerializer(s.Serializer[Any]):
    """A series that a run may have."""

    key = s.CharField()
    title = s.CharField()
    unit = s.CharField()
    axis = s.CharField()
    layer = s.CharField(help_text="L1 to L6")


class SeriesListSerializer(s.Serializer[Any]):
    """Every series by its key."""

    items = DefinitionSerializer(many=True)


class AllSeries(DetailView):
    """Which series there are."""

    tag, summary, serializer = "runs", "List the series of a run", SeriesListSerializer
    takes_fields = False

    def get(self, request: Request, **kwargs: Any) -> Response:
        """Keys, titles and axes; the points lie in each one's own address."""
        check_parameters(request, ())
        get_visible(self.principal, runs(), uid=kwargs["uid"])
        return Response({"items": [_described(definition) for definition in DEFINITIONS.values()]})


def _described(definition: Definition) -> dict[str, str]:
    return {
        "key": definition.key,
        "title": str(definition.title),
        "unit": str(definition.unit),
        "axis": str(definition.axis),
        "layer": definition.layer,
    }


class Series(DetailView):
    """A series of a run, all points of it."""

    tag, summary, serializer = "runs", "Read a series of a run", SeriesSerializer
    takes_fields = False

    def get(self, request: Request, **kwargs: Any) -> Response:
        """The points."""
        check_parameters(request, ())
        run = get_visible(self.principal, runs(), uid=kwargs["uid"])
        definition = DEFINITIONS.get(kwargs["key"])
        if definition is None:
            raise invalid("key", kwargs["key"], f"one of {', '.join(DEFINITIONS)}", 404)
        points = definition.read(run)
        return Response(
            {
                **_described(definition),
                "x": [x for x, _, _ in points],
                "y": [{"nonfinite": word} if word else encode_float(y) for _, y, word in points],
            }
        )


class Jobs(ListView):
    """Jobs of visible studies."""

    tag, summary, serializer = "jobs", "List jobs", JobSerializer
    filters = (
        Filter("run", "run__uid", "uuid"),
        Filter("execution", "execution__uid", "uuid"),
        Filter("state", "state", choices=tuple(JOB_TRANSITIONS)),
        Filter("kind", "kind"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible_jobs(self.principal, jobs())


class OneJob(DetailView):
    """One job."""

    tag, summary, serializer = "jobs", "Read a job", JobSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        from django.http import Http404

        found = visible_jobs(self.principal, jobs()).filter(uid=kwargs["uid"]).first()
        if found is None:
            raise Http404("no job that you can see matches")
        return found
