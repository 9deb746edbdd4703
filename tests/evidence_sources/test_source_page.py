"""The page of one source."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evidence.actions import intake, versions
from evidence.actions.excerpts import add_excerpt
from evidence.actions.sources import add_source, check_version
from evidence.models import SourceVersion
from evidence.presenters import source_page, source_values
from evidence.presenters.sources import STORED
from runs.models import Study
from runs.storage import blob_store
from tests.evidence_sources.test_reading import pdf

NOTES = "# Pilot\n" + "".join(f"line {number}\n" for number in range(2, 101)) + "Of 244 edits, 92 <were> nonzero.\n"


def show(client: Client, version: SourceVersion, query: str = "") -> str:
    """The markup of a version's page."""
    response = client.get(f"/sources/{version.source.uid}/{query}")
    assert response.status_code == 200
    return str(response.content.decode())


def numbers(page: str) -> list[int]:
    """Lines that the page shows."""
    return [int(found) for found in re.findall(r'<div class="line[^"]*" id="L(\d+)"', page)]


@pytest.fixture
def notes(study: Study, acting: dict[str, Any]) -> SourceVersion:
    """101 lines with a quotation in the last one."""
    version = add_source(study, "notes.md", NOTES.encode(), origin="upload", **acting)
    add_excerpt(study, version, "pilot.counts", "quote", {"exact": "92 <were> nonzero"}, **acting)
    return version


def test_a_quotation_is_shown_highlighted_in_its_context(signed_in: Client, notes: SourceVersion) -> None:
    """Lines around it, permalinks, the rest folded; markup of the source is escaped."""
    page = show(signed_in, notes)
    assert numbers(page) == [97, 98, 99, 100, 101] and "96 lines are folded" in page
    assert 'href="#L101"' in page and "<were>" not in page
    mark = '<mark class="quoted" data-quote title="pilot.counts"><span class="quoteanchor" id="q1"></span>'
    assert f"{mark}92 &lt;were&gt; nonzero</mark>" in page
    assert "found where it was" in page and 'href="#q1"' in page


def test_the_whole_file_and_one_line_of_it(signed_in: Client, notes: SourceVersion) -> None:
    """Headings of Markdown are marked; a permalink of a folded line opens it."""
    page = show(signed_in, notes, "?show=whole")
    assert numbers(page) == list(range(1, 102)) and 'class="line k-heading" id="L1"' in page
    assert numbers(show(signed_in, notes, "?line=5"))[:5] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "query", ["?line=zero", "?from=-4", "?from=99999999999999999999", "?show=all", "?view=dance", "?at=/x"]
)
def test_a_nonsensical_address_shows_the_page(signed_in: Client, notes: SourceVersion, query: str) -> None:
    """Never an error of ours."""
    assert "Content" in show(signed_in, notes, query)


def test_absent_and_hidden_sources_and_versions_are_alike(
    client: Client, signed_in: Client, notes: SourceVersion
) -> None:
    """404 for a version that does not exist, a source that does not, and one of a hidden study."""
    base = f"/sources/{notes.source.uid}/"
    assert signed_in.get(f"{base}?version=9").status_code == 404
    assert signed_in.get("/sources/00000000-0000-5000-8000-000000000000/").status_code == 404
    for path in (base, f"{base}bytes/1/", f"{base}diff/1/1/"):
        assert Client().get(path).status_code == 404


def test_json_is_shown_as_values_with_pointers(signed_in: Client, study: Study, acting: dict[str, Any]) -> None:
    """Numbers as written; each value has its pointer as anchor; a quoted pointer is highlighted."""
    data = b'{"a": {"x y": 0.10}, "b": ["<i>", null]}'
    version = add_source(study, "r.json", data, origin="upload", **acting)
    add_excerpt(study, version, "rate", "pointer", {"pointer": "/a/x y"}, **acting)
    page = show(signed_in, version)
    assert 'id="p/a/x%20y"' in page and '<span class="j-number">0.10</span></mark>' in page
    assert 'id="p/b/0"' in page and "&quot;&lt;i&gt;&quot;" in page and "<i>" not in page
    assert numbers(show(signed_in, version, "?view=lines")) == [1]


