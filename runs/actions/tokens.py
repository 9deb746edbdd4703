"""API tokens: issue, revoke, find. The secret is shown once; only its SHA-256 is stored."""

from __future__ import annotations

import copy
import hmac
import re
import secrets
import string
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Q

from runs.access import SCOPES
from runs.actions.audit import record_change
from runs.errors import DomainError, NotAllowed
from runs.models import ApiToken, User
from workbench.contracts.canonical import sha256_hex

ALPHABET = string.ascii_letters + string.digits
PREFIX_LENGTH, RANDOM_LENGTH = 8, 43  # 43 characters out of 62: 256 bits
NAME_LENGTH = 100
MOST_ACTIVE = 50  # of one user
MARKED_EVERY = timedelta(minutes=1)  # a write for each request would make every read a write
LONGEST = timedelta(days=3660)
_FORM = re.compile(rf"wb_([A-Za-z0-9]{{{PREFIX_LENGTH}}})_[A-Za-z0-9]{{{RANDOM_LENGTH}}}")


def _digest(secret: str) -> str:
    """SHA-256 of the whole token. A secret of 256 random bits needs no slow hash."""
    return sha256_hex(secret.encode())


def _checked(name: str, scopes: Iterable[str], expires_at: datetime | None, at: datetime) -> tuple[str, list[str]]:
    name = name.strip()
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable():
        raise DomainError(f"name: got {len(name)} characters, expected 1 to {NAME_LENGTH} printable ones")
    wanted = set(scopes)
    if not wanted or wanted - set(SCOPES):
        raise DomainError(f"scopes: got {', '.join(sorted(wanted)) or 'none'}, expected some of {', '.join(SCOPES)}")
    if expires_at is not None and expires_at.tzinfo is None:
        raise DomainError("expires_at: got a time without a zone, expected one with a zone")
    if expires_at is not None and not at < expires_at <= at + LONGEST:
        raise DomainError(
            f"expires_at: got {expires_at.isoformat()}, expected a time after {at.isoformat()}, within ten years"
        )
    return name, [scope for scope in SCOPES if scope in wanted]


def active_tokens(user: User, at: datetime) -> int:
    """How many tokens of a user still open something."""
    rows = ApiToken.objects.filter(user=user, revoked_at__isnull=True)
    return rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=at)).count()


def issue_token(
    user: User, *, name: str, scopes: Iterable[str], expires_at: datetime | None, at: datetime
) -> tuple[ApiToken, str]:
    """A new token of ``user`` and its secret, ``wb_<prefix>_<random>``, which nothing can show again.

    ``expires_at`` None: it does not expire. Raises ``DomainError`` naming the field that is wrong.
    """
    name, kept = _checked(name, scopes, expires_at, at)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # two requests at once must not pass the limit together
        if not user.is_active:
            raise DomainError(f"user: got {user.get_username()}, who is deactivated, expected an active user")
        if active_tokens(user, at) >= MOST_ACTIVE:
            raise DomainError(f"tokens: got {MOST_ACTIVE} that are active, expected fewer; revoke one first")
        prefix = "".join(secrets.choice(ALPHABET) for _ in range(PREFIX_LENGTH))
        secret = f"wb_{prefix}_" + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
        token = ApiToken.objects.create(
            user=user,
            name=name,
            prefix=prefix,
            digest=_digest(secret),
            scopes=kept,
            created_at=at,
            expires_at=expires_at,
        )
        until = "no expiry" if expires_at is None else f"until {expires_at.isoformat(timespec='seconds')}"
        record_change(
            "token.issued", by=user, at=at, subject=f"token {prefix}", detail=f"scopes {', '.join(kept)}; {until}"
        )
    return token, secret


def revoke_token(token: ApiToken, *, by: User, at: datetime) -> ApiToken:
    """End a token at once; its row stays, and one that is revoked already keeps its first time.

    Raises ``NotAllowed`` for anybody but its owner and a site admin.
    """
    if by.pk != token.user_id and not by.is_superuser:
        raise NotAllowed(f"token {token.prefix}: got user {by.get_username()}, expected its owner or a site admin")
    with transaction.atomic():
        changed = ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=at)
        token.refresh_from_db()
        if changed:
            owner = token.user.get_username()
            record_change("token.revoked", by=by, at=at, subject=f"token {token.prefix}", detail=f"of {owner}")
    return token


_COLUMNS = (
    "t.id, t.user_id, t.name, t.prefix, t.scopes, t.expires_at, t.revoked_at, t.last_used_at, "
    "u.username, u.is_active, u.is_superuser"
)
_STATE = f"SELECT {_COLUMNS} FROM runs_apitoken t JOIN runs_user u ON u.id = t.user_id WHERE t.digest = %s"
KEPT = 1000
_kept: dict[tuple[str, str], tuple[tuple[str, ...], ApiToken]] = {}


def _stored(digest: str) -> ApiToken | None:
    """The row of a digest with its user. What both say now is read each time; making objects of it only once.

    A trainer asks with every step, and building the objects takes longer than asking the database.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STATE, [digest])
        row = cursor.fetchone()
    if row is None:
        return None
    key, state = (str(connection.settings_dict["NAME"]), digest), tuple(map(str, row))
    kept = _kept.get(key)
    if kept is not None and kept[0] == state:
        return _own(kept[1])
    token = ApiToken.objects.select_related("user").filter(digest=digest).first()
    if token is not None and not connection.in_atomic_block:  # a row that may yet be rolled back is not remembered
        if len(_kept) >= KEPT:
            _kept.clear()
        _kept[key] = (state, _own(token))
    return token


def _own(token: ApiToken) -> ApiToken:
    """A copy that one request may change."""
    found = copy.copy(token)
    found.user = copy.copy(token.user)
    return found


def token_of(secret: str, at: datetime) -> ApiToken | None:
    """The token with this secret; None where it is unknown, expired, revoked or its user is not active.

    Marks ``last_used_at``, at most once a minute.
    """
    if _FORM.fullmatch(secret) is None:
        return None
    digest = _digest(secret)
    token = _stored(digest)
    if token is None or not hmac.compare_digest(token.digest, digest):
        return None
    expired = token.expires_at is not None and token.expires_at <= at
    if expired or token.revoked_at is not None or not token.user.is_active:
        return None
    if token.last_used_at is None or at - token.last_used_at >= MARKED_EVERY:
        stale = Q(last_used_at__isnull=True) | Q(last_used_at__lte=at - MARKED_EVERY)
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=at)
        token.last_used_at = at
    return token
