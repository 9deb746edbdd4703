"""The journal's two changes: a draft of a day from receipts, and a person's note. Nothing is ever edited."""

from __future__ import annotations

import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max

from evidence.actions.record import append, lock_evidence, record_uid
from evidence.binding.tokens import check_text
from evidence.journal.lines import MOST_LINES, day_bounds, lines_of, pending_of, receipts_of, streams_of
from evidence.journal.phrases import UNTOLD
from evidence.models import JournalDay, JournalNote
from runs.actions.actors import service_actor
from runs.errors import DomainError
from runs.models import Actor, Receipt, Study
from workbench.contracts.canonical import sha256_hex

NOTE_MOST = 4000
LANGUAGES = ("en", "zh")


def draft_day(study: Study, day: datetime.date, *, by: Actor, at: datetime.datetime) -> JournalDay:
    """Draft a day from the receipts that were written on it. The same lines again are no new draft.

    Raises ``DomainError`` for a day that has not begun, or on which nothing was written.
    """
    _must_have_begun(day, at)
    with transaction.atomic():
        lock_evidence(study)
        lines = lines_of(receipts_of(study, day))
        last = newest_draft(study, day)
        if not lines:
            if last is not None:
                return last
            raise DomainError(f"day: got {day}, on which no receipt of {study.slug} was written, expected another day")
        lines += pending_of(study, day)
        if len(lines) > MOST_LINES:
            raise DomainError(f"day: got {len(lines)} lines on {day}, expected at most {MOST_LINES}")
        if last is not None and last.lines == lines:
            return last
        number = 1 if last is None else last.number + 1
        row = JournalDay(
            uid=record_uid(study.uid, "journal_day", f"{day}:{number}"), study=study, actor=by, at=at, day=day,
            number=number, lines=lines, upto=_upto(study, day),
        )  # fmt: skip
        return append(row)


def _must_have_begun(day: datetime.date, at: datetime.datetime) -> None:
    today = at.astimezone(datetime.UTC).date()
    if day > today:
        raise DomainError(f"day: got {day}, expected one up to today, {today} (UTC)")


def _upto(study: Study, day: datetime.date) -> dict[str, int]:
    """How far each stream had got by the day's end, the journal's own receipts left out."""
    _first, after = day_bounds(day)
    rows = Receipt.objects.filter(stream__in=streams_of(study), at__lt=after).exclude(kind__in=UNTOLD)
    found = rows.values("stream").annotate(last=Max("seq")).order_by("stream")
    return {row["stream"]: row["last"] for row in found}


def newest_draft(study: Study, day: datetime.date) -> JournalDay | None:
    """The draft of a day that counts."""
    return JournalDay.objects.filter(study=study, day=day).order_by("-number").first()


def add_note(
    study: Study, day: datetime.date, text: str, language: str, *, by: Actor, at: datetime.datetime
) -> JournalNote:
    """A person's note on a day, in the grammar of texts: a number stands as ``[[figure.key]]``.

    Raises ``DomainError`` naming the field.
    """
    _must_have_begun(day, at)
    text = text.strip()
    if language not in LANGUAGES:
        raise DomainError(f"language: got {language[:16]!r}, expected en or zh")
    if not text or len(text) > NOTE_MOST or "\x00" in text:
        raise DomainError(f"text: got {len(text)} characters, expected 1 to {NOTE_MOST}")
    troubles = check_text(study, text, language)
    if troubles:
        raise DomainError(str(troubles[0]))
    with transaction.atomic():
        lock_evidence(study)
        before = JournalNote.objects.filter(study=study, day=day).count()
        key = f"{day}:{before + 1}:{sha256_hex(text.encode())}"
        row = JournalNote(
            uid=record_uid(study.uid, "journal_note", key), study=study, actor=by, at=at, day=day, text=text,
            language=language,
        )  # fmt: skip
        return append(row)


def draft_due(*, at: datetime.datetime) -> int:
    """Draft yesterday, once, for every study in which something was written; how many drafts were made."""
    yesterday = at.astimezone(datetime.UTC).date() - datetime.timedelta(days=1)
    actor, made = service_actor("journal"), 0
    for study in Study.objects.order_by("pk"):
        last = newest_draft(study, yesterday)
        if not is_due(study, yesterday, last):
            continue
        try:
            made += draft_day(study, yesterday, by=actor, at=at) != last
        except DomainError:
            continue  # nothing to tell
    return made


def is_due(study: Study, day: datetime.date, last: JournalDay | None) -> bool:
    """Whether receipts of a day are in no draft of it."""
    first, after = day_bounds(day)
    rows: Any = Receipt.objects.filter(stream__in=streams_of(study), at__gte=first, at__lt=after)
    rows = rows.exclude(kind__in=UNTOLD)
    if last is None:
        return bool(rows.exists())
    return any(row["last"] > last.upto.get(row["stream"], 0) for row in rows.values("stream").annotate(last=Max("seq")))
