"""Errors that no view of the API saw: a problem below /api/, the page elsewhere."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from runs.api.problems import answer

PREFIX = "/api/v1/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400 of the framework: a host that is not allowed, a malformed request."""
    if request.path.startswith(PREFIX):
        return answer(400, "request: got one that is malformed or for an unknown host, expected one that HTTP allows")
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 outside a view."""
    if request.path.startswith(PREFIX):
        return answer(403, str(exception) or "not allowed")
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 outside a view."""
    if request.path.startswith(PREFIX):
        return answer(404, f"{request.path}: got no such address")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest, *args: Any) -> HttpResponse:
    """500 outside a view."""
    if request.path.startswith(PREFIX):
        return answer(500, "The server failed; nothing was changed by this request unless a receipt says so.")
    return defaults.server_error(request)
