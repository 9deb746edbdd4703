"""Addresses of the REST API of reviews, under /api/v1/. No trailing slash."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.api import reviews
from evidence.urls_reviews import ITEM

urlpatterns: list[URLPattern] = [
    path("reviews", reviews.Reviews.as_view(), name="reviews"),
    path("reviews/queue", reviews.Queue.as_view(), name="review_queue"),
    path("reviews/queue/take", reviews.Take.as_view(), name="review_take"),
    path(f"reviews/queue/<{ITEM}:name>/reserve", reviews.Reserve.as_view(), name="review_reserve"),
    path(f"reviews/queue/<{ITEM}:name>/release", reviews.Release.as_view(), name="review_release"),
    path("reviews/<uuid:uid>", reviews.OneReview.as_view(), name="review"),
    path("reviews/<uuid:uid>/answers", reviews.CreateAnswer.as_view(), name="review_answer"),
    path("claims/<uuid:uid>/reviews", reviews.CreateReview.as_view(), name="claim_review"),
]
