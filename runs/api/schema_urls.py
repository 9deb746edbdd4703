"""The API's addresses as the schema sees them: with their prefix, and nothing else."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("api/v1/", include("evidence.api.urls")), path("api/v1/", include("runs.api.urls"))]
