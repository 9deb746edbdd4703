"""Settings of accounts: signing in, throttling of failed logins, sessions, the shared cache.

Variables: WORKBENCH_SIGNUP (1: whoever reaches the server may make an account), WORKBENCH_TRUSTED_PROXIES
(how many proxies stand in front, each of which adds to X-Forwarded-For).
"""

from __future__ import annotations

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured


def read_number(name: str, default: int, most: int) -> int:
    """A variable that is a whole number from 0. Raises ``ImproperlyConfigured`` for anything else."""
    text = os.environ.get(name, "").strip() or str(default)
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        raise ImproperlyConfigured(f"{name}: got {text!r}, expected a whole number from 0 to {most}")
    return int(text)


def cache_backend() -> dict[str, Any]:
    """Counters of the throttles: in memory, for the web server is one process; in Redis where one is configured."""
    url = os.environ.get("WORKBENCH_BROKER_URL", "").strip() or os.environ.get("REDIS_URL", "").strip()
    if not url:
        return {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "workbench"}
    return {"BACKEND": "workbench.caches.SharedCache", "LOCATION": url, "KEY_PREFIX": "workbench"}


AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
ACCOUNT_ADAPTER = "runs.views.people.signin.Adapter"
ACCOUNT_FORMS = {"login": "runs.views.people.signin.LoginForm"}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60  # seconds
LOGIN_FAILURES_WAIT = 5 * 60  # seconds; the longest window of login_failed below
ACCOUNT_RATE_LIMITS = {
    "login": "30/m/ip",
    "login_failed": "20/m/ip,5/5m/key",  # key: the name that was tried
    "signup": "10/m/ip",
    "change_password": "5/m/user",
    "reauthenticate": "10/m/user",
}
WORKBENCH_SIGNUP = read_number("WORKBENCH_SIGNUP", 0, 1) == 1
ALLAUTH_TRUSTED_PROXY_COUNT = read_number("WORKBENCH_TRUSTED_PROXIES", 0, 10)

CACHES = {"default": cache_backend()}

SESSION_COOKIE_AGE = 14 * 24 * 3600  # seconds
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True  # forms carry the value; no script reads the cookie
CSRF_COOKIE_SAMESITE = "Lax"
