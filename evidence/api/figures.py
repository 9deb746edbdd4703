"""Excerpts and figures over the API: taken, bound, checked and computed again by the rules of the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure, check_figure, refresh_figure
from evidence.api import figures_serializers as bodies
from evidence.models import Excerpt, ExcerptHead, Figure, FigureVersion, Source, SourceVersion
from evidence.presenters.figures import show_bound
from runs.access import EVIDENCE_WRITE, get_visible, require, visible
from runs.api.base import DetailView, Filter, ListView, PostView, sparse
from runs.api.problems import invalid
from runs.api.studies import get_study
from runs.models import PlanVersion, Study

STATES = (
    ExcerptHead.FOUND, ExcerptHead.MOVED, ExcerptHead.ORPHAN, ExcerptHead.TRANSCRIBED, ExcerptHead.UNAVAILABLE,
)  # fmt: skip


def excerpt_rows() -> QuerySet[Excerpt]:
    """Excerpts with what their representation reads."""
    return Excerpt.objects.select_related("study", "version__source", "head", "actor")


def figure_rows() -> QuerySet[Figure]:
    """Bound figures with what their representation reads."""
    rows = Figure.objects.filter(current__isnull=False)
    return rows.select_related("study", "current__plan_version", "current__actor").defer(
        "current__plan_version__bytes", "current__plan_version__strict_pairs"
    )


class Excerpts(ListView):
    """Excerpts of visible studies."""

    tag, summary, serializer = "evidence", "List excerpts", bodies.ExcerptSerializer
    filters = (
        Filter("study", "study__slug"),
        Filter("source", "version__source__uid", "uuid"),
        Filter("key", "key"),
        Filter("kind", "kind", choices=(Excerpt.MATCHED, Excerpt.TRANSCRIBED)),
        Filter("state", "head__state", choices=STATES),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, excerpt_rows(), "study")


class OneExcerpt(DetailView):
    """One excerpt."""

    tag, summary, serializer = "evidence", "Read an excerpt", bodies.ExcerptSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, excerpt_rows(), "study", uid=kwargs["uid"])


class OfStudy(PostView):
    """A change of a study's evidence."""

    tag = "evidence"

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, self.study(**kwargs))

    def study(self, **kwargs: Any) -> Study:
        """The visible study."""
        return get_study(self, kwargs["slug"])


class CreateExcerpt(OfStudy):
    """Take an excerpt: found exactly once in held bytes, or transcribed from a source that is only claimed."""

    summary, serializer, body, status_code = "Take an excerpt", bodies.ExcerptSerializer, bodies.NewExcerptBody, 201

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), self.study(**kwargs)
        made = add_excerpt(
            study, _version(study, given.pop("source"), given.pop("version")), given.pop("key"), given.pop("form"),
            given.pop("selector"), by=self.actor(), at=timezone.now(), **given,
        )  # fmt: skip
        return _created(request, bodies.ExcerptSerializer, excerpt_rows().get(pk=made.pk), "excerpts")


def _created(request: Request, serializer: Any, row: Any, name: str) -> Response:
    return Response(
        sparse(request, serializer, [row])[0], status=201, headers={"Location": f"/api/v1/{name}/{row.uid}"}
    )


def _version(study: Study, path: str, uid: Any) -> SourceVersion:
    """The version that an excerpt is taken from. Raises a problem that names the member."""
    if uid is not None:
        found = SourceVersion.objects.filter(study=study, uid=uid).select_related("source").first()
        if found is None:
            raise invalid("version", str(uid), "the uid of a version of a source of this study")
        return found
    source = Source.objects.filter(study=study, path=path).select_related("current__source").first()
    if source is None or source.current is None:
        raise invalid("source", path, "the path of a source of this study")
    return source.current


def plan_version_of(study: Study, uid: Any) -> PlanVersion | None:
    """A frozen version of the study's plans. Raises a problem that names the member."""
    if uid is None:
        return None
    found = PlanVersion.objects.filter(plan__study=study, uid=uid).select_related("plan").first()
    if found is None:
        raise invalid("plan_version", str(uid), "the uid of a frozen plan version of this study")
    return found


class Figures(ListView):
    """Figures of visible studies."""

    tag, summary, serializer = "evidence", "List figures", bodies.FigureSerializer
    filters = (
        Filter("study", "study__slug"),
        Filter("key", "key"),
        Filter("kind", "current__kind", choices=FigureVersion.KINDS),
        Filter("origin", "current__origin", choices=FigureVersion.ORIGINS),
        Filter("state", "state", choices=Figure.STATES),
        Filter("stale", "stale", "boolean"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, figure_rows(), "study")


class OneFigure(DetailView):
    """One figure with its versions."""

    tag, summary, serializer = "evidence", "Read a figure", bodies.FigureDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, figure_rows(), "study", uid=kwargs["uid"])


class BindFigure(OfStudy):
    """Bind a figure, or bind it anew; the same again changes nothing."""

    summary, serializer, body, status_code = "Bind a figure", bodies.FigureDetail, bodies.BindBody, 201

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), self.study(**kwargs)
        given["plan_version"] = plan_version_of(study, given["plan_version"])
        version = bind_figure(
            study, given.pop("key"), given.pop("binding"), by=self.actor(), at=timezone.now(), **given
        )
        return _created(request, bodies.FigureDetail, figure_rows().get(pk=version.figure_id), "figures")


class CheckBinding(OfStudy):
    """What a binding would give; stores nothing."""

    summary, serializer, body = "Check a binding", bodies.BindingChecked, bodies.BindingBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), self.study(**kwargs)
        given["plan_version"] = plan_version_of(study, given["plan_version"])
        bound = check_figure(study, given.pop("key"), given.pop("binding"), **given)
        return Response(show_bound(bound, given["style"], given["digits"]))


class CheckDerivation(OfStudy):
    """What an expression over figures gives, with its unit; stores nothing."""

    summary, serializer, body = "Check a derivation", bodies.BindingChecked, bodies.DerivationBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, study = self.read_body(request), self.study(**kwargs)
        bound = check_figure(study, "derivation", {"type": "derivation", **given}, kind="mechanism", origin="imported")
        return Response(show_bound(bound, "plain", 0))


class Recompute(PostView):
    """Compute a figure again: its state follows, its stored version never changes."""

    tag, summary, serializer = "evidence", "Recompute a figure", bodies.RecomputedSerializer

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, self.figure(**kwargs).study)

    def figure(self, **kwargs: Any) -> Figure:
        """The visible figure."""
        return get_visible(self.principal, figure_rows(), "study", uid=kwargs["uid"])

    def change(self, request: Request, **kwargs: Any) -> Response:
        self.read_body(request)
        figure = self.figure(**kwargs)
        found = refresh_figure(figure, by=self.actor(), at=timezone.now())
        stored = figure.current.value if figure.current else None
        return Response({**found._asdict(), "stored": stored})
