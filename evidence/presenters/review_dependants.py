"""What would change with an item of the queue: sections of the notes, claims on the same evidence or on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext

from evidence.models import Claim, Link, StaleMark
from evidence.presenters import reviews as shown
from evidence.presenters.stale import section_words
from evidence.propagation import dependants, newest_notes, section_uid, sections_of
from evidence.queue import Item
from runs.presenters.states import TABLES, StateView

DEPENDANTS_MOST = 20


@dataclass(frozen=True)
class Dependant:
    """Something that would be marked with the claim."""

    words: str
    url: str
    state: StateView | None
    note: str = ""


def sections_that_show(claim: Claim) -> tuple[Dependant, ...]:
    """Sections of the notes that show the claim, each with whether it is marked already."""
    study = claim.study
    paths = [path for path in dependants("claim", claim.uid) if path.kind == "section"]
    if not paths:
        return ()
    notes = newest_notes(study)
    names = {str(section_uid(study, name)): name for name in (sections_of(notes) if notes is not None else {})}
    stale = {
        str(uid)
        for uid in StaleMark.objects.filter(
            study=study, target_kind="section", resolution__isnull=True, target_uid__in=[path.uid for path in paths]
        ).values_list("target_uid", flat=True)
    }
    return tuple(
        Dependant(
            gettext("Notes page, section %(name)s") % {"name": section_words(names.get(path.uid, path.uid[:8]))}, "",
            TABLES["evidence"]["stale"] if path.uid in stale else None, "" if path.uid in stale else gettext("current"),
        )
        for path in paths[:DEPENDANTS_MOST]
    )  # fmt: skip


def _claim_lines(claims: Iterable[Claim]) -> tuple[Dependant, ...]:
    """Claims, each with a way to review it and its status."""
    rows = list(claims)
    found = []
    texts = {row.pk: shown.in_language(row.current, "text") for row in rows if row.current is not None}
    values = shown.values_of(
        (row.study_id, piece.value)
        for row in rows
        for piece in shown.parse_text(texts.get(row.pk, ""))
        if piece.kind == shown.FIGURE
    )
    for row in rows:
        sentence = shown.plain(texts.get(row.pk, ""), row.study_id, values)
        url = shown.item_url(f"claim:{row.uid}")
        found.append(Dependant(f"{row.key}: {sentence}"[:200], url, shown.STATUSES[row.status]))
    return tuple(found)


def same_evidence(claim: Claim, link: Link | None) -> tuple[Dependant, ...]:
    """Other claims that stand on the same excerpt or figure."""
    if link is None:
        return ()
    same = Link.objects.filter(claim=OuterRef("pk"), withdrawal__isnull=True)
    same = same.filter(excerpt=link.excerpt_id) if link.excerpt_id else same.filter(figure=link.figure_id)
    rows = Claim.objects.filter(Exists(same)).exclude(pk=claim.pk)
    return _claim_lines(rows.select_related("current").order_by("pk")[:DEPENDANTS_MOST])


def resting(item: Item) -> tuple[Dependant, ...]:
    """Claims that rest on a source or a figure."""
    uids = [path.uid for path in dependants(item.kind, item.row.uid) if path.kind == "claim"]
    rows = Claim.objects.filter(uid__in=uids[:200]).select_related("current").order_by("key")
    return _claim_lines(rows)
