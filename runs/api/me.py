"""Who asks, what they may do, and their tokens."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import SCOPES, capabilities, visible_studies
from runs.actions.tokens import issue_token, revoke_token
from runs.api.base import ApiView, ListView, PostView, check_parameters
from runs.api.problems import ApiProblem
from runs.api.serializers import TokenSerializer
from runs.errors import NotAllowed
from runs.models import ApiToken, User


class MeSerializer(s.Serializer[Any]):
    """The caller. ``user`` null: nobody is signed in. ``studies``: what may be done in each visible one.

    ``account_site_admin``: what the account is. ``site_admin``: whether this request may act as one; a token
    needs the scope admin for it.
    """

    user = s.CharField(allow_null=True)
    account_site_admin = s.BooleanField()
    site_admin = s.BooleanField()
    token = TokenSerializer(allow_null=True)
    studies = s.DictField(child=s.ListField(child=s.CharField()))


class Me(ApiView):
    """The caller's identity and rights."""

    tag, summary, serializer = "me", "Who am I", MeSerializer

    def get(self, request: Request, **kwargs: Any) -> Response:
        """User, token and capabilities by study."""
        check_parameters(request, ())
        principal = self.principal
        studies = visible_studies(principal)[:200]
        return Response(
            {
                "user": principal.user.get_username() if principal.user else None,
                "account_site_admin": principal.user is not None and principal.user.is_superuser,
                "site_admin": principal.is_site_admin,
                "token": TokenSerializer().to_representation(principal.token) if principal.token else None,
                "studies": {study.slug: sorted(capabilities(principal, study)) for study in studies},
            }
        )


class NewTokenBody(s.Serializer[Any]):
    """A token to make."""

    name = s.CharField(max_length=100)
    scopes = s.ListField(child=s.ChoiceField(choices=sorted(SCOPES)), min_length=1, max_length=len(SCOPES))
    expires_at = s.DateTimeField(allow_null=True, default=None)


class NewTokenSerializer(TokenSerializer):
    """A token just made; ``secret`` is shown now and never again."""

    secret = s.CharField()


def _owner(view: ApiView) -> User:
    """The signed-in person; a token can make and end no tokens, or it could outlive its own revocation."""
    if view.principal.token is not None:
        raise NotAllowed("token: got a token, expected a signed-in person; tokens are made and revoked in a session")
    view.actor()
    assert view.principal.user is not None
    return view.principal.user


class Tokens(ListView, PostView):
    """The caller's tokens."""

    tag, summary, serializer, body = "me", "List my tokens", TokenSerializer, NewTokenBody
    takes_key = False
    post_summary, post_serializer, status_code = "Make a token (session only)", NewTokenSerializer, 201

    def rows(self, request: Request, **kwargs: Any) -> Any:
        self.actor()
        return ApiToken.objects.filter(user=self.principal.user)

    def post(self, request: Request, **kwargs: Any) -> Response:
        """Not repeatable with an Idempotency-Key: the answer holds a secret, which is stored nowhere."""
        owner = _owner(self)
        if "Idempotency-Key" in request.headers:
            raise ApiProblem(400, "Idempotency-Key: got one, expected none: the answer holds a secret and is not kept")
        given = self.read_body(request)
        token, secret = issue_token(
            owner, name=given["name"], scopes=given["scopes"], expires_at=given["expires_at"], at=timezone.now()
        )
        return Response({**TokenSerializer().to_representation(token), "secret": secret}, status=201)


class OneToken(PostView):
    """Revoke a token; its row stays."""

    tag, summary, serializer = "me", "Revoke a token (session only)", TokenSerializer

    def allow(self, **kwargs: Any) -> None:
        _owner(self)

    def change(self, request: Request, **kwargs: Any) -> Response:
        owner = _owner(self)
        self.read_body(request)
        token = ApiToken.objects.filter(user=owner, prefix=kwargs["prefix"]).first()
        if token is None:
            raise Http404("no token of yours matches")
        revoke_token(token, by=owner, at=timezone.now())
        token.refresh_from_db()
        return Response(TokenSerializer().to_representation(token))
