"""Notes of people: append-only, in the grammar of texts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from evidence.actions.journal import NOTE_MOST, add_note
from evidence.models import JournalNote
from runs.errors import DomainError
from runs.models import Receipt
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT

DAY = AT.date()
pytestmark = pytest.mark.django_db


def test_a_note_is_a_record_with_its_receipt(world: World) -> None:
    row = add_note(world.study, DAY, " The pilot kept [[pilot.usable]] groups. ", "en", **world.made["acting"])
    assert row.text == "The pilot kept [[pilot.usable]] groups."
    assert Receipt.objects.filter(kind="evidence.journal_note", subject_uid=row.uid).count() == 1
    assert add_note(world.study, DAY, row.text, "en", **world.made["acting"]).uid != row.uid


@pytest.mark.parametrize(
    ("text", "language", "match"),
    [
        ("", "en", "text: got 0"),
        ("   ", "en", "text: got 0"),
        ("x" * (NOTE_MOST + 1), "en", "text: got"),
        ("a\0b", "en", "text: got"),
        ("We kept 244 groups.", "en", "bind"),
        ("共有九组。", "zh", "bind"),
        ("See [[no.such]].", "en", "no.such"),
        ("Fine.", "de", "language"),
    ],
)
def test_what_is_no_note_is_refused(world: World, text: str, language: str, match: str) -> None:
    with pytest.raises(DomainError, match=match):
        add_note(world.study, DAY, text, language, **world.made["acting"])
    assert not JournalNote.objects.exists()


def test_a_day_to_come_is_refused(world: World) -> None:
    with pytest.raises(DomainError, match="up to today"):
        add_note(world.study, DAY + timedelta(days=2), "Later.", "en", **world.made["acting"])
