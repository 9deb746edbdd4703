"""Addresses of the REST API of what is stale, under /api/v1/. No trailing slash."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.api import stale

urlpatterns: list[URLPattern] = [
    path("stale-marks", stale.StaleMarks.as_view(), name="stale_marks"),
    path("stale-marks/<uuid:uid>", stale.OneStaleMark.as_view(), name="stale_mark"),
    path("stale-marks/<uuid:uid>/settle", stale.Settle.as_view(), name="stale_settle"),
    path("dependants", stale.Dependants.as_view(), name="dependants"),
]
