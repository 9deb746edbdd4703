"""What stands around every request: an id, response headers, refusals as answers, the audit log."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone

log = logging.getLogger(__name__)

Answer = Callable[[HttpRequest], HttpResponseBase]
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
RETRY_AFTER = "60"  # seconds, where a refusal for frequency does not say better


class ContentSecurityPolicy:
    """Send ``settings.CONTENT_SECURITY_POLICY`` with each response, and switch off unused browser features."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response
        self.policy = "; ".join(
            f"{name} {' '.join(sources)}" for name, sources in settings.CONTENT_SECURITY_POLICY.items()
        )

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", self.policy)
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        if response.status_code == 429:
            response.headers.setdefault("Retry-After", RETRY_AFTER)
        return response


CHECKS = frozenset({"set_language", "evidence:claim_check", "evidence:notes_check"})  # posts that never write
EDITORS = frozenset({"runs:plan_edit", "evidence:notes_edit"})  # posts that write where ``do`` says so


def _asks_no_change(request: HttpRequest, route: str) -> bool:
    """Posts that only choose how pages look, or ask what a text would mean."""
    return route in CHECKS or (route in EDITORS and request.POST.get("do") != "save")


class Audit:
    """Give the request an id, and write each one that asked for a change and reached a view into the audit log.

    Refused ones too. It stands outside the session and reads what the inner layers found. The id is the
    caller's ``X-Request-ID`` where it has a plain form, and is sent back under the same name.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        from runs.actions.audit import API, PAGE, Channel, channel

        given = request.headers.get("X-Request-ID", "")
        name = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        request.id = name  # type: ignore[attr-defined]
        came = Channel(API if request.path.startswith("/api/") else PAGE, name, client_address(request))
        with channel(came):
            response = self.get_response(request)
            if request.method not in SAFE and getattr(request, "_reached_view", False):
                self._record(request, response, came)
        response.headers["X-Request-ID"] = name
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        """Mark that the address leads to a view; the check of the CSRF token comes after this."""
        request._reached_view = True  # type: ignore[attr-defined]

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """A missing right is answered 403."""
        from runs.api.handlers import permission_denied
        from runs.errors import NotAllowed

        if not isinstance(exception, NotAllowed):
            return None
        denied = PermissionDenied(str(exception))
        denied.__cause__ = exception
        return permission_denied(request, denied)

    def _record(self, request: HttpRequest, response: HttpResponseBase, came: Any) -> None:
        from runs.actions.audit import record_request

        match = request.resolver_match
        route = match.view_name if match is not None else ""
        try:
            is_on_record = response.status_code < 400 and getattr(request, "leaves_own_record", False)
            if match is not None and not is_on_record and not _asks_no_change(request, route):
                record_request(request, status=response.status_code, came=came, at=timezone.now())
        except Exception:  # what was done stands; an answer that hides it would be worse than the missing line
            log.exception("audit: request %s to %s with status %d was not recorded", came.request_id, route,
                          response.status_code)  # fmt: skip


def client_address(request: HttpRequest) -> str:
    """The caller's address, behind as many trusted proxies as are configured; empty for a unix socket."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    proxies = int(settings.ALLAUTH_TRUSTED_PROXY_COUNT)
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    if proxies and len(forwarded) >= proxies:
        address = forwarded[-proxies]
    return address[:64]
