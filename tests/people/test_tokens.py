"""API tokens: shape, what is stored, when one stops working, the audit log."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

import pytest

from runs.actions.tokens import MOST_ACTIVE, issue_token, revoke_token, token_of
from runs.errors import DomainError, NotAllowed
from runs.models import ApiToken, AuditEntry, User

AT = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture
def mara() -> User:
    return User.objects.create(username="mara")


def test_only_the_digest_is_stored(mara: User) -> None:
    """43 characters out of 62 are 256.03 bits; the row holds SHA-256 of the whole, and the prefix."""
    token, secret = issue_token(mara, name="  night runs ", scopes=["write", "read"], expires_at=None, at=AT)
    assert re.fullmatch(r"wb_[A-Za-z0-9]{8}_[A-Za-z0-9]{43}", secret)
    row = ApiToken.objects.values().get(pk=token.pk)
    assert row["digest"] == hashlib.sha256(secret.encode()).hexdigest()
    assert (row["name"], row["scopes"], row["prefix"]) == ("night runs", ["read", "write"], secret.split("_")[1])
    assert not [name for name, value in row.items() if secret in str(value) or secret.split("_")[2] in str(value)]
    found = token_of(secret, AT)
    assert found is not None and found.user == mara


def test_two_tokens_differ(mara: User) -> None:
    made = {issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)[1] for _ in range(3)}
    assert len(made) == 3


def test_it_ends_with_its_time_its_revocation_and_its_user(mara: User) -> None:
    token, secret = issue_token(mara, name="a", scopes=["read"], expires_at=AT + timedelta(hours=1), at=AT)
    assert token_of(secret, AT + timedelta(minutes=59)) is not None
    assert token_of(secret, AT + timedelta(hours=1)) is None
    mara.is_active = False
    mara.save()
    assert token_of(secret, AT) is None
    mara.is_active = True
    mara.save()
    revoke_token(token, by=mara, at=AT)
    assert token_of(secret, AT) is None
    again = revoke_token(token, by=mara, at=AT + timedelta(days=1))
    assert again.revoked_at == AT


@pytest.mark.parametrize("text", ["", "wb_", "wb_aaaaaaaa_" + "b" * 43, "x" * 5000, "wb_aaaaaaaa_\ud800", "wb_é_ü"])
def test_what_is_no_token_finds_none(mara: User, text: str) -> None:
    issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)
    assert token_of(text, AT) is None


def test_a_changed_character_finds_none(mara: User) -> None:
    _, secret = issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)
    assert token_of(secret[:-1] + ("a" if secret[-1] != "a" else "b"), AT) is None
    assert token_of(secret + "a", AT) is None


def test_use_is_marked_once_a_minute(mara: User) -> None:
    token, secret = issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)
    for seconds, marked in ((0, 0), (59, 0), (60, 60), (61, 60)):
        token_of(secret, AT + timedelta(seconds=seconds))
        token.refresh_from_db()
        assert token.last_used_at == AT + timedelta(seconds=marked)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read", "root"]}, "scopes"),
        ({"expires_at": AT}, "expires_at"),
        ({"expires_at": datetime(2026, 6, 1)}, "expires_at"),
        ({"expires_at": AT + timedelta(days=4000)}, "expires_at"),
    ],
)
def test_refusals_name_the_field(mara: User, changes: dict[str, object], field: str) -> None:
    wanted = {"name": "a", "scopes": ["read"], "expires_at": None, **changes}
    with pytest.raises(DomainError, match=f"^{field}: got "):
        issue_token(mara, at=AT, **wanted)  # type: ignore[arg-type]
    assert not ApiToken.objects.filter(user=mara).exists()
    assert not AuditEntry.objects.filter(actor__user=mara).exists()


def test_a_user_has_so_many_active_tokens_at_most(mara: User) -> None:
    for _ in range(MOST_ACTIVE):
        token, _ = issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)
    with pytest.raises(DomainError, match="revoke one first"):
        issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)
    revoke_token(token, by=mara, at=AT)
    issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)


def test_a_deactivated_user_gets_none(mara: User) -> None:
    mara.is_active = False
    mara.save()
    with pytest.raises(DomainError, match="deactivated"):
        issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)


def test_issue_and_revocation_stand_in_the_audit_log_without_the_secret(mara: User) -> None:
    token, secret = issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)
    revoke_token(token, by=mara, at=AT)
    entries = list(AuditEntry.objects.filter(actor__user=mara).order_by("pk").values())
    assert [e["route"] for e in entries] == ["token.issued", "token.revoked"]
    assert all(e["subject"] == f"token {token.prefix}" and e["channel"] == "command" for e in entries)
    assert secret.split("_")[2] not in str(entries)


def test_another_person_cannot_revoke_it(mara: User) -> None:
    token, secret = issue_token(mara, name="a", scopes=["read"], expires_at=None, at=AT)
    with pytest.raises(NotAllowed, match="expected its owner or a site admin"):
        revoke_token(token, by=User.objects.create(username="noor"), at=AT)
    assert token_of(secret, AT) is not None
    revoke_token(token, by=User.objects.create(username="root", is_superuser=True), at=AT)
    assert token_of(secret, AT) is None
