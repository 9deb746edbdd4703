"""Liveness, readiness, metrics."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from runs.access import Principal, principal_of
from runs.actions.tokens import token_of
from workbench.operations import readiness
from workbench.operations.metrics import exposition

FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-Ip", "X-Forwarded-Host", "X-Forwarded-Proto", "Via")
CHALLENGE = 'Bearer realm="workbench"'


@require_safe
@never_cache
def alive(request: HttpRequest) -> HttpResponse:
    """Says that the web process answers; touches no database."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
@never_cache
def ready(request: HttpRequest) -> HttpResponse:
    """200 where this server can do its work, 503 with the failed check where it cannot."""
    is_ready, body = readiness.answer()
    return JsonResponse(body, status=200 if is_ready else 503)


def is_on_this_machine(request: HttpRequest) -> bool:
    """The caller's own connection comes from the loopback, and no proxy says that it speaks for somebody else."""
    if any(request.headers.get(name) is not None for name in FORWARDED):
        return False
    try:
        return ipaddress.ip_address(str(request.META.get("REMOTE_ADDR", ""))).is_loopback
    except ValueError:
        return False


def _caller(request: HttpRequest) -> Principal | None:
    """The principal by token or session; None for a token that opens nothing."""
    header = request.headers.get("Authorization", "")
    if not header:
        return principal_of(request)
    scheme, _, secret = header.partition(" ")
    token = token_of(secret.strip(), timezone.now()) if scheme.lower() == "bearer" else None
    return None if token is None else Principal(token.user, token)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text, for a site admin, an admin's token with scope admin, or (where switched on) this machine."""
    if not (settings.METRICS_PUBLIC and is_on_this_machine(request)):
        caller = _caller(request)
        if caller is None or caller.user is None:
            answer = HttpResponse("metrics: a site admin's session or token is needed\n", status=401)
            answer["Content-Type"], answer["WWW-Authenticate"] = "text/plain", CHALLENGE
            return answer
        if not caller.is_site_admin:
            return HttpResponse(
                "metrics: a site admin is needed, and the scope admin of a token\n",
                status=403,
                content_type="text/plain",
            )
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)
