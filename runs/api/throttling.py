"""Rate limits: of one user (or one address where nobody is signed in), reads and changes apart."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle


class _Throttle(SimpleRateThrottle):
    safe = True

    def allow_request(self, request: Request, view: Any) -> bool:
        """Only requests of its own kind count."""
        if (request.method in ("GET", "HEAD", "OPTIONS")) != self.safe:
            return True
        allowed: bool = super().allow_request(request, view)
        return allowed

    def get_cache_key(self, request: Request, view: Any) -> str:
        """By user, else by address."""
        who = f"u{request.user.pk}" if request.user and request.user.is_authenticated else self.get_ident(request)
        return self.cache_format % {"scope": self.scope, "ident": who}


class ReadThrottle(_Throttle):
    """Requests that change nothing."""

    scope = "read"


class ChangeThrottle(_Throttle):
    """Requests that ask for a change."""

    scope, safe = "change", False
