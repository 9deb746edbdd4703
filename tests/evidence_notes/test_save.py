"""Versions of notes: saved whole or refused with every fault; contracts say what was accepted, and as what."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.actions.notes import accept_contract, save_notes
from evidence.models import AcceptanceContract, NotesVersion, stream_of
from evidence.notes import read
from evidence.notes.schema import NotesInvalid
from runs.errors import DomainError, StaleTransition
from runs.models import BlobRef, Receipt
from workbench.contracts.canonical import canonical_bytes, sha256_hex

from .build import Desk, said, whole
from .test_schema import put


def test_the_first_version_is_bytes_a_row_and_a_receipt(desk: Desk) -> None:
    made = desk.save()
    document = read.document_of(made)
    assert (made.number, made.imported, str(made.page_date)) == (1, False, "2026-11-01")
    assert made.document_sha256 == sha256_hex(canonical_bytes(document))
    assert BlobRef.objects.get(sha256=made.document_sha256).kind == "notes"
    told = Receipt.objects.filter(stream=stream_of(desk.study)).latest("seq")
    assert (told.kind, told.subject_uid) == ("evidence.notes_version", made.uid)


def test_an_equal_document_is_no_new_version(written: Desk) -> None:
    assert written.save().number == 1
    assert NotesVersion.objects.count() == 1


def test_a_version_replaces_only_with_a_reason(written: Desk) -> None:
    changed = whole(subtitle=said("Another", "另外"))
    with pytest.raises(DomainError, match=r"reason: got 0 characters, expected .* why version 1 is replaced"):
        written.save(changed)
    assert written.save(changed, "clearer").number == 2
    assert read.document_of(read.version(written.study, 1))["subtitle"] == said("A pilot", "先导")  # type: ignore[arg-type]


def test_who_began_from_an_older_version_is_told(written: Desk) -> None:
    written.save(whole(subtitle=said("Theirs")), "theirs")
    with pytest.raises(StaleTransition, match="base: got 1, expected 2"):
        save_notes(written.study, whole(subtitle=said("Mine")), by=written.by, at=written.tick(), reason="mine", base=1)


@pytest.mark.parametrize(
    "path, value, got, expected",
    [
        ("title.en", "It gained 12 points", "'12'", "bind the number"),
        ("title.zh", "提升了两成", "两成", "bind the number"),
        ("sections.0.blocks.0.text.en", "Of [[pilot.none]] queries", "'pilot.none'", "the key of a figure"),
        ("sections.0.blocks.0.text.zh", "见 [@R9]", "'R9'", "the reference of a source"),
        ("sections.0.blocks.0.text.en", "{{name:O42}} stopped", "'O42'", "declares with its reason"),
        ("sections.0.blocks.0.text.en", "{{name:92}} stopped", "'92'", "holds a letter"),
        ("sections.3.blocks.0.items.0.figure", "absent", "'absent'", "a figure of this study"),
        ("sections.4.blocks.0.items.0", "absent", "'absent'", "a claim of this study"),
        ("sections.0.blocks.0.sources.0", "R9", "'R9'", "a source of this study"),
    ],
)
def test_what_names_nothing_or_says_a_number_is_refused_by_place(
    desk: Desk, path: str, value: str, got: str, expected: str
) -> None:
    with pytest.raises(NotesInvalid) as refused:
        desk.save(put(whole(), path, value))
    (fault,) = refused.value.faults
    assert fault.path == path and got in fault.got and expected in fault.expected
    assert not NotesVersion.objects.exists()


def test_every_fault_comes_at_once(desk: Desk) -> None:
    document = put(put(whole(), "title.en", "12 points"), "subtitle.zh", "第三")
    with pytest.raises(NotesInvalid, match="and 1 more"):
        desk.save(document)


def test_a_document_of_another_study_is_refused(desk: Desk) -> None:
    with pytest.raises(NotesInvalid, match="study: got 'other', expected pilot"):
        desk.save(whole(study="other"))


def contract(desk: Desk, **given: Any) -> AcceptanceContract:
    """A draft accepted, unless ``given`` says otherwise."""
    return accept_contract(
        desk.study, **{"status": "accepted", "assurance": "draft", "by": desk.by, "at": desk.tick(), **given}
    )


def test_results_bind_a_manuscript_and_a_draft_does_not(desk: Desk) -> None:
    assert contract(desk).manuscript_sha256 == ""
    assert contract(desk, assurance="results", manuscript_sha256="ab" * 32).assurance == "results"
    assert AcceptanceContract.objects.count() == 2


@pytest.mark.parametrize(
    "given, message",
    [
        ({"assurance": "results"}, "manuscript_sha256: got nothing"),
        ({"manuscript_sha256": "cd" * 32}, "expected the hash of a source of this study"),
        ({"manuscript_sha256": "ab"}, "expected 64 hexadecimal"),
        ({"status": "done"}, "status: got 'done'"),
        ({"assurance": "final"}, "assurance: got 'final'"),
        ({"text_en": "all 12 figures"}, "text_en: text: got '12'"),
    ],
)
def test_a_contract_that_says_too_much_is_refused(desk: Desk, given: dict[str, Any], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        contract(desk, **given)
    assert not AcceptanceContract.objects.exists()
