"""Evidence of every kind in a study, through the real actions, for tests that need addresses of all of it."""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from django.test import override_settings

from evidence.actions.intake import watch_folder
from evidence.actions.journal import add_note, draft_day
from evidence.actions.notes import accept_contract
from evidence.actions.reviews import review
from evidence.models import (
    Claim,
    Excerpt,
    Figure,
    JournalDay,
    Link,
    NotesVersion,
    Review,
    Source,
    StaleMark,
    WatchedFolder,
)
from runs.actions.actors import person_actor
from runs.models import Study, User
from tests.evidence_notes.build import Desk, fill, whole


def add_evidence(study: Study, author: User, reviewer: User, at: datetime) -> dict[str, Any]:
    """What addresses name of the evidence of a study, by short names.

    A source with two versions, one that is only claimed, an excerpt that the second version lost, figures, a claim
    with a link and a review that asks for an answer, marks of what is stale, notes, a contract, a day of the journal
    with a note, and a watched folder. ``at``: when it begins; the day of the journal is that one.
    """
    desk = Desk(study, person_actor(author), author, at)
    fill(desk)
    claim = Claim.objects.get(study=study, key="signal")
    link = Link.objects.get(claim=claim)
    review(
        claim, link=link, verdict="dispute", reason="it does not reach that far", looked_at=["quotation"],
        by=person_actor(reviewer), at=desk.tick(),
    )  # fmt: skip
    desk.save(whole(study=study.slug))
    accept_contract(study, status="proposed", assurance="draft", by=desk.by, at=desk.tick())
    add_note(study, at.date(), "Rows of the pilot were read again.", "en", by=desk.by, at=desk.tick())
    draft_day(study, at.date(), by=desk.by, at=desk.tick())
    desk.replace("# Pilot\n\nOf 244 usable rows 93 were nonzero.\n")
    with tempfile.TemporaryDirectory() as name, override_settings(WATCH_ROOTS={"papers": Path(name)}):
        watch_folder(study, "papers", "", by=desk.by, at=desk.tick())
    return names_of(study)


def names_of(study: Study) -> dict[str, Any]:
    """The same names of a study whose evidence ``add_evidence`` made."""
    claim = Claim.objects.get(study=study, key="signal")
    link, asked = Link.objects.get(claim=claim), Review.objects.get(claim=claim)
    source = Source.objects.get(study=study, path="pilot.md")
    figure = Figure.objects.get(study=study, key="pilot.share")
    notes = NotesVersion.objects.filter(study=study).order_by("-pk")[0]
    mark = StaleMark.objects.filter(study=study).first()
    assert mark is not None and source.current is not None
    return {
        "source": source.uid,
        "source_sha": source.current.sha256,
        "excerpt": Excerpt.objects.get(study=study, key="counts").uid,
        "figure": figure.uid,
        "figure_key": figure.key,
        "claim": claim.uid,
        "claim_key": claim.key,
        "link": link.uid,
        "review": asked.uid,
        "mark": mark.uid,
        "notes": notes.number,
        "notes_sha": notes.document_sha256,
        "day": str(JournalDay.objects.filter(study=study)[0].day),
        "folder": WatchedFolder.objects.get(study=study).pk,
        "link_item": f"link:{link.uid}",
        "answer_item": f"answer:{asked.uid}",
    }
