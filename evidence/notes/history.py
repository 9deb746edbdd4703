"""What changed: versions of the notes, and the values that figures had before they were corrected."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evidence.binding.numbers import bare_numbers
from evidence.models import Figure, FigureVersion, NotesVersion
from evidence.presenters.chips import Chip, shown
from runs.models import Study


@dataclass(frozen=True)
class VersionRow:
    """One version of the notes, without its document. ``said``: the reason where it holds no number of its own."""

    number: int
    at: datetime.datetime
    page_date: datetime.date
    actor: str
    reason: str
    sha256: str

    @property
    def said(self) -> str:
        """The reason as the notes page may repeat it."""
        return "" if bare_numbers(self.reason) else self.reason


@dataclass(frozen=True)
class Earlier:
    """A value that a figure showed before it was bound anew."""

    uid: str
    shown: str
    cutoff: datetime.date | None


@dataclass(frozen=True)
class Corrected:
    """A figure with its earlier values, oldest first, as they were shown."""

    chip: Chip
    before: list[Earlier]


def versions_of(study: Study) -> list[VersionRow]:
    """Newest first."""
    rows = NotesVersion.objects.filter(study=study).select_related("actor").order_by("-number")
    return [
        VersionRow(row.number, row.at, row.page_date, row.actor.name, row.reason, row.document_sha256) for row in rows
    ]


def corrections_of(study: Study, keys: Collection[str], chips: Mapping[str, Chip]) -> dict[str, Corrected]:
    """Corrected figures by key; one query for all their versions, none without keys."""
    if not keys:
        return {}
    rows = FigureVersion.objects.filter(figure__study=study, figure__key__in=sorted(keys)).select_related("figure")
    before: dict[str, list[Any]] = {}
    for row in rows.order_by("figure", "number"):
        if row.pk != row.figure.current_id:
            before.setdefault(row.figure.key, []).append(row)
    return {
        key: Corrected(
            chips[key], [Earlier(str(row.uid), shown(row, Figure.BOUND), row.cutoff) for row in before.get(key, [])]
        )
        for key in keys
        if key in chips
    }


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(place, text) of every leaf of a document that says something."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from flat(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from flat(item, f"{path}.{at}")
    elif value not in ("", None, False):
        yield path, str(value)
