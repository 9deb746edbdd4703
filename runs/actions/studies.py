"""Studies: found one, and say who may read it. Each change stands in a receipt and in the audit log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from runs.actions.actors import person_actor
from runs.actions.audit import record_change
from runs.actions.members import stream_of
from runs.actions.receipts import append_receipt
from runs.errors import DomainError
from runs.models import Membership, Study, User
from workbench.contracts.canonical import derive_uid

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{1,62}[a-z0-9]")
TAKEN = frozenset({"new"})  # names that are addresses of pages
VISIBILITIES = (Study.PRIVATE, Study.INTERNAL, Study.PUBLIC)
TITLE_LENGTH, SUMMARY_LENGTH = 300, 4000


class StudyExists(DomainError):
    """A study of this name exists, seen or not: a name is one thing on the whole site."""


def _text(name: str, value: str, limit: int, *, needed: bool = False) -> str:
    text = value.strip()
    if len(text) > limit or (needed and not text):
        raise DomainError(f"{name}: got {len(text)} characters, expected {1 if needed else 0} to {limit}")
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text):
        raise DomainError(f"{name}: got a character that cannot be stored, expected plain text")
    return text


def _visibility(value: str) -> str:
    if value not in VISIBILITIES:
        raise DomainError(f"visibility: got {value[:32]!r}, expected {', '.join(VISIBILITIES)}")
    return value


def create_study(
    slug: str,
    *,
    title: Mapping[str, str],
    summary: Mapping[str, str],
    by: User,
    at: datetime,
    visibility: str = Study.PRIVATE,
) -> Study:
    """A new study, whose founder is its admin. Raises ``DomainError`` naming the field, ``StudyExists``.

    ``title`` and ``summary`` by language: en, which is needed for the title, and zh.
    """
    if SLUG.fullmatch(slug) is None or slug in TAKEN:
        raise DomainError(
            f"slug: got {slug[:64]!r}, expected 3 to 64 lower-case letters, digits or dashes, and not the word new"
        )
    texts = {
        "title_en": _text("title", title.get("en", ""), TITLE_LENGTH, needed=True),
        "title_zh": _text("title_zh", title.get("zh", ""), TITLE_LENGTH),
        "summary_en": _text("summary", summary.get("en", ""), SUMMARY_LENGTH),
        "summary_zh": _text("summary_zh", summary.get("zh", ""), SUMMARY_LENGTH),
    }
    actor = person_actor(by)
    with transaction.atomic():
        study, made = Study.objects.get_or_create(
            slug=slug,
            defaults={
                "uid": derive_uid(None, f"study:{slug}"),
                "visibility": _visibility(visibility),
                "created_at": at,
                "created_by": actor,
                **texts,
            },
        )
        if not made:
            raise StudyExists(f"slug: got {slug!r}, which is taken, expected another name")
        Membership.objects.create(study=study, user=by, role=Membership.ADMIN)
        body = {"slug": slug, "visibility": visibility, "admin": by.get_username()}
        append_receipt(stream_of(study), "study.created", study.uid, body, actor=actor, at=at)
        record_change("study.created", by=by, at=at, study=study, subject=slug, detail=visibility)
    return study


def set_visibility(study: Study, value: str, *, by: User, at: datetime) -> Study:
    """Say who may read a study; the same value again changes nothing. Raises ``DomainError``."""
    _visibility(value)
    with transaction.atomic():
        row = Study.objects.select_for_update().get(pk=study.pk)
        before = row.visibility
        if before != value:
            row.visibility = value
            row.save(update_fields=["visibility"])
            body = {"from": before, "to": value}
            append_receipt(stream_of(row), "study.visibility", row.uid, body, actor=person_actor(by), at=at)
            record_change("study.visibility", by=by, at=at, study=row, subject=row.slug, detail=f"{before} -> {value}")
    study.refresh_from_db()
    return study
