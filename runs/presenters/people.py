"""What the pages of accounts show: tokens, sessions, roles with their meaning, members, audit entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.sessions.models import Session
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from runs.access import ROLES
from runs.models import ApiToken, AuditEntry, Membership, Study, User

MOST_SESSIONS = 5000  # looked through; more than one site's people have
ROLE_WORDS: dict[str, Any] = {
    Membership.VIEWER: _("viewer"),
    Membership.RESEARCHER: _("researcher"),
    Membership.REVIEWER: _("reviewer"),
    Membership.WORKER: pgettext_lazy("role in a study", "worker"),
    Membership.ADMIN: _("admin"),
}
ROLE_MEANINGS: dict[str, Any] = {
    Membership.VIEWER: _("reads everything in the study"),
    Membership.RESEARCHER: _("reads; writes and freezes plans; starts and controls runs; writes log entries"),
    Membership.REVIEWER: _("reads; writes reviews; reads the audit log; changes no plan and no run"),
    Membership.WORKER: _("reads; writes log entries; for programs that report results"),
    Membership.ADMIN: _("all of a researcher; adds and removes members; sets visibility; reads the audit log"),
}
SCOPE_MEANINGS: dict[str, Any] = {
    "read": _("read what you may read, the audit log included where your role has it"),
    "write": _("write and freeze plans, start and control runs, found studies"),
    "log": _("write log entries and report results"),
    "review": _("write reviews"),
    "admin": _("manage members, read the audit log"),
}
VISIBILITY_WORDS: dict[str, Any] = {
    Study.PRIVATE: _("private"),
    Study.INTERNAL: _("internal"),
    Study.PUBLIC: _("public"),
}
VISIBILITY_MEANINGS: dict[str, Any] = {
    Study.PRIVATE: _("members alone see that it exists"),
    Study.INTERNAL: _("every signed-in person may read it"),
    Study.PUBLIC: _("whoever reaches this server may read it, without signing in"),
}


@dataclass(frozen=True)
class TokenView:
    """A token with its state: active, expired or revoked."""

    token: ApiToken
    state: str

    @property
    def active(self) -> bool:
        """Whether it still opens something."""
        return self.state == "active"


def token_views(user: User, now: datetime) -> list[TokenView]:
    """The user's tokens, those that work first, newest first."""
    rows = ApiToken.objects.filter(user=user).order_by("-created_at", "-pk")
    found = [TokenView(row, _token_state(row, now)) for row in rows]
    return sorted(found, key=lambda view: not view.active)


def _token_state(token: ApiToken, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now else "active"


@dataclass(frozen=True)
class SessionView:
    """One signed-in browser. ``key`` never reaches a page; times None: the session is older than this record."""

    key: str
    current: bool
    since: datetime | None
    address: str
    agent: str
    until: datetime


def sessions_of(user: User, current: str | None, now: datetime) -> list[SessionView]:
    """Open sessions of a user, this one first. Reads every open session of the site."""
    found = []
    for row in Session.objects.filter(expire_date__gt=now).order_by("-expire_date")[:MOST_SESSIONS]:
        data = row.get_decoded()
        if data.get("_auth_user_id") != str(user.pk) or data.get("_auth_user_hash") not in _hashes(user):
            continue
        begun = data.get("signed_in") or {}
        found.append(
            SessionView(
                key=row.session_key,
                current=row.session_key == current,
                since=parse_datetime(begun["at"]) if begun.get("at") else None,
                address=str(begun.get("address", "")),
                agent=str(begun.get("agent", "")),
                until=row.expire_date,
            )
        )
    return sorted(found, key=lambda view: not view.current)


def _hashes(user: User) -> tuple[str, ...]:
    """What a session of the present password carries: one of an old password is dead already."""
    return (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())


@dataclass(frozen=True)
class MemberView:
    """A person of a study with their roles, in the order of ``ROLES``."""

    user: User
    roles: list[str]

    @property
    def words(self) -> list[tuple[str, Any]]:
        """Each role with its word."""
        return [(role, ROLE_WORDS[role]) for role in self.roles]


def members_of(study: Study) -> list[MemberView]:
    """Members by name. One query."""
    held: dict[User, set[str]] = {}
    for row in Membership.objects.filter(study=study).select_related("user").order_by("user__username"):
        held.setdefault(row.user, set()).add(row.role)
    return [MemberView(user, [role for role in ROLES if role in roles]) for user, roles in held.items()]


def role_choices() -> list[tuple[str, Any, Any]]:
    """Role, word, meaning."""
    return [(role, ROLE_WORDS[role], ROLE_MEANINGS[role]) for role in ROLES]


def visibility_choices() -> list[tuple[str, Any, Any]]:
    """Visibility, word, meaning."""
    return [(value, word, VISIBILITY_MEANINGS[value]) for value, word in VISIBILITY_WORDS.items()]


@dataclass(frozen=True)
class StudyRoles:
    """A study of mine with what I am in it."""

    study: Study
    roles: list[tuple[str, Any]]
    admin: bool
    audits: bool


def studies_of(user: User) -> list[StudyRoles]:
    """Studies in which the user has a role, by name. One query."""
    held: dict[Study, set[str]] = {}
    for row in Membership.objects.filter(user=user).select_related("study").order_by("study__slug"):
        held.setdefault(row.study, set()).add(row.role)
    return [
        StudyRoles(
            study,
            [(role, ROLE_WORDS[role]) for role in ROLES if role in roles],
            Membership.ADMIN in roles,
            bool({Membership.ADMIN, Membership.REVIEWER} & roles),
        )
        for study, roles in held.items()
    ]


def outcome(entry: AuditEntry) -> str:
    """done, refused or failed: for an answer from 400 and for a command's exit 1."""
    if entry.method in ("change", "command"):
        return "done" if entry.status == 0 else "refused"
    if entry.status >= 500:
        return "failed"
    return "refused" if entry.status >= 400 else "done"


@dataclass(frozen=True)
class AuditLine:
    """An entry with its outcome."""

    entry: AuditEntry
    outcome: str


def audit_lines(entries: Iterable[AuditEntry]) -> list[AuditLine]:
    """Entries with their outcomes, in order."""
    return [AuditLine(entry, outcome(entry)) for entry in entries]
