"""Taking in sources and their next versions."""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Any

import pytest

from evidence.actions.sources import add_source, read_version
from evidence.models import Source, SourceVersion
from runs.errors import DomainError
from runs.models import BlobRef, Receipt, Study
from runs.storage import blob_store
from workbench.contracts.canonical import derive_uid, parse_canonical

PAPER = b"# Pilot\n92 of 244 edits were nonzero.\n"
SHA = hashlib.sha256(PAPER).hexdigest()


def test_a_source_is_held_under_its_hash_and_told_by_receipts(study: Study, acting: dict[str, Any]) -> None:
    """Row, blob, ledger and receipts say the same."""
    version = add_source(
        study, "notes/pilot.md", PAPER, origin="upload", reference="R1", cutoff=date(2026, 4, 30), **acting
    )
    source = version.source
    assert (version.number, version.sha256, version.size, version.held) == (1, SHA, len(PAPER), True)
    assert (source.form, source.state, source.reference, version.media_type) == (
        "markdown",
        "verified",
        "R1",
        "text/markdown",
    )
    assert read_version(version) == PAPER and BlobRef.objects.get(sha256=SHA).kind == "source"
    assert source.uid == derive_uid(study.uid, "source:notes/pilot.md")
    described, told = Receipt.objects.filter(stream=f"evidence:{study.uid}").order_by("seq")
    assert (described.kind, told.kind) == ("source.described", "evidence.source_version")
    assert parse_canonical(bytes(told.bytes))["body"]["sha256"] == SHA
    assert parse_canonical(bytes(described.bytes))["body"]["path"] == "notes/pilot.md"


def test_the_same_bytes_again_add_nothing(study: Study, acting: dict[str, Any]) -> None:
    """Idempotent: one version, no receipt more."""
    first = add_source(study, "a.md", PAPER, origin="upload", **acting)
    told = Receipt.objects.count()
    assert add_source(study, "a.md", PAPER, origin="upload", **acting) == first
    assert add_source(study, "a.md", None, sha256=SHA, origin="imported", **acting) == first
    assert Receipt.objects.count() == told and SourceVersion.objects.count() == 1


def test_a_claimed_source_holds_no_bytes(study: Study, acting: dict[str, Any]) -> None:
    """Its hash is recorded and its state says that nobody checked it."""
    version = add_source(study, "r/one.tex", None, sha256=SHA, size=None, origin="imported", **acting)
    assert (version.held, version.size, version.source.state, version.source.checked_at) == (
        False,
        None,
        "claimed",
        None,
    )
    with pytest.raises(DomainError, match=r"^bytes: got only the hash"):
        read_version(version)


def test_the_bytes_of_a_claimed_source_make_it_verified(study: Study, acting: dict[str, Any]) -> None:
    """The hash is the recorded one, so nothing is marked stale and no reason is needed."""
    add_source(study, "r/one.tex", None, sha256=SHA, origin="imported", **acting)
    version = add_source(study, "r/one.tex", PAPER, origin="upload", **acting)
    assert (version.number, version.held, version.source.state) == (2, True, "verified")


def test_other_bytes_are_a_next_version_with_a_reason(study: Study, acting: dict[str, Any]) -> None:
    """Both stay readable; the head shows the newer."""
    first = add_source(study, "a.md", PAPER, origin="upload", **acting)
    with pytest.raises(DomainError, match=r"^reason: got ''"):
        add_source(study, "a.md", PAPER + b"!", origin="upload", **acting)
    assert SourceVersion.objects.count() == 1
    second = add_source(study, "a.md", PAPER + b"!", origin="upload", reason="corrected a count", **acting)
    assert (second.number, second.reason) == (2, "corrected a count")
    assert Source.objects.get().current == second and read_version(first) == PAPER


def test_given_again_drifted_bytes_heal(study: Study, acting: dict[str, Any]) -> None:
    """The store's file was overwritten; the same upload puts it back and the source is verified."""
    from evidence.actions.sources import check_version

    version = add_source(study, "a.md", PAPER, origin="upload", **acting)
    path = blob_store().path(SHA)
    path.chmod(0o644)
    path.write_bytes(PAPER + b"x")
    assert check_version(version, **acting) == "drifted"
    add_source(study, "a.md", PAPER, origin="upload", **acting)
    assert Source.objects.get().state == "verified" and read_version(version) == PAPER


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"sha256": "ab"}, "sha256"),
        ({"sha256": "0" * 64}, "sha256"),
        ({"size": 3}, "size"),
        ({"size": -1}, "size"),
        ({"path": "../x"}, "path"),
        ({"origin": "mail"}, "origin"),
        ({"commit": "main"}, "commit"),
        ({"reference": "a b"}, "reference"),
        ({"title_en": "x" * 301}, "title_en"),
        ({"note": "a\x00b"}, "note"),
        ({"form": "pdf"}, "form"),
        ({"data": None}, "sha256"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    study: Study, acting: dict[str, Any], given: dict[str, Any], field: str
) -> None:
    """Nothing is stored."""
    values = {"path": "a.md", "data": PAPER, "origin": "upload", **given}
    with pytest.raises(DomainError, match=rf"^{field}: got "):
        add_source(study, values.pop("path"), values.pop("data"), **values, **acting)
    assert not Source.objects.exists() and not Receipt.objects.filter(stream=f"evidence:{study.uid}").exists()


def test_more_bytes_than_the_settings_allow_are_refused(study: Study, acting: dict[str, Any], settings: Any) -> None:
    """At the limit yes, one more no."""
    settings.SOURCE_LIMIT = len(PAPER)
    add_source(study, "a.md", PAPER, origin="upload", **acting)
    with pytest.raises(DomainError, match=r"^bytes: got "):
        add_source(study, "b.md", PAPER + b"!", origin="upload", **acting)


def test_a_reference_belongs_to_one_source(study: Study, acting: dict[str, Any]) -> None:
    """R1 stays R1; a source may get another title later, which a receipt tells."""
    add_source(study, "a.md", PAPER, origin="upload", reference="R1", **acting)
    with pytest.raises(DomainError, match=r"^reference: got R1"):
        add_source(study, "b.md", PAPER, origin="upload", reference="R1", **acting)
    told = Receipt.objects.filter(kind="source.described").count()
    add_source(study, "a.md", PAPER, origin="upload", title_zh="试点", **acting)
    assert Source.objects.get(path="a.md").title_zh == "试点"
    assert Receipt.objects.filter(kind="source.described").count() == told + 1
