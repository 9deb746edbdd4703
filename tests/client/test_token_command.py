"""``manage.py token``: the secret alone on standard output, and a token that works for its user only."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.actions.tokens import token_of
from runs.models import ApiToken, User

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("token", *arguments, stdout=out)
    return out.getvalue()


def test_the_secret_stands_alone_and_opens_its_users_account() -> None:
    user = User.objects.create(username="mara")
    secret = said("--user", "mara", "--name", "script").strip()
    token = token_of(secret, timezone.now())
    assert token is not None and token.user == user and token.scopes == ["read", "write"]
    assert token.expires_at is not None and 29 <= (token.expires_at - timezone.now()).days <= 30
    assert secret not in str(ApiToken.objects.values_list().get())


def test_json_scopes_and_no_expiry() -> None:
    User.objects.create(username="mara")
    found = json.loads(said("--user", "mara", "--name", "x", "--scopes", "read", "--days", "0", "--json"))
    token = token_of(found["secret"], timezone.now())
    assert token is not None and (token.scopes, token.expires_at, found["expires_at"]) == (["read"], None, None)


@pytest.mark.parametrize(
    ("arguments", "said_of"),
    [
        (("--user", "nobody", "--name", "x"), "--user: got 'nobody'"),
        (("--user", "mara", "--name", "x", "--days", "-1"), "--days: got -1"),
        (("--user", "mara", "--name", "x", "--scopes", "everything"), "scopes: got everything"),
        (("--user", "mara", "--name", ""), "name: got 0 characters"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], said_of: str) -> None:
    User.objects.create(username="mara")
    with pytest.raises(CommandError, match=said_of):
        said(*arguments)
    assert not ApiToken.objects.exists()
