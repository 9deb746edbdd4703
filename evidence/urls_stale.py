"""Addresses of the pages of what is stale."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.views import stale

urlpatterns: list[URLPattern] = [
    path("stale/", stale.listing, name="stale"),
    path("stale/confirm/", stale.confirm, name="stale_confirm"),
    path("stale/record/", stale.record, name="stale_record"),
    path("stale/graph/<slug:kind>/<uuid:uid>/", stale.graph, name="stale_graph"),
]
