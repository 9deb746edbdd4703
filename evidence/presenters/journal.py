"""Days of a study's journal: the newest draft of each with its lines, and people's notes."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from evidence.journal.shown import Shown, shown_lines
from evidence.models import JournalDay, JournalNote
from runs.models import Study


@dataclass(frozen=True)
class DayView:
    """One day. ``draft`` None: people wrote notes and nothing was drafted. ``earlier``: drafts that do not count."""

    day: datetime.date
    draft: JournalDay | None
    earlier: list[JournalDay]
    lines: list[Shown]
    notes: list[JournalNote]


def days_of(study: Study) -> list[datetime.date]:
    """Days with a draft or a note, newest first."""
    drafted: QuerySet[JournalDay] = JournalDay.objects.filter(study=study)
    noted = JournalNote.objects.filter(study=study)
    found = {*drafted.values_list("day", flat=True), *noted.values_list("day", flat=True)}
    return sorted(found, reverse=True)


def day_views(study: Study, days: Iterable[datetime.date], language: str) -> list[DayView]:
    """The days with all that is shown; a fixed number of queries however many there are."""
    wanted = list(days)
    drafts: dict[datetime.date, list[JournalDay]] = {}
    rows = JournalDay.objects.filter(study=study, day__in=wanted).select_related("actor").order_by("day", "-number")
    for row in rows:
        drafts.setdefault(row.day, []).append(row)
    notes: dict[datetime.date, list[JournalNote]] = {}
    for note in JournalNote.objects.filter(study=study, day__in=wanted).select_related("actor").order_by("pk"):
        notes.setdefault(note.day, []).append(note)
    lines = [line for day in wanted if day in drafts for line in drafts[day][0].lines]
    shown = iter(shown_lines(lines, language))
    views = []
    for day in wanted:
        mine = drafts.get(day, [])
        own = [next(shown) for _line in mine[0].lines] if mine else []
        views.append(DayView(day, mine[0] if mine else None, mine[1:], own, notes.get(day, [])))
    return views
