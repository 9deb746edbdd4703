"""Addresses of the pages of sources."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.views import source_intake as intake
from evidence.views import source_quote, sources

urlpatterns: list[URLPattern] = [
    path("sources/", sources.sources, name="sources"),
    path("sources/new/", intake.source_new, name="source_new"),
    path("sources/new/git/", intake.source_from_git, name="source_from_git"),
    path("sources/new/folder/", intake.source_watch, name="source_watch"),
    path("sources/folders/<int:pk>/scan/", intake.folder_scan, name="folder_scan"),
    path("sources/folders/<int:pk>/stop/", intake.folder_stop, name="folder_stop"),
    path("sources/<uuid:uid>/", sources.source, name="source"),
    path("sources/<uuid:uid>/quote/", source_quote.source_quote, name="source_quote"),
    path("sources/<uuid:uid>/check/", intake.source_check, name="source_check"),
    path("sources/<uuid:uid>/take-in/", intake.source_take_in, name="source_take_in"),
    path("sources/<uuid:uid>/bytes/<int:number>/", sources.source_bytes, name="source_bytes"),
    path("sources/<uuid:uid>/diff/<int:before>/<int:after>/", sources.source_difference, name="source_difference"),
]
