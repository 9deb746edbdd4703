"""Rate limits of one user, or of one address where nobody is signed in; reads and changes apart.

A bucket holds as many requests as a minute allows and fills steadily. The answer says what is left
(``RateLimit-Policy`` and ``RateLimit``); a refused request is told when to come again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from workbench.middleware import client_address

SAFE = ("GET", "HEAD", "OPTIONS")
PERIOD = 60.0  # seconds
_lock = threading.Lock()  # two threads of one process must not take the same request out of a bucket


def policy(scope: str) -> int:
    """Requests per minute that a scope allows."""
    return int(settings.API_RATES[scope])


def take(key: str, limit: int, now: float) -> tuple[bool, float, float]:
    """(whether a request may be taken out of the bucket, how many are left, seconds until one is there)."""
    with _lock:
        left, at = cache.get(key) or (float(limit), now)
        left = min(float(limit), left + max(0.0, now - at) * limit / PERIOD)
        allowed = left >= 1.0
        left -= 1.0 if allowed else 0.0
        cache.set(key, [left, now], PERIOD * 2)
    return allowed, left, 0.0 if left >= 1.0 else (1.0 - left) * PERIOD / limit


class Throttle(BaseThrottle):
    """One scope; requests of the other kind pass it untouched."""

    scope = "read"
    clock: Callable[[], float] = staticmethod(time.time)
    _wait = 0.0

    def allow_request(self, request: Request, view: object) -> bool:
        """Whether the request may go on; notes what is left for the answer's headers."""
        if (request.method in SAFE) != (self.scope == "read"):
            return True
        limit, user = policy(self.scope), request.user
        who = f"u{user.pk}" if user and user.is_authenticated else f"a{client_address(request._request)}"
        allowed, left, self._wait = take(f"api-rate:{self.scope}:{who}", limit, self.clock())
        full = math.ceil((limit - left) * PERIOD / limit)
        request._request.rate_limit = {
            "RateLimit-Policy": f'"{self.scope}";q={limit};w={PERIOD:.0f}',
            "RateLimit": f'"{self.scope}";r={int(left)};t={full}',
        }
        return allowed

    def wait(self) -> float:
        """Seconds until a request is there again."""
        return self._wait


class ReadThrottle(Throttle):
    """Requests that change nothing."""


class ChangeThrottle(Throttle):
    """Requests that ask for a change."""

    scope = "change"
