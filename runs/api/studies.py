"""Studies: list, found, read."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import may_create_study, visible_studies
from runs.actions.studies import StudyExists, create_study
from runs.api.base import ApiView, DetailView, Filter, ListView, PostView, sparse
from runs.api.problems import ApiProblem, faults_of
from runs.api.serializers import StrictText, StudySerializer
from runs.errors import NotAllowed
from runs.models import Study

VISIBILITIES = ("private", "internal", "public")


class NewStudyBody(s.Serializer[Any]):
    """A study to found; its founder becomes its admin."""

    slug = StrictText(max_length=64, help_text="3 to 64 lower-case letters, digits or dashes")
    title_en = StrictText(max_length=300)
    title_zh = StrictText(max_length=300, default="", allow_blank=True)
    summary_en = StrictText(max_length=4000, default="", allow_blank=True)
    summary_zh = StrictText(max_length=4000, default="", allow_blank=True)
    visibility = s.ChoiceField(choices=VISIBILITIES, default="private")


class Studies(ListView, PostView):
    """Visible studies, and new ones."""

    tag, serializer, body, status_code = "studies", StudySerializer, NewStudyBody, 201
    summary, post_summary = "List studies", "Found a study"
    filters = (Filter("visibility", "visibility", choices=VISIBILITIES),)

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible_studies(self.principal)

    def allow(self, **kwargs: Any) -> None:
        if not may_create_study(self.principal):
            raise NotAllowed("study: got a token without the scope write, expected one with it")

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, user = self.read_body(request), self.principal.user
        assert user is not None
        try:
            study = create_study(
                given["slug"],
                title={"en": given["title_en"], "zh": given["title_zh"]},
                summary={"en": given["summary_en"], "zh": given["summary_zh"]},
                visibility=given["visibility"],
                by=user,
                at=timezone.now(),
            )
        except StudyExists as error:
            raise ApiProblem(409, str(error), errors=faults_of(str(error))) from error
        return Response(
            sparse(request, StudySerializer, [study])[0],
            status=201,
            headers={"Location": f"/api/v1/studies/{study.slug}"},
        )


class OneStudy(DetailView):
    """One study by its slug."""

    tag, summary, serializer = "studies", "Read a study", StudySerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_study(self, kwargs["slug"])


def get_study(view: ApiView, slug: str) -> Study:
    """The visible study."""
    found = visible_studies(view.principal).filter(slug=slug).first()
    if found is None:
        raise Http404("no study that you can see matches")
    return found
