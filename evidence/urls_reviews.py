"""Addresses of the pages of reviews."""

from __future__ import annotations

from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter

from evidence.actions.reviews import KINDS
from evidence.views import reviews


class QueueItem(StringConverter):
    """``link:<uid>``: an item of the review queue."""

    regex = rf"(?:{'|'.join(KINDS)}):[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}"


ITEM = "queue_item"
register_converter(QueueItem, ITEM)

urlpatterns: list[URLPattern] = [
    path("reviews/", reviews.queue, name="reviews"),
    path("reviews/take/", reviews.take_next, name="review_take"),
    path("reviews/answers/<uuid:uid>/", reviews.answer, name="review_answer"),
    path(f"reviews/<{ITEM}:name>/", reviews.item, name="review_item"),
    path(f"reviews/<{ITEM}:name>/reserve/", reviews.hold, name="review_reserve"),
    path(f"reviews/<{ITEM}:name>/release/", reviews.let_go, name="review_release"),
    path(f"reviews/<{ITEM}:name>/record/", reviews.record, name="review_record"),
]
