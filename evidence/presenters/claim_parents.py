"""What stands on a claim, and the marks that ask for it to be looked at again."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext

from evidence.models import Claim, StaleMark
from evidence.presenters.reviews import STATUSES
from evidence.presenters.stale import KINDS, section_words
from evidence.propagation import CLAIM, SECTION, dependants, newest_notes, section_uid, sections_of
from runs.presenters.states import TABLES, StateView

MOST = 40


@dataclass(frozen=True)
class Dependant:
    """Something that would be marked with the claim. ``url`` empty: it has no page of its own."""

    words: str
    url: str
    state: StateView | None


@dataclass(frozen=True)
class MarkView:
    """Why the claim is stale: the reason, and how it follows from what changed."""

    mark: StaleMark
    path: tuple[str, ...]


def dependants_of(claim: Claim) -> tuple[Dependant, ...]:
    """Sections of the notes and other claims that stand on it."""
    study, paths = claim.study, dependants(CLAIM, claim.uid)[:MOST]
    notes = newest_notes(study) if any(path.kind == SECTION for path in paths) else None
    names = {str(section_uid(study, name)): name for name in (sections_of(notes) if notes is not None else {})}
    stale = {
        str(uid)
        for uid in StaleMark.objects.filter(
            study=study, resolution__isnull=True, target_uid__in=[path.uid for path in paths]
        ).values_list("target_uid", flat=True)
    }
    claims = {
        str(row.uid): row for row in Claim.objects.filter(uid__in=[path.uid for path in paths if path.kind == CLAIM])
    }
    found = []
    for path in paths:
        mark = TABLES["evidence"]["stale"] if path.uid in stale else None
        if path.kind == SECTION:
            name = names.get(path.uid, path.uid[:8])
            found.append(
                Dependant(
                    gettext("Notes page, section %(name)s") % {"name": section_words(name)},
                    _notes_url(claim, name),
                    mark,
                )
            )
        elif path.uid in claims:
            row = claims[path.uid]
            url = reverse("evidence:claim", args=[row.uid])
            found.append(Dependant(gettext("Claim %(key)s") % {"key": row.key}, url, mark or STATUSES[row.status]))
    return tuple(found)


def _notes_url(claim: Claim, section: str) -> str:
    try:
        return reverse("evidence:notes", args=[claim.study.slug]) + f"#{section}"
    except NoReverseMatch:
        return ""


def marks_of(claim: Claim) -> list[MarkView]:
    """Open marks on a claim, oldest first. One query for the marks; the page of stale evidence has the whole graph."""
    rows = StaleMark.objects.filter(target_kind=CLAIM, target_uid=claim.uid, resolution__isnull=True).order_by("pk")
    return [MarkView(row, tuple(str(KINDS.get(kind, kind)) for kind, _uid in row.path)) for row in rows[:MOST]]
