"""Errors that no view of the API saw: a problem below /api/, the page elsewhere."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views import defaults

from runs.access import ROLES
from runs.api.problems import answer
from runs.presenters.people import ROLE_WORDS

PREFIX = "/api/v1/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400 of the framework: a host that is not allowed, a malformed request."""
    if request.path.startswith(PREFIX):
        return answer(400, "request: got one that is malformed or for an unknown host, expected one that HTTP allows")
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 outside a view. The page names the roles that would do, where a missing capability is the cause."""
    if request.path.startswith(PREFIX):
        return answer(403, str(exception) or "not allowed")
    capability = getattr(exception.__cause__, "capability", "")
    words = [str(ROLE_WORDS[role]) for role, held in ROLES.items() if capability in held]
    return render(request, "403.html", {"roles": _(" or ").join(words)}, status=403)


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
