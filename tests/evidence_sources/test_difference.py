"""What differs between two versions of a source."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from evidence.actions.sources import add_source
from evidence.models import SourceVersion
from evidence.presenters import source_difference
from evidence.presenters.source_difference import Difference, _lines, compare
from runs.models import Study


def two(study: Study, acting: dict[str, Any], path: str, one: bytes, other: bytes) -> tuple[SourceVersion, ...]:
    """Two versions of a source."""
    first = add_source(study, path, one, origin="upload", **acting)
    return first, add_source(study, path, other, origin="upload", reason="four rows were counted twice", **acting)


def test_a_corrected_aggregate(study: Study, acting: dict[str, Any], signed_in: Client) -> None:
    """999 becomes 995: the value by its pointer, the line, and the old number struck and legible."""
    versions = two(study, acting, "a.json", b'{\n"rows": 999,\n"ok": true\n}', b'{\n"rows": 995,\n"ok": true\n}')
    found = compare(*versions)
    assert [(item.pointer, item.before, item.after) for item in found.values] == [("/rows", "999", "995")]
    assert (found.removed, found.added) == (1, 1)
    page = signed_in.get(f"/sources/{versions[0].source.uid}/diff/1/2/").content.decode()
    assert '<s class="oldvalue">999</s>' in page and "four rows were counted twice" in page
    assert "1 line taken out" in page and "1 added" in page


def test_the_same_bytes_and_absent_bytes(study: Study, acting: dict[str, Any], signed_in: Client) -> None:
    """Equal hashes need no look; bytes that are not held leave the hashes alone, and say so."""
    claimed = add_source(study, "a.md", None, sha256="a" * 64, origin="imported", **acting)
    held = add_source(study, "a.md", b"x", origin="upload", reason="the bytes came", **acting)
    assert compare(held, held).equal and not compare(held, held).lines
    assert "expected bytes held here" in compare(claimed, held).trouble
    page = signed_in.get(f"/sources/{held.source.uid}/diff/1/2/").content.decode()
    assert "cannot be compared here" in page
    assert "are the same bytes" in signed_in.get(f"/sources/{held.source.uid}/diff/2/2/").content.decode()


def test_versions_that_do_not_exist_are_not_found(study: Study, acting: dict[str, Any], signed_in: Client) -> None:
    """404, also for a number that no database holds."""
    version = add_source(study, "a.md", b"x", origin="upload", **acting)
    for number in ("2", "9" * 40):
        assert signed_in.get(f"/sources/{version.source.uid}/diff/1/{number}/").status_code == 404


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_lines_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    """Shown lines stand where their numbers say; taking out and adding gives the other text."""
    found = Difference(SourceVersion(), SourceVersion())
    _lines(found, old, new)
    for line in found.lines:
        assert line.before is None or old[line.before - 1] == line.text
        assert line.after is None or new[line.after - 1] == line.text
    gone = {line.before for line in found.lines if line.kind == "removed"}
    come = {line.after for line in found.lines if line.kind == "added"}
    kept = [text for number, text in enumerate(old, 1) if number not in gone]
    assert kept == [text for number, text in enumerate(new, 1) if number not in come]
    assert (found.removed, found.added) == (len(gone), len(come))


def test_only_what_may_differ_counts_against_the_limit(
    study: Study, acting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change in a long file is found; too many changed lines are not compared, and that is said."""
    monkeypatch.setattr(source_difference, "LINES_MOST", 20)
    long = [f"line {number}" for number in range(1000)]
    changed = [*long[:500], "another", *long[501:]]
    assert compare(*two(study, acting, "a.md", "\n".join(long).encode(), "\n".join(changed).encode())).removed == 1
    other = "\n".join(reversed(long)).encode()
    assert "expected at most 20" in compare(*two(study, acting, "b.md", "\n".join(long).encode(), other)).trouble
