"""Addresses of the REST API of sources, under /api/v1/. No trailing slash."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.api import sources

urlpatterns: list[URLPattern] = [
    path("studies/<slug:slug>/sources", sources.CreateSource.as_view(), name="source_create"),
    path("sources", sources.Sources.as_view(), name="sources"),
    path("sources/<uuid:uid>", sources.OneSource.as_view(), name="source"),
    path("sources/<uuid:uid>/versions", sources.Versions.as_view(), name="source_versions"),
    path("sources/<uuid:uid>/versions/<int:number>/bytes", sources.VersionBytes.as_view(), name="source_bytes"),
    path("sources/<uuid:uid>/check", sources.Check.as_view(), name="source_check"),
    path("sources/<uuid:uid>/difference", sources.Difference.as_view(), name="source_difference"),
]
