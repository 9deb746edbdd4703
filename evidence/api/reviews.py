"""Reviews over the API: the queue, holds, verdicts, answers; the same actions as the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from evidence import queue as waiting
from evidence.actions import reviews as actions
from evidence.api import review_bodies as bodies
from evidence.models import Claim, ClaimVersion, Link, Review
from runs.access import EVIDENCE_WRITE, REVIEW_WRITE, can, get_visible, require, visible, visible_studies
from runs.api.base import ApiView, DetailView, Filter, ListView, PostView, check_parameters, limit_of, sparse
from runs.api.problems import invalid
from runs.errors import NotAllowed
from runs.models import Study


def reviews() -> QuerySet[Review]:
    """Reviews with what their representation reads."""
    return Review.objects.select_related("study", "claim", "claim_version", "link", "actor").prefetch_related(
        "answers__actor", "answers__claim_version", "answers__review"
    )


def _study(view: ApiView, slug: str | None) -> Study | None:
    """The visible study of that slug. Raises a problem that names the parameter."""
    if slug is None:
        return None
    found = visible_studies(view.principal).filter(slug=slug).first()
    if found is None:
        raise invalid("study", slug, "the slug of a study that you can see", 400)
    return found


class Queue(ApiView):
    """What waits for a person."""

    tag, summary, serializer = "reviews", "The review queue", bodies.QueueSerializer
    parameters = (
        Filter("study", "", help="slug; absent: every visible study"),
        Filter("kind", "", choices=actions.KINDS, help="absent: the first of every kind"),
        Filter("after", "", "integer", help="next_after of the last page; of one kind only"),
        Filter("limit", "", "integer", help="1 to 200, 50 by default"),
    )

    def get(self, request: Request, **kwargs: Any) -> Response:
        """Counts by kind and the items of a page."""
        check_parameters(request, [item.name for item in self.parameters])
        given = {item.name: item.value(request.query_params[item.name]) for item in self.parameters
                 if item.name in request.query_params}  # fmt: skip
        study, kind, after = _study(self, given.get("study")), given.get("kind"), given.get("after", 0)
        if after and kind is None:
            raise invalid("after", str(after), "a parameter kind with it", 400)
        limit = limit_of(request, most=200)
        found = waiting.queue_items(
            self.principal, study, kind, at=timezone.now(), limit=limit + 1, after=max(0, after)
        )
        more = len(found) > limit and kind is not None
        found = found[:limit]
        return Response(
            {
                "counts": waiting.counts(self.principal, study),
                "items": [bodies.QueueItemSerializer().to_representation(item) for item in found],
                "next_after": found[-1].key if more else None,
            }
        )


class OfItem(PostView):
    """A change of one item's hold."""

    tag = "reviews"

    def item(self, **kwargs: Any) -> waiting.Item:
        """The item, where the caller sees it."""
        return waiting.get_item(self.principal, kwargs["name"], at=timezone.now())

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, REVIEW_WRITE, self.item(**kwargs).study)


class Reserve(OfItem):
    """Hold an item. 409: another reviewer holds it."""

    summary, serializer, body = "Reserve an item", bodies.HeldSerializer, bodies.HoldBody

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, item = self.read_body(request), self.item(**kwargs)
        row = actions.reserve(item.study, item.name, by=self.actor(), at=timezone.now(), minutes=given["minutes"])
        return Response(sparse(request, bodies.HeldSerializer, [row])[0])


class Release(OfItem):
    """Let an item go."""

    summary, serializer = "Release an item", bodies.ReleasedSerializer

    def change(self, request: Request, **kwargs: Any) -> Response:
        self.read_body(request)
        item = self.item(**kwargs)
        gone = actions.release(item.study, item.name, by=self.actor(), at=timezone.now())
        return Response({"item": item.name, "released": gone})


