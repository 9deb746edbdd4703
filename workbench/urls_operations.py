"""Addresses of liveness, readiness and metrics."""

from __future__ import annotations

from django.urls import path

from workbench.operations import views

urlpatterns = [
    path("healthz", views.alive, name="alive"),
    path("readyz", views.ready, name="ready"),
    path("metrics", views.metrics, name="metrics"),
]
