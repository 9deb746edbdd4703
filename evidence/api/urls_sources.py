"""Addresses of the REST API of sources, under /api/v1/. No trailing slash."""

from __future__ import annotations

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
