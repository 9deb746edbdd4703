"""Who calls: a script with ``Authorization: Bearer wb_...``, or a browser with its session (and CSRF token)."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from runs.access import Principal
from runs.actions.tokens import token_of
from runs.models import ApiToken, User

REALM = 'Bearer realm="workbench"'


class BearerToken(BaseAuthentication):
    """A stored token. A wrong one is refused, never treated as nobody."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """(user, token), or None where no Authorization header is given."""
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer":
            raise AuthenticationFailed(f"Authorization: got scheme {scheme[:20]!r}, expected Bearer")
        token = token_of(secret.strip(), timezone.now())
        if token is None:
            raise AuthenticationFailed(
                "Authorization: got a token that is unknown, expired or revoked, expected a live one"
            )
        principal = Principal(token.user, token)
        request._request.principal = principal
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Makes a refusal a 401 with this challenge."""
        return REALM


class Session(SessionAuthentication):
    """The browser's session; changes need its CSRF token."""


def principal_of(request: Request) -> Principal:
    """The principal that authentication found."""
    user: Any = request.user
    token = request.auth if isinstance(request.auth, ApiToken) else None
    return Principal(user if isinstance(user, User) and user.is_active else None, token)
