"""Stale marks over the API: lists, what rests on what, and settling; the same actions as the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from evidence.actions import stale as actions
from evidence.api import stale_bodies as bodies
from evidence.models import StaleMark
from evidence.propagation import CAUSES, TARGETS, cause_of, dependants, study_of_cause
from runs.access import EVIDENCE_WRITE, get_visible, require, visible, visible_studies
from runs.api.base import ApiView, DetailView, Filter, ListView, PostView, check_parameters, sparse
from runs.api.problems import invalid
from runs.errors import DomainError

UNSEEN = "no such thing that you can see"  # the same words for what is absent and for what is hidden


def marks() -> QuerySet[StaleMark]:
    """Marks with what their representation reads."""
    return StaleMark.objects.select_related("study", "actor", "resolution__actor")


class StaleMarks(ListView):
    """Marks of visible studies."""

    tag, summary, serializer = "stale", "List stale marks", bodies.StaleMarkSerializer
    filters = (
        Filter("study", "study__slug"),
        Filter("cause_kind", "cause_kind", choices=CAUSES),
        Filter("cause", "cause_uid", "uuid"),
        Filter("target_kind", "target_kind", choices=TARGETS),
        Filter("target", "target_uid", "uuid"),
        Filter("open", "resolution__isnull", "boolean", help="true: not settled yet; false: settled"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, marks(), "study")


class OneStaleMark(DetailView):
    """One mark."""

    tag, summary, serializer = "stale", "Read a stale mark", bodies.StaleMarkSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, marks(), "study", uid=kwargs["uid"])


class Settle(PostView):
    """Settle a mark. 422: it is settled, still rests on what changed, or lacks a note."""

    tag, summary, serializer, body = "stale", "Settle a stale mark", bodies.StaleMarkSerializer, bodies.SettleBody

    def mark(self, **kwargs: Any) -> StaleMark:
        """The mark, where the caller sees it."""
        return get_visible(self.principal, marks(), "study", uid=kwargs["uid"])

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, self.mark(**kwargs).study)

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, mark = self.read_body(request), self.mark(**kwargs)
        actions.settle(mark, given["how"], given["note"], by=self.actor(), at=timezone.now())
        return Response(sparse(request, bodies.StaleMarkSerializer, [self.mark(**kwargs)])[0])


class Dependants(ApiView):
    """What rests on one thing."""

    tag, summary, serializer = "stale", "What rests on it", bodies.DependantsSerializer
    parameters = (
        Filter("kind", "", choices=CAUSES, help="of the cause"),
        Filter("uid", "", "uuid", help="of the cause"),
    )

    def get(self, request: Request, **kwargs: Any) -> Response:
        """Figures, claims and sections, each with a shortest path."""
        check_parameters(request, [item.name for item in self.parameters])
        given = {}
        for item in self.parameters:
            if item.name not in request.query_params:
                raise invalid(item.name, "", "a value", 400)
            given[item.name] = item.value(request.query_params[item.name])
        try:
            study = study_of_cause(given["kind"], given["uid"])
        except DomainError as error:
            raise Http404(UNSEEN) from error
        if not visible_studies(self.principal).filter(pk=study.pk).exists():
            raise Http404(UNSEEN)
        kind, uid = cause_of(given["kind"], given["uid"])
        found = [
            {"kind": path.kind, "uid": path.uid, "path": [list(step) for step in path.steps]}
            for path in dependants(kind, uid)
        ]
        return Response({"kind": kind, "uid": uid, "study": study.slug, "dependants": found})
