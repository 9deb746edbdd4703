"""Text of sources: highlighted lines, windows, PDF by page."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence import reading
from evidence.actions.sources import BytesUnavailable, add_source
from evidence.models import Excerpt
from evidence.reading import Mark, Text, Unreadable, marks_of, merged, parts_of, quotes_in, structure, text_of, windows
from runs.models import Study


def pdf(*pages: str) -> bytes:
    """A PDF whose pages hold these lines of text."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in pages:
        shown = "".join(f"({line}) Tj T* " for line in page.split("\n") if line)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown}ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = io.BytesIO(), []
    out.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode())
    start = out.tell()
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}".encode())
    out.write(f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


@given(st.text(alphabet="ab\n", max_size=60), st.data())
def test_marks_cover_exactly_the_span(text: str, data: st.DataObject) -> None:
    """Joined again, the marked parts of all lines are the span without its line ends; no part is lost."""
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    marks = marks_of(text, [(start, stop, 7)])
    lines = text.split("\n")
    parts = {number: parts_of(line, marks.get(number, ())) for number, line in enumerate(lines, 1)}
    marked = "".join(part.text for number in parts for part in parts[number] if 7 in part.quotes)
    assert marked == text[start:stop].replace("\n", "")
    assert ["".join(part.text for part in parts[number]) for number in parts] == lines


def test_overlapping_quotations_are_both_marked() -> None:
    """abcdef with [0, 4) and [2, 6): three parts, the middle one of both."""
    parts = parts_of("abcdef", [Mark(0, 4, 0), Mark(2, 6, 1)])
    assert [(part.text, part.quotes, part.begins) for part in parts] == [
        ("ab", (0,), (0,)), ("cd", (0, 1), (1,)), ("ef", (1,), ()),
    ]  # fmt: skip


def test_only_a_quotation_that_stands_once_is_marked() -> None:
    """ "244" stands twice; with its prefix once."""
    twice = Excerpt(form="quote", selector={"exact": "244"})
    once = Excerpt(form="quote", selector={"exact": "244", "prefix": "of "})
    assert quotes_in("244 and 92 of 244", [twice, once]) == [(14, 17, 1)]


@given(st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40)), max_size=8))
def test_merged_ranges_hold_the_same_lines(ranges: list[tuple[int, int]]) -> None:
    """Sorted, apart by more than one line, and neither more nor fewer lines than asked for."""
    found = merged(ranges, 30)
    wanted = {line for low, high in ranges for line in range(low, high + 1) if 1 <= line <= 30}
    assert {line for low, high in found for line in range(low, high + 1)} == wanted
    assert all(one[1] + 1 < two[0] for one, two in pairwise(found))


def test_windows_of_a_large_text(study: Study, acting: dict[str, Any]) -> None:
    """Only the lines that were asked for, and how many there are."""
    data = "".join(f"line {number}\n" for number in range(1, 1001)).encode()
    version = add_source(study, "a.txt", data, origin="upload", **acting)
    found, total = windows(version, [(2, 3), (1000, 1400)])
    assert found == {2: "line 2", 3: "line 3", 1000: "line 1000"} and total == 1000


def test_a_last_end_of_line_begins_no_line() -> None:
    """Two lines with or without the last end; an empty line in between counts."""
    assert Text("a\nb\n").lines == Text("a\nb").lines == ["a", "b"]
    assert Text("a\n\nb").lines == ["a", "", "b"] and Text("").lines == []


def test_the_text_layer_of_a_pdf_by_page(study: Study, acting: dict[str, Any]) -> None:
    """Quotations are searched in it; page 2 begins on line 3."""
    version = add_source(study, "p.pdf", pdf("92 of 244\nedits", "second page"), origin="upload", **acting)
    text = text_of(version)
    assert (text.lines, text.pages) == (["92 of 244", "edits", "second page"], (1, 3))


@pytest.mark.parametrize("data", [b"%PDF-1.4\nnothing", pdf(""), pdf("x")[:200]])
def test_a_pdf_without_text_says_so(study: Study, acting: dict[str, Any], data: bytes) -> None:
    """Damaged, cut or without a text layer: named, no other error."""
    version = add_source(study, "p.pdf", data, origin="upload", **acting)
    with pytest.raises(Unreadable, match=r"^source: got a PDF"):
        text_of(version)


def test_too_many_pages_are_refused(study: Study, acting: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound on the work that one upload can ask for."""
    monkeypatch.setattr(reading, "PAGES_MOST", 1)
    version = add_source(study, "p.pdf", pdf("one", "two, of another hash"), origin="upload", **acting)
    with pytest.raises(Unreadable, match="more than 1 pages"):
        text_of(version)


def test_binary_and_claimed_sources_have_no_text(study: Study, acting: dict[str, Any]) -> None:
    """Each says which."""
    with pytest.raises(Unreadable, match="got form binary"):
        text_of(add_source(study, "w.bin", b"\x00\x01", origin="upload", **acting))
    with pytest.raises(BytesUnavailable):
        text_of(add_source(study, "w.md", None, sha256="a" * 64, origin="imported", **acting))


def test_light_structure() -> None:
    """Headings, comments, items; a fence makes code of what stands in it, a heading sign included."""
    markdown = dict(enumerate(["# T", "text", "```", "# no", "```", "- a", "> q", "| a |"], 1))
    assert structure("markdown", markdown) == {
        1: "heading", 3: "code", 4: "code", 5: "code", 6: "item", 7: "quoted", 8: "table",
    }  # fmt: skip
    latex = dict(enumerate([r"\section{A}", "% note", r"\begin{x}", r"\item b", "text"], 1))
    assert structure("latex", latex) == {1: "heading", 2: "comment", 3: "command", 4: "item"}
    assert structure("text", {1: "# no"}) == {}
