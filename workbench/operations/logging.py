"""The log fields of a request: its id, who asks, and the run, execution, job or study that its address names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from workbench.logcontext import log_fields

NAMED = ("run", "execution", "job", "study")


def user_of(request: HttpRequest) -> str | None:
    """Name of the user, as far as the request has found out already; a log line never queries the database."""
    principal = getattr(request, "principal", None)
    user = getattr(principal, "user", None) or getattr(request, "_cached_user", None)
    return user.get_username() or None if user is not None else None


def named_by(request: HttpRequest, name: str) -> str | None:
    """The uid (or the study's slug) that the matched address carries for ``name``."""
    match = request.resolver_match
    if match is None:
        return None
    if name in match.kwargs:
        return str(match.kwargs[name])
    route = (match.url_name or "").replace("-", "_").split("_")[0]
    return str(match.kwargs["uid"]) if "uid" in match.kwargs and route in (name, f"{name}s") else None


def _asks(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


class RequestFields:
    """Set the fields around the request; they are asked for when a line is written."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        fields = {
            "request_id": getattr(request, "id", None),
            "user": _asks(user_of, request),
            **{name: _asks(named_by, request, name) for name in NAMED},
        }
        request.log_fields = fields  # type: ignore[attr-defined]  # for what is logged about the answer
        with log_fields(**fields):
            return self.get_response(request)
