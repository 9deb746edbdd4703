"""Who belongs where: roles in a study, accounts of the site. Each change stands in a receipt or in the audit log."""

from __future__ import annotations

import re
import secrets
from datetime import datetime

from django.db import transaction

from runs.access import ROLES
from runs.actions.actors import OWN_FAMILY, SERVICE_FAMILY, person_actor
from runs.actions.audit import record_change
from runs.actions.receipts import append_receipt
from runs.errors import DomainError
from runs.models import Membership, Study, User

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
FAMILY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
PEOPLE = "people"  # receipt stream of the site: who is of which family
PASSWORD_BYTES = 15  # 20 characters, 120 bits


def stream_of(study: Study) -> str:
    """The receipt stream of a study's own changes."""
    return f"study:{study.uid}"


def _locked(study: Study) -> Study:
    """The study's row, locked: two people must not remove each other at once."""
    return Study.objects.select_for_update().get(pk=study.pk)


def find_user(username: str) -> User:
    """The active user of this name, whatever its case. Raises ``DomainError``."""
    found = User.objects.filter(username__iexact=username.strip()[:150], is_active=True).first()
    if found is None:
        raise DomainError(f"user: got {username.strip()[:64]!r}, expected the name of an active account")
    return found


def add_role(study: Study, user: User, role: str, *, by: User, at: datetime) -> Membership:
    """Give a role; one that is held already changes nothing. Raises ``DomainError`` naming the field."""
    if role not in ROLES:
        raise DomainError(f"role: got {role[:32]!r}, expected one of {', '.join(ROLES)}")
    if not user.is_active:
        raise DomainError(f"user: got {user.get_username()}, who is deactivated, expected an active user")
    with transaction.atomic():
        _locked(study)
        membership, made = Membership.objects.get_or_create(study=study, user=user, role=role)
        if made:
            body = {"user": user.get_username(), "role": role}
            append_receipt(stream_of(study), "member.added", study.uid, body, actor=person_actor(by), at=at)
            record_change("member.added", by=by, at=at, study=study, subject=f"{user.get_username()} {role}")
    return membership


def remove_role(study: Study, user: User, role: str, *, by: User, at: datetime) -> None:
    """Take a role. Raises ``DomainError`` for one that is not held, and for the last active admin."""
    with transaction.atomic():
        _locked(study)
        held = Membership.objects.filter(study=study, user=user, role=role).first()
        if held is None:
            raise DomainError(f"role: {user.get_username()} is no {role[:32]} of {study.slug}; nothing to remove")
        others = Membership.objects.filter(study=study, role=Membership.ADMIN, user__is_active=True).exclude(pk=held.pk)
        if role == Membership.ADMIN and not others.exists():
            raise DomainError(
                f"role: {user.get_username()} is the last active admin of {study.slug}; give the role to another first"
            )
        held.delete()
        body = {"user": user.get_username(), "role": role}
        append_receipt(stream_of(study), "member.removed", study.uid, body, actor=person_actor(by), at=at)
        record_change("member.removed", by=by, at=at, study=study, subject=f"{user.get_username()} {role}")


def _site_admin(by: User) -> None:
    if not by.is_superuser or not by.is_active:
        raise DomainError(f"by: got {by.get_username()}, expected a site admin")


def new_password() -> str:
    """A password that nobody chose; it is shown once and stored only as a hash."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


def _family(given: str) -> str:
    """A family's name in one writing. Raises ``DomainError``."""
    name = given.strip().lower()
    if FAMILY.fullmatch(name) is None or name in (OWN_FAMILY, SERVICE_FAMILY):
        raise DomainError(
            f"family: got {given.strip()[:64]!r}, expected nothing (the person's own) or letters, digits and . _ -, "
            f"at most 64, and neither {OWN_FAMILY} nor {SERVICE_FAMILY}"
        )
    return name


def create_user(
    username: str, *, by: User, at: datetime, site_admin: bool = False, family: str = ""
) -> tuple[User, str]:
    """A new account and its generated password. Raises ``DomainError`` for a name that is unusable or taken.

    ``family``: with whom the person shares what makes a review not independent (a group, a company, a model);
    empty: a family of their own. It is written into their actor and stays.
    """
    _site_admin(by)
    name = username.strip()
    family = _family(family) if family.strip() else ""
    if NAME.fullmatch(name) is None:
        raise DomainError(f"name: got {name[:64]!r}, expected letters, digits and . _ @ + -, at most 64")
    with transaction.atomic():
        if User.objects.select_for_update().filter(username__iexact=name).exists():
            raise DomainError(f"name: got {name!r}, which is taken (case does not count), expected another")
        password = new_password()
        user = User.objects.create_user(name, password=password, is_superuser=site_admin)
        if family:
            actor = person_actor(user, family)
            append_receipt(PEOPLE, "actor.family", actor.uid, {"family": family}, actor=person_actor(by), at=at)
        detail = ", ".join([*(["site admin"] if site_admin else []), *([f"family {family}"] if family else [])])
        record_change("user.created", by=by, at=at, subject=name, detail=detail)
    return user, password


def reset_password(user: User, *, by: User, at: datetime) -> str:
    """A new generated password; every session of the user ends, tokens stay."""
    _site_admin(by)
    password = new_password()
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        record_change("user.password_reset", by=by, at=at, subject=user.get_username())
    return password


def _other_admins(user: User) -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk).exists()


def set_active(user: User, active: bool, *, by: User, at: datetime) -> None:
    """Let a user in, or keep them out: sessions and tokens stop at once. The last site admin stays in."""
    _site_admin(by)
    with transaction.atomic():
        row = User.objects.select_for_update().get(pk=user.pk)
        if not active and row.is_superuser and not _other_admins(row):
            raise DomainError(f"user: {row.get_username()} is the last active site admin; make another first")
        if row.is_active != active:
            row.is_active = active
            row.save(update_fields=["is_active"])
            what = "user.activated" if active else "user.deactivated"
            record_change(what, by=by, at=at, subject=row.get_username())
    user.refresh_from_db()


def set_site_admin(user: User, site_admin: bool, *, by: User, at: datetime) -> None:
    """Give or take the right to administer everything. The last site admin keeps it."""
    _site_admin(by)
    with transaction.atomic():
        row = User.objects.select_for_update().get(pk=user.pk)
        if not site_admin and not _other_admins(row):
            raise DomainError(f"user: {row.get_username()} is the last active site admin; make another first")
        if row.is_superuser != site_admin:
            row.is_superuser = site_admin
            row.save(update_fields=["is_superuser"])
            what = "user.site_admin_given" if site_admin else "user.site_admin_taken"
            record_change(what, by=by, at=at, subject=row.get_username())
    user.refresh_from_db()