class Take(PostView):
    """Reserve the first item that nobody else holds. 404: nothing waits that the caller may review."""

    tag, summary, serializer, body = "reviews", "Take the next item", bodies.HeldSerializer, bodies.TakeBody

    def allow(self, **kwargs: Any) -> None:
        if not any(can(self.principal, REVIEW_WRITE, study) for study in visible_studies(self.principal)):
            raise NotAllowed(f"{REVIEW_WRITE}: got no study in which you review, expected a role or scope with it")

    def change(self, request: Request, **kwargs: Any) -> Response:
        given = self.read_body(request)
        study = _study(self, given["study"])
        if study is not None:
            require(self.principal, REVIEW_WRITE, study)
        if given["skip"]:
            actions.parse_item(given["skip"])
        row = waiting.take(
            self.principal, study, given["kind"], by=self.actor(), at=timezone.now(), skip=given["skip"],
            minutes=given["minutes"],
        )  # fmt: skip
        if row is None:
            raise Http404("nothing that you may review waits here")
        return Response(sparse(request, bodies.HeldSerializer, [row])[0])


class Reviews(ListView):
    """Reviews of visible studies."""

    tag, summary, serializer = "reviews", "List reviews", bodies.ReviewSerializer
    filters = (
        Filter("study", "study__slug"),
        Filter("claim", "claim__uid", "uuid"),
        Filter("link", "link__uid", "uuid"),
        Filter("verdict", "verdict", choices=Review.VERDICTS),
        Filter("independence", "independence", choices=(Review.SAME_FAMILY, Review.INDEPENDENT)),
        Filter("actor", "actor__name"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, reviews(), "study")


class OneReview(DetailView):
    """One review."""

    tag, summary, serializer = "reviews", "Read a review", bodies.ReviewSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, reviews(), "study", uid=kwargs["uid"])


class CreateReview(PostView):
    """Record a verdict. 403: the caller wrote a version of the claim or the link; 409: another holds the item."""

    tag, summary, serializer, body = "reviews", "Record a review", bodies.RecordedSerializer, bodies.NewReviewBody
    status_code = 201

    def claim(self, **kwargs: Any) -> Claim:
        """The claim, where the caller sees it."""
        return get_visible(self.principal, Claim.objects.select_related("study"), "study", uid=kwargs["uid"])

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, REVIEW_WRITE, self.claim(**kwargs).study)

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, claim, link = self.read_body(request), self.claim(**kwargs), None
        if given["link"] is not None:
            link = Link.objects.filter(study=claim.study, uid=given["link"]).first()
            if link is None:
                raise invalid("link", str(given["link"]), f"the uid of a link of claim {claim.key}")
        made = actions.review(
            claim, link=link, verdict=given["verdict"], reason=given["reason"], looked_at=given["looked_at"],
            by=self.actor(), at=timezone.now(),
        )  # fmt: skip
        row = reviews().get(pk=made.pk)
        return Response(
            sparse(request, bodies.RecordedSerializer, [row])[0], status=201,
            headers={"Location": f"/api/v1/reviews/{row.uid}"},
        )  # fmt: skip


class CreateAnswer(PostView):
    """Answer a dispute or a request for evidence. 403: the caller wrote the review."""

    tag, summary, serializer, body = "reviews", "Answer a review", bodies.AnswerSerializer, bodies.NewAnswerBody
    status_code = 201

    def review(self, **kwargs: Any) -> Review:
        """The review, where the caller sees it."""
        return get_visible(
            self.principal, Review.objects.select_related("study", "claim", "claim_version"), "study", uid=kwargs["uid"]
        )

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, EVIDENCE_WRITE, self.review(**kwargs).study)

    def change(self, request: Request, **kwargs: Any) -> Response:
        given, row, version = self.read_body(request), self.review(**kwargs), None
        if given["claim_version"] is not None:
            version = ClaimVersion.objects.filter(claim=row.claim, number=given["claim_version"]).first()
            if version is None:
                raise invalid("claim_version", str(given["claim_version"]), "the number of a version of the claim")
        made = actions.answer(row, given["text"], claim_version=version, by=self.actor(), at=timezone.now())
        return Response(
            sparse(request, bodies.AnswerSerializer, [made])[0], status=201,
            headers={"Location": f"/api/v1/reviews/{row.uid}"},
        )  # fmt: skip
