"""Paths, forms and media types of sources."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.ingest.names import form_of, media_type_of, reference_name, source_path
from runs.errors import DomainError

HOSTILE = st.lists(
    st.one_of(st.sampled_from(["..", ".", "", "/", "a", "C:", "\\", "\x00", "\u202e", "e\u0301"]), st.text(max_size=6)),
    min_size=1,
    max_size=6,
)


@given(HOSTILE, st.sampled_from(["/", ""]))
def test_a_path_is_normalised_once_or_refused(parts: list[str], joint: str) -> None:
    """Whatever is accepted is relative, in plain parts, NFC, and is accepted again unchanged."""
    try:
        path = source_path(joint.join(parts))
    except DomainError as error:
        assert str(error).startswith("path: got ")
        return
    assert path and not path.startswith("/") and len(path) <= 500
    assert all(part not in ("", ".", "..") and part == part.strip() for part in path.split("/"))
    assert not any(unicodedata.category(item) in ("Cc", "Cf", "Cs", "Zl", "Zp") for item in path) and "\\" not in path
    assert unicodedata.is_normalized("NFC", path) and source_path(path) == path


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20))
def test_ordinary_names_are_accepted(name: str) -> None:
    """Letters and digits of any script name a file."""
    assert source_path(f"notes/{name}.md") == unicodedata.normalize("NFC", f"notes/{name}.md")


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "a\\b", "C:/x", "a\nb", "a\u202eb", " a", "x" * 501]
)
def test_a_path_that_leads_out_or_hides_something_is_refused(path: str) -> None:
    """Absolute, upwards, empty parts, control, bidirectional override, too long."""
    with pytest.raises(DomainError, match=r"^path: got "):
        source_path(path)


def test_a_form_follows_from_the_name_and_the_bytes() -> None:
    """A name that says text is believed only where the bytes are text."""
    assert form_of("a/paper.tex", b"\\section{x}") == "latex"
    assert form_of("a/paper.tex", b"\xff\xfe") == "binary"
    assert form_of("notes", b"plain") == "text"
    assert form_of("scan.pdf", b"%PDF-1.7\n") == "pdf"
    assert form_of("scan.pdf", b"<html>") == "binary"
    assert form_of("r.jsonl", None) == "jsonl"
    assert form_of("x.weights", None) == "binary"


@pytest.mark.parametrize(("given", "data"), [("word", b"a"), ("json", b"\xff"), ("pdf", b"a")])
def test_a_form_that_the_bytes_do_not_have_is_refused(given: str, data: bytes) -> None:
    """A stated form is not silently changed."""
    with pytest.raises(DomainError, match=r"^form: got "):
        form_of("a", data, given)


def test_references_and_media_types() -> None:
    """R1 and text/csv are fine; a sentence is neither."""
    assert reference_name("R1") == "R1" and reference_name("") == ""
    assert media_type_of("csv") == "text/csv" and media_type_of("csv", "text/tab-separated-values")
    with pytest.raises(DomainError, match=r"^reference: "):
        reference_name("R 1]")
    with pytest.raises(DomainError, match=r"^media_type: "):
        media_type_of("csv", "text/html\r\nX: y")
