"""Addresses of the pages of reviews."""

from __future__ import annotations

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
