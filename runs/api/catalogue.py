"""Task sets, tasks, receipts and streams."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from rest_framework import serializers as s
from rest_framework.request import Request

from runs.api.base import ApiView, DetailView, Filter, ListView, check_parameters
from runs.api.downloads import send_bytes
from runs.api.serializers import ReceiptSerializer, StreamSerializer, TaskSerializer, TaskSetSerializer
from runs.models import Receipt, StreamHead, Task
from runs.tasksets import may_see_hidden, visible_task_sets
from runs.visibility import get_visible_receipt, stream_visible, visible_heads, visible_receipts


class TaskSets(ListView):
    """Task sets that visible plans bind."""

    tag, summary, serializer = "task sets", "List task sets", TaskSetSerializer
    filters = (Filter("environment", "environment"), Filter("sha256", "sha256__startswith"))

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible_task_sets(self.principal)


class OneTaskSet(DetailView):
    """One task set."""

    tag, summary, serializer = "task sets", "Read a task set", TaskSetSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        found = visible_task_sets(self.principal).filter(uid=kwargs["uid"]).first()
        if found is None:
            raise Http404("no task set that you can see matches")
        return found


class Tasks(ListView):
    """Tasks of visible sets."""

    tag, summary, serializer = "task sets", "List tasks", TaskSerializer
    filters = (
        Filter("task_set", "entries__task_set__uid", "uuid"),
        Filter("split", "split"),
        Filter("family", "family"),
        Filter("key", "key"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return Task.objects.filter(pk__in=Task.objects.filter(entries__task_set__in=visible_task_sets(self.principal)))


class TaskDetail(TaskSerializer):
    """A task; ``hidden`` null: not shown to this reader."""

    hidden = s.SerializerMethodField()

    def get_hidden(self, row: Task) -> Any:
        """The hidden reference, for those who may know it."""
        return row.hidden if may_see_hidden(self.context["request"].principal, row) else None


class OneTask(DetailView):
    """One task."""

    tag, summary, serializer = "task sets", "Read a task", TaskDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        request.principal = self.principal
        sets = visible_task_sets(self.principal)
        found = Task.objects.filter(uid=kwargs["uid"], entries__task_set__in=sets).first()
        if found is None:
            raise Http404("no task that you can see matches")
        return found


class Receipts(ListView):
    """Receipts of visible streams."""

    tag, summary, serializer = "receipts", "List receipts", ReceiptSerializer
    filters = (
        Filter("stream", "stream"),
        Filter("kind", "kind"),
        Filter("subject", "subject_uid", "uuid"),
        Filter("after_seq", "seq__gt", "integer"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        rows = Receipt.objects.select_related("actor")
        stream = request.query_params.get("stream")
        if stream is None or "\x00" in stream:
            return visible_receipts(self.principal, rows)
        # The name alone decides; the names of all visible streams would be a long list.
        return rows if stream_visible(self.principal, stream) else rows.none()


class OneReceipt(DetailView):
    """One receipt by its hash."""

    tag, summary, serializer = "receipts", "Read a receipt", ReceiptSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible_receipt(self.principal, sha256=kwargs["sha256"])


class ReceiptBytes(ApiView):
    """The canonical bytes that a receipt's hash covers."""

    tag, summary = "receipts", "Download a receipt's canonical bytes"
    is_download = True

    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """The bytes."""
        check_parameters(request, ())
        found = get_visible_receipt(self.principal, sha256=kwargs["sha256"])
        return send_bytes(
            request, bytes(found.bytes), found.sha256, f"receipt-{found.sha256}.json", "application/octet-stream"
        )


class Streams(ListView):
    """Heads of visible streams."""

    tag, summary, serializer = "receipts", "List receipt streams", StreamSerializer
    filters = (Filter("stream", "stream"),)

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[StreamHead]:
        return visible_heads(self.principal)
