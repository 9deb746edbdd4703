"""Addresses of liveness, readiness and metrics."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe


@require_safe
def alive(request: HttpRequest) -> HttpResponse:
    """Says that the web process answers; touches no database."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns = [path("healthz", alive, name="alive")]