def test_long_json_shows_its_beginning_and_what_is_quoted(
    signed_in: Client, study: Study, acting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quoted value beyond the limit stands at the end; a part can be looked at alone."""
    monkeypatch.setattr(source_values, "VALUES_MOST", 10)
    data = json.dumps({"list": list(range(50)), "last": {"n": 77}}).encode()
    version = add_source(study, "r.json", data, origin="upload", **acting)
    add_excerpt(study, version, "n", "pointer", {"pointer": "/last/n"}, **acting)
    page = show(signed_in, version)
    assert 'id="p/last/n"' in page and "Only the first values" in page and "at=%2Flast" in page
    part = show(signed_in, version, "?view=values&at=/last")
    assert "Only the first values" not in part and '<span class="j-number">77</span>' in part


def test_text_that_only_calls_itself_json_is_shown_as_lines(
    signed_in: Client, study: Study, acting: dict[str, Any]
) -> None:
    """And so is a table that is none."""
    version = add_source(study, "r.json", b"{not json", origin="upload", **acting)
    assert numbers(show(signed_in, version)) == [1]
    version = add_source(study, "r.csv", b'a,b\n"open', origin="upload", **acting)
    assert numbers(show(signed_in, version)) == [1, 2]


def test_csv_is_a_table_with_the_quoted_cell(
    signed_in: Client, study: Study, acting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows beyond the limit are counted; a quoted one is shown all the same."""
    monkeypatch.setattr(source_page, "ROWS_MOST", 3)
    data = "arm,success\n" + "".join(f"a{number},{number}\n" for number in range(10))
    version = add_source(study, "t.csv", data.encode(), origin="upload", **acting)
    add_excerpt(study, version, "t", "cell", {"column": "success", "key_column": "arm", "key": "a9"}, **acting)
    page = show(signed_in, version)
    assert "4 of 10 rows are shown" in page and re.search(
        r'<td class="num"><mark [^>]*title="t">.*?9</mark></td>', page
    )
    assert 'id="L11"' in page and ">a8<" not in page


def test_a_pdf_is_shown_by_page(signed_in: Client, study: Study, acting: dict[str, Any]) -> None:
    """The text layer with its quotation."""
    version = add_source(study, "p.pdf", pdf("one", "92 of 244"), origin="upload", **acting)
    add_excerpt(study, version, "n", "quote", {"exact": "92 of 244"}, **acting)
    page = show(signed_in, version)
    assert "page 2" in page and "92 of 244</mark>" in page


def test_binary_claimed_and_missing_say_so(signed_in: Client, study: Study, acting: dict[str, Any]) -> None:
    """Transcriptions of a claimed source stand as quotations; none of the three shows lines."""
    binary = add_source(study, "w.bin", b"\x00\xff", origin="upload", **acting)
    assert "got form binary" in show(signed_in, binary)
    claimed = add_source(study, "c.tex", None, sha256="a" * 64, origin="imported", **acting)
    add_excerpt(study, claimed, "c", "quote", {"exact": "no regression"}, text="no regression", **acting)
    page = show(signed_in, claimed)
    assert "the bytes are not held here" in page and "<blockquote>no regression</blockquote>" in page
    assert "Bytes as they are" not in page and "Check now" not in page
    gone = add_source(study, "g.md", b"gone", origin="upload", **acting)
    path = blob_store().path(gone.sha256)
    path.chmod(0o644)
    path.unlink()
    assert "The bytes are gone" in show(signed_in, gone)


def test_drifted_bytes_are_shown_with_what_was_found(
    signed_in: Client, notes: SourceVersion, acting: dict[str, Any]
) -> None:
    """The page says drifted in words, names the hash that was found, and the quotation is not found any more."""
    path = blob_store().path(notes.sha256)
    path.chmod(0o644)
    path.write_bytes(NOTES.replace("92", "93").encode())
    check_version(notes, **acting)
    page = show(signed_in, notes)
    assert "drifted" in page and "hash to something else" in page and "not found any more" in page


def test_a_large_file_is_read_in_windows(
    signed_in: Client, notes: SourceVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the lines around the quotation are read, and it is highlighted all the same."""
    monkeypatch.setattr(source_page, "WHOLE_MOST", 100)
    monkeypatch.setattr(source_page, "lying_bytes", lambda version: pytest.fail("the whole file was read"))
    page = show(signed_in, notes)
    assert numbers(page) == [97, 98, 99, 100, 101] and "nonzero</mark>" in page and "A large file" in page


def test_the_whole_file_comes_in_parts(
    signed_in: Client, notes: SourceVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty lines a page: 1 to 40, then 41 to 80."""
    monkeypatch.setattr(source_page, "LINES_MOST", 40)
    page = show(signed_in, notes, "?show=whole")
    assert numbers(page) == list(range(1, 41)) and "from=41" in page
    assert numbers(show(signed_in, notes, "?show=whole&from=41")) == list(range(41, 81))


def test_more_quotations_need_no_more_queries(
    signed_in: Client, study: Study, notes: SourceVersion, acting: dict[str, Any]
) -> None:
    """One query for all excerpts."""

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            show(signed_in, notes)
        return len(caught)

    few = queries()
    for number in range(10, 40):
        add_excerpt(study, notes, f"l{number}", "quote", {"exact": f"line {number}\n"}, **acting)
    assert queries() == few <= 30


def test_the_bytes_are_an_attachment(signed_in: Client, notes: SourceVersion) -> None:
    """Never shown by the browser: octet-stream, nosniff, and the hash beside them."""
    response = signed_in.get(f"/sources/{notes.source.uid}/bytes/1/")
    assert b"".join(response.streaming_content) == NOTES.encode()  # type: ignore[attr-defined]
    assert response["Content-Disposition"].startswith("attachment") and response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Type"] == "application/octet-stream" and response["X-Data-SHA256"] == notes.sha256


def test_bytes_that_are_not_held_are_not_found(signed_in: Client, study: Study, acting: dict[str, Any]) -> None:
    """A claimed version has none."""
    version = add_source(study, "c.tex", None, sha256="a" * 64, origin="imported", **acting)
    assert signed_in.get(f"/sources/{version.source.uid}/bytes/1/").status_code == 404


def test_every_note_that_an_action_writes_has_words() -> None:
    """The constants of the actions are those that the page knows."""
    code = inspect.getsource(versions) + inspect.getsource(intake)
    for text in STORED:
        assert text.removeprefix("the watched file") in code
