"""Environment controls: records, their slots, and the request for new ones."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import RUN_CONTROL, require
from runs.actions.record_controls import request_controls
from runs.api.base import DetailView, Filter, ListView, PostView, sparse
from runs.api.executions import jobs
from runs.api.problems import invalid
from runs.api.serializers import JobSerializer, StrictText, Text
from runs.api.studies import get_study
from runs.models import ControlSet, ControlSlot
from runs.presenters.controls import overview
from runs.tasksets import visible_controls
from workbench.contracts.controls import KINDS, ControlsSpec


class ControlSetSerializer(s.Serializer[Any]):
    """Controls of an environment version on a task set, the ``ordinal``-th time. ``splits`` empty: all."""

    uid = s.UUIDField()
    environment = Text()
    environment_version = Text()
    code_sha256 = Text()
    task_set = s.UUIDField(source="task_set.uid")
    verifier = Text()
    ordinal = s.IntegerField()
    splits = s.ListField(child=s.CharField())
    record_sha256 = Text()
    created_at = s.DateTimeField()


class ControlSetDetail(ControlSetSerializer):
    """With its overlapping counts, and how many tasks are admitted, refused, unknown."""

    counts = s.SerializerMethodField()
    tasks = s.SerializerMethodField()

    def get_counts(self, row: ControlSet) -> list[dict[str, Any]]:
        """Every category beside its denominator."""
        return [{"category": name, "count": count, "of": of} for name, count, of in overview(row).counts]

    def get_tasks(self, row: ControlSet) -> dict[str, int]:
        """Tasks by admission; the three parts are all of them."""
        found = overview(row)
        return {"admitted": found.admitted, "refused": found.refused, "unknown": found.unknown}


class ControlSlotSerializer(s.Serializer[Any]):
    """One task under one kind. ``as_expected`` null: not known, which is neither."""

    task = s.UUIDField(source="task.uid")
    key = Text(source="task.key")
    split = Text()
    kind = Text()
    expected = s.BooleanField()
    passed = s.BooleanField(help_text="the raw verdict: a test without an observation did not pass")
    complete = s.BooleanField()
    as_expected = s.BooleanField(allow_null=True)
    categories = s.ListField(child=s.CharField())
    tests = s.IntegerField()
    observed = s.JSONField()
    unknown = Text(allow_null=True)
    tree_sha256 = Text()
    level = s.JSONField()


class ControlsBody(s.Serializer[Any]):
    """Which environment, under which configuration, and tasks of which splits; none means all."""

    environment = StrictText(min_length=1, max_length=200)
    config = s.JSONField(required=False)
    splits = s.ListField(child=StrictText(min_length=1, max_length=32), required=False, max_length=20)


class Controls(ListView):
    """Records of environment controls on visible task sets."""

    tag, summary, serializer = "environment controls", "List records of environment controls", ControlSetSerializer
    filters = (
        Filter("environment", "environment"),
        Filter("task_set", "task_set__uid", "uuid"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible_controls(self.principal)


class OneControls(DetailView):
    """One record."""

    tag, summary, serializer = "environment controls", "Read a record of environment controls", ControlSetDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        found = visible_controls(self.principal).filter(uid=kwargs["uid"]).first()
        if found is None:
            raise Http404("no record of controls that you can see matches")
        return found


class ControlSlots(ListView):
    """Slots of one record."""

    tag, summary, serializer = "environment controls", "List slots of a record", ControlSlotSerializer
    filters = (
        Filter("split", "split"),
        Filter("kind", "kind", choices=tuple(KINDS)),
        Filter("complete", "complete", "boolean"),
        Filter("as_expected", "as_expected", "boolean"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        found = visible_controls(self.principal).filter(uid=kwargs["uid"]).first()
        if found is None:
            raise Http404("no record of controls that you can see matches")
        return ControlSlot.objects.filter(control_set=found).select_related("task")


class RequestControls(PostView):
    """Ask a worker for controls; the answer is the job."""

    tag, summary, serializer, body = "environment controls", "Run environment controls", JobSerializer, ControlsBody
    status_code = 202

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, RUN_CONTROL, get_study(self, kwargs["slug"]))

    def change(self, request: Request, **kwargs: Any) -> Response:
        given = self.read_body(request)
        config = given.get("config", {})
        if not isinstance(config, dict):
            raise invalid("config", config, "a JSON object")
        spec = ControlsSpec(given["environment"], config, tuple(given.get("splits", ())))
        job = request_controls(get_study(self, kwargs["slug"]), spec, by=self.actor(), at=timezone.now())
        return Response(sparse(request, JobSerializer, [jobs().get(pk=job.pk)])[0], status=202)
